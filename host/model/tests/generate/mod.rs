//! Configs to read: whatever is valid, in whatever way it may be written.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};

/// A JSON text in the making.
#[derive(Debug, Clone)]
pub(super) enum Json {
    Raw(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
}

/// How a JSON text is written: an endless sequence of choices.
struct Style(u64);

impl Style {
    fn choice(&mut self, of: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 40) % of
    }

    fn space(&mut self, out: &mut String) {
        if self.choice(4) == 0 {
            out.push_str([" ", "\n", "\t  ", "\r\n"][self.choice(4) as usize]);
        }
    }

    fn text(&mut self, text: &str, out: &mut String) {
        out.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => out.extend(['\\', c]),
                '\n' => out.push_str("\\n"),
                c if c < ' ' || self.choice(24) == 0 => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        out.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                c => out.push(c),
            }
        }
        out.push('"');
    }

    fn write(&mut self, json: &Json, out: &mut String) {
        self.space(out);
        match json {
            Json::Raw(text) => out.push_str(text),
            Json::Text(text) => self.text(text, out),
            Json::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    self.write(item, out);
                }
                self.space(out);
                out.push(']');
            }
            Json::Object(fields) => {
                out.push('{');
                for (index, (name, value)) in fields.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    self.space(out);
                    out.push_str(&format!("{name:?}"));
                    self.space(out);
                    out.push(':');
                    self.write(value, out);
                }
                self.space(out);
                out.push('}');
            }
        }
        self.space(out);
    }
}

pub(super) fn written(json: &Json, style: u64) -> String {
    let mut out = String::new();
    Style(style).write(json, &mut out);
    out
}

pub(super) fn raw(texts: &'static [&'static str]) -> BoxedStrategy<Json> {
    select(texts).prop_map(|text| Json::Raw(text.to_owned())).boxed()
}

pub(super) fn text(texts: &'static [&'static str]) -> BoxedStrategy<Json> {
    select(texts).prop_map(|text| Json::Text(text.to_owned())).boxed()
}

/// An object with some of the fields, in any order; the first `required` are
/// always there.
pub(super) fn object(
    fields: Vec<(&'static str, BoxedStrategy<Json>)>,
    required: usize,
) -> BoxedStrategy<Json> {
    let count = fields.len();
    let all: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| value.prop_map(move |value| (name, value)).boxed())
        .collect();
    (all, vec(any::<bool>(), count))
        .prop_map(move |(fields, kept)| {
            let kept = fields.into_iter().zip(kept).enumerate();
            kept.filter(|(index, (_, kept))| *index < required || *kept)
                .map(|(_, (field, _))| field)
                .collect::<Vec<_>>()
        })
        .prop_shuffle()
        .prop_map(Json::Object)
        .boxed()
}

const TEXTS: &[&str] =
    &["", "a", "[Unit]\nDescription=\"x\" & <y>\n", "größe 😀", "\u{1}\\", "x=1"];
const EMPTY: &[&str] = &["{}", "null", r#"{"a":{"b":[],"c":null}}"#];

pub(super) fn file() -> BoxedStrategy<Json> {
    let owner = || object(vec![("name", text(&["", "root", "core"]))], 0);
    let id = object(vec![("id", raw(&["0", "5", "null"]))], 0);
    // What Ignition rejects is read, but not by the fast reader: it is rare.
    let source = prop_oneof![
        20 => text(&["", "data:,a%20b", "data:;base64,aGk=", "data:,&%c3%bc"]),
        1 => text(&["data:,a b", "data:font/x,a"]),
    ];
    let path = prop_oneof![
        20 => text(&["/a", "/etc/a", "/etc/b", "/etc/ü", "/z", "/etc/c", "/b"]),
        1 => text(&["/etc//a/", "/etc/./b"]),
    ];
    let overwrite = prop_oneof![20 => raw(&["false", "null"]), 1 => raw(&["true"])];
    let contents = object(
        vec![
            ("source", source.boxed()),
            ("compression", text(&["", "gzip"])),
            ("verification", raw(&["{}", "null"])),
            ("httpHeaders", raw(&["[]", "null"])),
        ],
        0,
    );
    object(
        vec![
            ("path", path.boxed()),
            ("contents", contents),
            ("mode", raw(&["420", "0", "493", "4095", "null"])),
            ("overwrite", overwrite.boxed()),
            ("user", owner()),
            ("group", prop_oneof![owner(), id].boxed()),
            ("append", raw(&["[]", "null"])),
        ],
        1,
    )
}

pub(super) fn unit() -> BoxedStrategy<Json> {
    let dropin = object(vec![("name", text(&["a.conf", "b.conf"])), ("contents", text(TEXTS))], 1);
    let dropins = vec(dropin, 0..3).prop_map(|list| Json::List(distinct(list, "name")));
    object(
        vec![
            ("name", text(&["a.service", "b@x.mount", "c.timer", "d.socket"])),
            ("contents", text(TEXTS)),
            ("enabled", raw(&["true", "false", "null"])),
            ("mask", raw(&["true", "false"])),
            ("dropins", dropins.boxed()),
        ],
        1,
    )
}

pub(super) fn user() -> BoxedStrategy<Json> {
    let keys = subsequence(vec!["ssh-rsa A", "ssh-rsa B ", "ü", ""], 0..=4);
    let keys = keys.prop_map(|keys| {
        Json::List(keys.into_iter().map(|key| Json::Text(key.to_owned())).collect())
    });
    object(
        vec![
            ("name", text(&["core", "root"])),
            ("sshAuthorizedKeys", keys.boxed()),
            ("passwordHash", text(TEXTS)),
        ],
        1,
    )
}

/// Only the last of those that have the same value in the field `name`.
pub(super) fn distinct(entries: Vec<Json>, name: &str) -> Vec<Json> {
    let key = |entry: &Json| match entry {
        Json::Object(fields) => fields.iter().find(|(field, _)| *field == name).map(|(_, key)| {
            let Json::Text(key) = key else { panic!("{key:?} is no text") };
            key.replace("//", "/").replace("/./", "/").trim_end_matches('/').to_owned()
        }),
        _ => None,
    };
    let mut kept: Vec<Json> = Vec::new();
    for entry in entries {
        if !kept.iter().any(|other| key(other) == key(&entry)) {
            kept.push(entry);
        }
    }
    kept
}

pub(super) fn ignition(
    files: BoxedStrategy<Json>,
    units: BoxedStrategy<Json>,
) -> BoxedStrategy<Json> {
    let version = object(
        vec![
            ("version", text(&["3.0.0", "3.2.0", "3.5.0"])),
            ("config", raw(EMPTY)),
            ("proxy", raw(EMPTY)),
        ],
        1,
    );
    let storage = object(vec![("files", files), ("disks", raw(&["[]", "null"]))], 1);
    let users = vec(user(), 0..3).prop_map(|users| Json::List(distinct(users, "name"))).boxed();
    object(
        vec![
            ("ignition", version),
            ("storage", storage),
            ("systemd", object(vec![("units", units)], 1)),
            ("passwd", object(vec![("users", users), ("groups", raw(&["[]"]))], 0)),
            ("kernelArguments", raw(EMPTY)),
        ],
        3,
    )
}

pub(super) fn machine_config(
    name: &'static [&'static str],
    config: BoxedStrategy<Json>,
) -> BoxedStrategy<Json> {
    let arguments = vec(text(&["a", "b=\"c d\" e", "", " x\ty "]), 0..3).prop_map(Json::List);
    let extensions = vec(text(&["ipsec", "usbguard"]), 0..4).prop_map(Json::List);
    let spec = object(
        vec![
            ("config", config),
            ("kernelArguments", arguments.boxed()),
            ("extensions", extensions.boxed()),
            ("fips", raw(&["true", "false", "null"])),
            ("kernelType", text(&["", "default", "realtime", "64k-pages"])),
            ("osImageURL", text(&["", "quay.io/a@sha256:00", "b"])),
            ("baseOSExtensionsContainerImage", text(TEXTS)),
        ],
        1,
    );
    let labels = raw(&[
        "{}",
        r#"{"machineconfiguration.openshift.io/role":"worker"}"#,
        r#"{"machineconfiguration.openshift.io/role":"infra","x":"y"}"#,
    ]);
    let metadata = object(
        vec![
            ("name", text(name)),
            ("labels", labels),
            ("annotations", raw(&["null", "{}", r#"{"a":"b\n","c":null,"d":[1,{"e":true}]}"#])),
        ],
        1,
    );
    object(
        vec![
            ("apiVersion", text(&["machineconfiguration.openshift.io/v1"])),
            ("kind", text(&["MachineConfig"])),
            ("metadata", metadata),
            ("spec", spec),
            ("status", raw(&["{}", "null", r#"{"x":[0,5]}"#])),
        ],
        4,
    )
}

/// An old and a new list of entries that have much in common.
pub(super) fn lists(entry: BoxedStrategy<Json>, key: &'static str) -> BoxedStrategy<(Json, Json)> {
    (vec(entry.clone(), 0..8), vec((any::<Index>(), entry), 0..4), any::<bool>())
        .prop_map(move |(old, edits, turn)| {
            let old = distinct(old, key);
            let mut new = old.clone();
            for (place, entry) in edits {
                match place.index(3 * (new.len() + 1)) {
                    at if at < new.len() => new[at] = entry,
                    at if at < 2 * new.len() => drop(new.remove(at - new.len())),
                    _ => new.insert(place.index(new.len() + 1), entry),
                }
            }
            if turn {
                new.reverse();
            }
            (Json::List(old), Json::List(distinct(new, key)))
        })
        .boxed()
}

/// One config alone.
pub(super) fn ignition_alone() -> BoxedStrategy<Json> {
    let list = |entry, key| lists(entry, key).prop_map(|(old, _)| old).boxed();
    ignition(list(file(), "path"), list(unit(), "name"))
}
