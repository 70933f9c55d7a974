//! The operator's own check whether a change of registries.conf is safe without
//! a drain. It looks at less than tread's registries policy does: the order of
//! mirrors, drop-ins and shadowed scopes are not seen.

use super::because::Because;
use super::rendered::{Rendered, contents};
use crate::effect::Effect;
use crate::path::REGISTRIES_CONF;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// Why the node has to be drained; none if the change is safe. The error says
/// why the file cannot be read: then the update fails.
pub(super) fn unsafe_change(old: &Rendered, new: &Rendered) -> Result<Option<String>, String> {
    let (old, new) = (read(old, "present")?, read(new, "new")?);
    if !new.search.starts_with(&old.search) {
        return Ok(Some("the list for short names changed otherwise than at its end".to_owned()));
    }
    for (key, before) in &old.registries {
        let Some(after) = new.registries.get(key) else {
            return Ok(Some(format!("the entry {key} is gone")));
        };
        if let Some(why) = before.harm(after) {
            return Ok(Some(format!("of the entry {key} {why}")));
        }
    }
    let added = new.registries.iter().filter(|(key, _)| !old.registries.contains_key(*key));
    for (key, registry) in added {
        if !registry.is_for_digests_only() {
            return Ok(Some(format!("the new entry {key} is not for digests only")));
        }
    }
    Ok(None)
}

/// The update fails, and the pool degrades.
pub(super) fn rejection(problem: String) -> Because {
    Because { id: format!("file:{REGISTRIES_CONF}"), effect: Effect::Refuse, rule: problem }
}

#[derive(Debug, Default)]
struct Registries {
    search: Vec<String>,
    /// By prefix or else location; of equal ones the last.
    registries: BTreeMap<String, Registry>,
}

#[derive(Debug, PartialEq)]
struct Registry {
    /// `prefix`, `location`, `blocked`, `insecure`.
    flags: [Option<Value>; 4],
    digests_only: bool,
    /// The location and `pull-from-mirror` of each, in their order.
    mirrors: Vec<(String, String)>,
}

const DIGEST_ONLY: &str = "digest-only";

impl Registry {
    /// What about the change from this entry to another one needs a drain.
    fn harm(&self, after: &Registry) -> Option<String> {
        if self == after {
            return None;
        }
        if self.flags != after.flags {
            return Some("prefix, location, blocked or insecure changed".to_owned());
        }
        let (ours, theirs) = (self.first_of_each(), after.first_of_each());
        if let Some((location, _)) = self.mirrors.iter().find(|(it, _)| !theirs.contains_key(&**it))
        {
            return Some(format!("the mirror {location} is gone"));
        }
        for (location, pull) in &after.mirrors {
            match ours.get(&**location) {
                Some(before) if pull != before && pull != DIGEST_ONLY => {
                    return Some(format!("the mirror {location} is used for other pulls"));
                }
                None if pull != DIGEST_ONLY && !after.digests_only => {
                    return Some(format!("the new mirror {location} is not for digests only"));
                }
                Some(_) | None => {}
            }
        }
        None
    }

    /// What the mirrors are used for, by their locations: of those that stand there twice the operator
    /// finds the first.
    fn first_of_each(&self) -> BTreeMap<&str, &str> {
        let all = self.mirrors.iter().rev();
        all.map(|(location, pull)| (location.as_str(), pull.as_str())).collect()
    }

    fn is_for_digests_only(&self) -> bool {
        match self.mirrors.is_empty() {
            true => self.digests_only,
            false => self.mirrors.iter().all(|(_, pull)| pull == DIGEST_ONLY),
        }
    }
}

fn read(side: &Rendered, which: &str) -> Result<Registries, String> {
    let Some(file) = side.files.get(REGISTRIES_CONF) else { return Ok(Registries::default()) };
    let file = file.value();
    let unreadable = |what: &str| format!("the operator cannot read the {which} file: {what}");
    if file
        .pointer("/contents/compression")
        .and_then(|it| it.as_str())
        .is_some_and(|it| !it.is_empty())
    {
        return Err(unreadable("it is compressed, which its check does not expect"));
    }
    let bytes = contents(file).ok_or_else(|| unreadable("its data URL cannot be decoded"))?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable("it is no UTF-8 text"))?;
    let table: Table = text.parse().map_err(|_| unreadable("it is no TOML"))?;
    let search = table.get("unqualified-search-registries").and_then(Value::as_array);
    let search = search.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    let entries = table.get("registry").and_then(Value::as_array);
    let entries = entries.into_iter().flatten().filter_map(Value::as_table);
    Ok(Registries { search: search.collect(), registries: entries.map(entry).collect() })
}

fn entry(table: &Table) -> (String, Registry) {
    let text = |table: &Table, key: &str| {
        table.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let key = Some(text(table, "prefix")).filter(|prefix| !prefix.is_empty());
    let key = key.unwrap_or_else(|| text(table, "location"));
    let mirrors = table.get("mirror").and_then(Value::as_array);
    let mirrors = mirrors.into_iter().flatten().filter_map(Value::as_table);
    // Absent, empty and false are the same to it.
    let flag = |name: &str| {
        let value = table.get(name)?;
        let nothing = matches!(value, Value::Boolean(false)) || value.as_str() == Some("");
        (!nothing).then(|| value.clone())
    };
    let registry = Registry {
        flags: ["prefix", "location", "blocked", "insecure"].map(flag),
        digests_only: table.get("mirror-by-digest-only").and_then(Value::as_bool) == Some(true),
        mirrors: mirrors
            .map(|mirror| (text(mirror, "location"), text(mirror, "pull-from-mirror")))
            .collect(),
    };
    (key, registry)
}
