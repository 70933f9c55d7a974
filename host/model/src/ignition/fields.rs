//! The fields of Ignition configs, each with the version that brought it.

/// What a field holds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// Nothing with fields of Ignition's.
    Leaf,
    Object(&'static [Field]),
    List(&'static [Field]),
}

/// A field, and the least version 3.X that has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) since: u8,
    pub(crate) shape: Shape,
}

const fn leaf(name: &'static str) -> Field {
    Field { name, since: 0, shape: Shape::Leaf }
}

const fn object(name: &'static str, fields: &'static [Field]) -> Field {
    Field { name, since: 0, shape: Shape::Object(fields) }
}

const fn list(name: &'static str, fields: &'static [Field]) -> Field {
    Field { name, since: 0, shape: Shape::List(fields) }
}

impl Field {
    const fn since(self, since: u8) -> Field {
        Field { since, ..self }
    }
}

/// A whole config.
pub(crate) const CONFIG: &[Field] = &[
    object("ignition", IGNITION),
    object("kernelArguments", &[leaf("shouldExist"), leaf("shouldNotExist")]).since(3),
    object("passwd", &[list("groups", GROUP), list("users", USER)]),
    object("storage", STORAGE),
    object("systemd", &[list("units", UNIT)]),
];

const IGNITION: &[Field] = &[
    object("config", &[list("merge", RESOURCE), object("replace", RESOURCE)]),
    object("proxy", &[leaf("httpProxy"), leaf("httpsProxy"), leaf("noProxy")]).since(1),
    object("security", &[object("tls", &[list("certificateAuthorities", RESOURCE)])]),
    object("timeouts", &[leaf("httpResponseHeaders"), leaf("httpTotal")]),
    leaf("version"),
];

const RESOURCE: &[Field] = &[
    leaf("compression").since(1),
    list("httpHeaders", HEADER).since(1),
    leaf("source"),
    object("verification", &[leaf("hash")]),
];

/// As [`RESOURCE`], but the contents of files could be compressed from the first
/// version on.
const CONTENTS: &[Field] = &[
    leaf("compression"),
    list("httpHeaders", HEADER).since(1),
    leaf("source"),
    object("verification", &[leaf("hash")]),
];

const HEADER: &[Field] = &[leaf("name"), leaf("value")];

const GROUP: &[Field] = &[
    leaf("gid"),
    leaf("name"),
    leaf("passwordHash"),
    leaf("shouldExist").since(2),
    leaf("system"),
];

const USER: &[Field] = &[
    leaf("gecos"),
    leaf("groups"),
    leaf("homeDir"),
    leaf("name"),
    leaf("noCreateHome"),
    leaf("noLogInit"),
    leaf("noUserGroup"),
    leaf("passwordHash"),
    leaf("primaryGroup"),
    leaf("shell"),
    leaf("shouldExist").since(2),
    leaf("sshAuthorizedKeys"),
    leaf("system"),
    leaf("uid"),
];

const OWNER: &[Field] = &[leaf("id"), leaf("name")];

const STORAGE: &[Field] = &[
    list(
        "directories",
        &[
            object("group", OWNER),
            leaf("mode"),
            leaf("overwrite"),
            leaf("path"),
            object("user", OWNER),
        ],
    ),
    list("disks", &[leaf("device"), list("partitions", PARTITION), leaf("wipeTable")]),
    list(
        "files",
        &[
            list("append", CONTENTS),
            object("contents", CONTENTS),
            object("group", OWNER),
            leaf("mode"),
            leaf("overwrite"),
            leaf("path"),
            object("user", OWNER),
        ],
    ),
    list(
        "filesystems",
        &[
            leaf("device"),
            leaf("format"),
            leaf("label"),
            leaf("mountOptions").since(1),
            leaf("options"),
            leaf("path"),
            leaf("uuid"),
            leaf("wipeFilesystem"),
        ],
    ),
    list(
        "links",
        &[
            object("group", OWNER),
            leaf("hard"),
            leaf("overwrite"),
            leaf("path"),
            leaf("target"),
            object("user", OWNER),
        ],
    ),
    list("luks", LUKS).since(2),
    list("raid", &[leaf("devices"), leaf("level"), leaf("name"), leaf("options"), leaf("spares")]),
];

const PARTITION: &[Field] = &[
    leaf("guid"),
    leaf("label"),
    leaf("number"),
    leaf("resize").since(2),
    leaf("shouldExist"),
    leaf("sizeMiB"),
    leaf("startMiB"),
    leaf("typeGuid"),
    leaf("wipePartitionEntry"),
];

const LUKS: &[Field] = &[
    object("cex", &[leaf("enabled")]).since(5),
    object(
        "clevis",
        &[
            object("custom", &[leaf("config"), leaf("needsNetwork"), leaf("pin")]),
            list("tang", &[leaf("advertisement").since(4), leaf("thumbprint"), leaf("url")]),
            leaf("threshold"),
            leaf("tpm2"),
        ],
    ),
    leaf("device"),
    leaf("discard").since(4),
    object("keyFile", RESOURCE),
    leaf("label"),
    leaf("name"),
    leaf("openOptions").since(4),
    leaf("options"),
    leaf("uuid"),
    leaf("wipeVolume"),
];

const UNIT: &[Field] = &[
    leaf("contents"),
    list("dropins", &[leaf("contents"), leaf("name")]),
    leaf("enabled"),
    leaf("mask"),
    leaf("name"),
];
