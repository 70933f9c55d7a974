//! The fields of Ignition configs: which version brought each, and how several configs
//! that have it are merged.

/// What a field holds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// One value, which a later config replaces.
    Leaf,
    Object(&'static [Field]),
    List(Items),
}

/// What a list holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Items {
    pub(crate) by: By,
    /// Empty where the items are no objects.
    pub(crate) fields: &'static [Field],
}

/// What makes an item of a later config the same as one of an earlier config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// Nothing: all items stay, one behind the other.
    Nothing,
    /// The item itself, a text.
    Itself,
    /// The field of this name.
    Field(&'static str),
    /// The number of a partition, or else its label.
    Partition,
    /// The name of an HTTP header; one without a value takes it away.
    Header,
}

/// A field, and the least version 3.X that has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) since: u8,
    pub(crate) shape: Shape,
    /// The lists of the same object from which an item of this one takes those of the
    /// same key away.
    pub(crate) instead_of: &'static [&'static str],
}

const fn field(name: &'static str, shape: Shape) -> Field {
    Field { name, since: 0, shape, instead_of: &[] }
}

const fn leaf(name: &'static str) -> Field {
    field(name, Shape::Leaf)
}

const fn object(name: &'static str, fields: &'static [Field]) -> Field {
    field(name, Shape::Object(fields))
}

const fn list(name: &'static str, by: By, fields: &'static [Field]) -> Field {
    field(name, Shape::List(Items { by, fields }))
}

/// A list of texts, each once.
const fn texts(name: &'static str) -> Field {
    list(name, By::Itself, &[])
}

/// A list of texts of which none replaces another.
const fn options(name: &'static str) -> Field {
    list(name, By::Nothing, &[])
}

impl Field {
    const fn since(self, since: u8) -> Field {
        Field { since, ..self }
    }

    const fn instead_of(self, instead_of: &'static [&'static str]) -> Field {
        Field { instead_of, ..self }
    }
}

/// What the field at a path holds, such as `storage.files`.
pub(crate) fn shape_at(path: &str) -> Shape {
    path.split('.').fold(Shape::Object(CONFIG), |shape, name| match shape {
        Shape::Object(fields) => {
            let found = fields.iter().find(|field| field.name == name);
            found.map_or(Shape::Leaf, |field| field.shape)
        }
        Shape::Leaf | Shape::List(_) => Shape::Leaf,
    })
}

/// A whole config.
pub(crate) const CONFIG: &[Field] = &[
    object("ignition", IGNITION),
    object("kernelArguments", KERNEL_ARGUMENTS).since(3),
    object("passwd", &[list("groups", NAME, GROUP), list("users", NAME, USER)]),
    object("storage", STORAGE),
    object("systemd", &[list("units", NAME, UNIT)]),
];

const NAME: By = By::Field("name");
const PATH: By = By::Field("path");
const SOURCE: By = By::Field("source");

const KERNEL_ARGUMENTS: &[Field] = &[
    texts("shouldExist").instead_of(&["shouldNotExist"]),
    texts("shouldNotExist").instead_of(&["shouldExist"]),
];

const IGNITION: &[Field] = &[
    object("config", &[list("merge", SOURCE, RESOURCE), object("replace", RESOURCE)]),
    object("proxy", &[leaf("httpProxy"), leaf("httpsProxy"), texts("noProxy")]).since(1),
    object("security", &[object("tls", &[list("certificateAuthorities", SOURCE, RESOURCE)])]),
    object("timeouts", &[leaf("httpResponseHeaders"), leaf("httpTotal")]),
    leaf("version"),
];

const RESOURCE: &[Field] = &[
    leaf("compression").since(1),
    list("httpHeaders", By::Header, HEADER).since(1),
    leaf("source"),
    object("verification", &[leaf("hash")]),
];

/// As [`RESOURCE`], but the contents of files could be compressed from the first
/// version on.
const CONTENTS: &[Field] = &[
    leaf("compression"),
    list("httpHeaders", By::Header, HEADER).since(1),
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
    texts("groups"),
    leaf("homeDir"),
    leaf("name"),
    leaf("noCreateHome"),
    leaf("noLogInit"),
    leaf("noUserGroup"),
    leaf("passwordHash"),
    leaf("primaryGroup"),
    leaf("shell"),
    leaf("shouldExist").since(2),
    texts("sshAuthorizedKeys"),
    leaf("system"),
    leaf("uid"),
];

const OWNER: &[Field] = &[leaf("id"), leaf("name")];

const STORAGE: &[Field] = &[
    list(
        "directories",
        PATH,
        &[
            object("group", OWNER),
            leaf("mode"),
            leaf("overwrite"),
            leaf("path"),
            object("user", OWNER),
        ],
    )
    .instead_of(&["files", "links"]),
    list("disks", By::Field("device"), DISK),
    list(
        "files",
        PATH,
        &[
            list("append", By::Nothing, CONTENTS),
            object("contents", CONTENTS),
            object("group", OWNER),
            leaf("mode"),
            leaf("overwrite"),
            leaf("path"),
            object("user", OWNER),
        ],
    )
    .instead_of(&["directories", "links"]),
    list(
        "filesystems",
        By::Field("device"),
        &[
            leaf("device"),
            leaf("format"),
            leaf("label"),
            options("mountOptions").since(1),
            options("options"),
            leaf("path"),
            leaf("uuid"),
            leaf("wipeFilesystem"),
        ],
    ),
    list(
        "links",
        PATH,
        &[
            object("group", OWNER),
            leaf("hard"),
            leaf("overwrite"),
            leaf("path"),
            leaf("target"),
            object("user", OWNER),
        ],
    )
    .instead_of(&["directories", "files"]),
    list("luks", NAME, LUKS).since(2),
    list("raid", NAME, RAID),
];

const DISK: &[Field] =
    &[leaf("device"), list("partitions", By::Partition, PARTITION), leaf("wipeTable")];

const RAID: &[Field] =
    &[texts("devices"), leaf("level"), leaf("name"), options("options"), leaf("spares")];

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
            list(
                "tang",
                By::Field("url"),
                &[leaf("advertisement").since(4), leaf("thumbprint"), leaf("url")],
            ),
            leaf("threshold"),
            leaf("tpm2"),
        ],
    ),
    leaf("device"),
    leaf("discard").since(4),
    object("keyFile", RESOURCE),
    leaf("label"),
    leaf("name"),
    texts("openOptions").since(4),
    options("options"),
    leaf("uuid"),
    leaf("wipeVolume"),
];

const UNIT: &[Field] = &[
    leaf("contents"),
    list("dropins", NAME, &[leaf("contents"), leaf("name")]),
    leaf("enabled"),
    leaf("mask"),
    leaf("name"),
];
