//! Objects of the index, as they were seen, and what differs between two moments.

use kube::Resource as _;
use kube::core::DynamicObject;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::sync::Arc;
use tread_kube::watching::parsed::Parsed;

/// An object as it stands in the cluster, or why it cannot be read.
pub type Object = Arc<Parsed<DynamicObject>>;

/// What differs between two moments.
#[derive(Debug)]
pub struct Differences<'d> {
    /// The names of what is gone; also of what is there anew, as another one.
    pub gone: Vec<&'d String>,
    /// What is new, or was written.
    pub there: Vec<(&'d String, &'d Object)>,
}

/// What differs between two moments. What was written is another `Arc`.
pub fn differences<'d>(
    before: &'d BTreeMap<String, Object>,
    now: &'d BTreeMap<String, Object>,
) -> Differences<'d> {
    let is_gone = |(name, it): &(&String, &Object)| {
        now.get(*name).is_none_or(|now| now.meta().uid != it.meta().uid)
    };
    let is_new = |(name, it): &(&String, &Object)| {
        before.get(*name).is_none_or(|it_was| !Arc::ptr_eq(it_was, it))
    };
    Differences {
        gone: before.iter().filter(is_gone).map(|(name, _)| name).collect(),
        there: now.iter().filter(is_new).collect(),
    }
}

/// The one object that counts, as it could be read last: what cannot be read
/// changes nothing, as long as it is the same object.
pub fn last_read(before: Option<Object>, now: Option<&Object>) -> Option<Object> {
    let now = now?;
    match **now {
        Parsed::Read(_) => Some(Arc::clone(now)),
        Parsed::Unreadable(..) => before.filter(|before| before.meta().uid == now.meta().uid),
    }
}

/// The object as one of this kind, or why it is none.
pub fn read_as<K: DeserializeOwned>(object: &Parsed<DynamicObject>) -> Result<K, String> {
    match object {
        Parsed::Unreadable(_, why) => Err(why.clone()),
        Parsed::Read(object) => {
            let value = serde_json::to_value(object).map_err(|error| error.to_string())?;
            serde_path_to_error::deserialize(value)
                .map_err(|error| format!("{}: {}", error.path(), error.inner()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tread_kube::api::MachineConfigPool;

    fn object(name: &str, uid: &str, spec: &Value) -> (String, Object) {
        let object = json!({"metadata": {"name": name, "uid": uid}, "spec": spec});
        (name.to_owned(), Arc::new(Parsed::Read(serde_json::from_value(object).unwrap())))
    }

    #[test]
    fn what_was_written_comes_and_goes_is_told_apart() {
        let same = object("same", "1", &json!({}));
        let before = BTreeMap::from([
            same.clone(),
            object("written", "2", &json!({})),
            object("gone", "3", &json!({})),
            object("another", "4", &json!({})),
        ]);
        let now = BTreeMap::from([
            same,
            object("written", "2", &json!({"paused": true})),
            object("another", "5", &json!({})),
            object("new", "6", &json!({})),
        ]);
        let Differences { gone, there } = differences(&before, &now);
        assert_eq!(gone, ["another", "gone"]);
        let there: Vec<&String> = there.into_iter().map(|(name, _)| name).collect();
        assert_eq!(there, ["another", "new", "written"]);
        let nothing = differences(&now, &now);
        assert!(nothing.gone.is_empty() && nothing.there.is_empty());
    }

    #[test]
    fn what_is_not_of_its_kind_is_named_by_its_field() {
        let (_, fine) = object("a", "1", &json!({"paused": true}));
        assert!(read_as::<MachineConfigPool>(&fine).unwrap().spec.paused);
        let (_, wrong) = object("a", "1", &json!({"paused": "perhaps"}));
        let why = read_as::<MachineConfigPool>(&wrong).unwrap_err();
        assert!(why.starts_with("spec.paused: invalid type: string"), "{why}");
    }
}
