//! A node's Lease as an object: as medik8s and others use it, with what tread adds.

use crate::api::words::{NAME, PART_OF_LABEL};
use crate::dated::{time, timestamp};
use k8s_openapi::api::coordination::v1::{Lease as Object, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference};
use std::collections::BTreeMap;
use std::time::Duration;
use tread_model::object_name;
use tread_model::protocol::{Holder, Lease, Operation, Time};

/// Where nodes' Leases are, unless an admin says otherwise.
pub const NAMESPACE: &str = "medik8s-leases";
/// On a node's Lease that tread holds: the operation that it is held for.
pub const OPERATION_ANNOTATION: &str = "tread.dev/operation";
/// On a node's Lease: why it is held, in words.
pub const REASON_ANNOTATION: &str = "tread.dev/reason";

/// Which node a Lease is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfNode {
    /// The node's name.
    pub name: String,
    /// Its UID: the Lease goes with it.
    pub uid: String,
}

/// Who writes a Lease, of what, and when.
#[derive(Debug, Clone, Copy)]
pub struct Writes<'a> {
    /// The holder.
    pub us: &'a str,
    /// The node.
    pub node: &'a OfNode,
    /// Where the Lease is.
    pub namespace: &'a str,
    /// The API server's time.
    pub now: Time,
    /// Why it is held, in words.
    pub reason: Option<&'a str>,
}

/// The name of a node's Lease; nothing where no object could have it.
pub fn name(node: &str) -> Option<String> {
    let name = format!("node-{}", node.to_lowercase());
    object_name::is_name(&name).then_some(name)
}

/// Who an installation is, as the holder of Leases.
pub fn holder(uid: &str) -> String {
    format!("{NAME}/{uid}")
}

/// What a Lease says, for whoever calls itself `us`.
pub fn read(object: &Object, us: &str) -> Lease {
    let spec = object.spec.as_ref();
    let text = spec.and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default();
    let holder = match text == us {
        true => Holder::Us(operation(object)),
        false => Holder::Other,
    };
    let seconds = spec.and_then(|spec| spec.lease_duration_seconds);
    let lasts = seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
    let renewed = spec.and_then(|spec| spec.renew_time.as_ref()).and_then(|at| time(at.0));
    // So client-go gives a Lease back.
    let is_given_back = text.is_empty() && lasts.is_some_and(|lasts| lasts.as_secs() <= 1);
    let transitions = spec.and_then(|spec| spec.lease_transitions).unwrap_or_default();
    Lease {
        holder,
        transitions: u32::try_from(transitions).unwrap_or_default(),
        renewed: renewed.filter(|_| !is_given_back),
        lasts,
    }
}

fn operation(object: &Object) -> Option<Operation> {
    let text = object.metadata.annotations.as_ref()?.get(OPERATION_ANNOTATION)?;
    parse_operation(text)
}

/// An operation's id, as it is written: 32 hexadecimal digits.
pub fn operation_text(operation: Operation) -> String {
    format!("{:032x}", operation.0)
}

/// An operation's id, read again.
pub fn parse_operation(text: &str) -> Option<Operation> {
    let is_one = text.len() == 32 && text.bytes().all(|it| it.is_ascii_hexdigit());
    is_one.then(|| u128::from_str_radix(text, 16).ok().map(Operation)).flatten()
}

/// The object that says this. `before` is what it replaces: what is not tread's in it stays.
pub fn written(lease: &Lease, by: Writes<'_>, before: Option<&Object>) -> Object {
    let mut object = before.cloned().unwrap_or_default();
    let earlier = object.spec.take().unwrap_or_default();
    let transitions = i32::try_from(lease.transitions).unwrap_or(i32::MAX);
    let is_kept = earlier.holder_identity.as_deref() == Some(by.us)
        && earlier.lease_transitions == Some(transitions);
    let ObjectMeta { labels, annotations, .. } = &mut object.metadata;
    labels.get_or_insert_default().insert(PART_OF_LABEL.to_owned(), NAME.to_owned());
    let annotations = annotations.get_or_insert_default();
    note(annotations, lease);
    if let Some(reason) = by.reason {
        annotations.insert(REASON_ANNOTATION.to_owned(), reason.to_owned());
    } else if !is_kept {
        annotations.remove(REASON_ANNOTATION);
    }
    object.metadata.managed_fields = None;
    object.metadata.name = name(&by.node.name);
    object.metadata.namespace = Some(by.namespace.to_owned());
    object.metadata.owner_references = Some(vec![owner(by.node)]);
    let acquired = earlier.acquire_time.filter(|_| is_kept);
    object.spec = Some(LeaseSpec {
        holder_identity: Some(by.us.to_owned()),
        lease_duration_seconds: lease.lasts.map(whole_seconds),
        acquire_time: acquired.or_else(|| Some(MicroTime(timestamp(by.now)))),
        renew_time: lease.renewed.map(|at| MicroTime(timestamp(at))),
        lease_transitions: Some(transitions),
        // By which the API server's own controller would choose somebody.
        strategy: None,
        preferred_holder: None,
    });
    object
}

fn note(annotations: &mut BTreeMap<String, String>, lease: &Lease) {
    match lease.holder {
        Holder::Us(Some(operation)) => {
            annotations.insert(OPERATION_ANNOTATION.to_owned(), operation_text(operation));
        }
        _ => {
            annotations.remove(OPERATION_ANNOTATION);
        }
    }
}

fn owner(node: &OfNode) -> OwnerReference {
    OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        name: node.name.clone(),
        uid: node.uid.clone(),
        ..OwnerReference::default()
    }
}

/// Rounded up, and at least one: the API server takes no other.
fn whole_seconds(lasts: Duration) -> i32 {
    let seconds = lasts.as_secs() + u64::from(lasts.subsec_nanos() > 0);
    i32::try_from(seconds.max(1)).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const US: &str = "tread/1";

    fn node() -> OfNode {
        OfNode { name: "A".to_owned(), uid: "u".to_owned() }
    }

    fn ours() -> Lease {
        let renewed = Some(Time(Duration::from_micros(1_700_000_000_123_456)));
        let lasts = Some(Duration::from_secs(90));
        Lease { holder: Holder::Us(Some(Operation(7))), transitions: 3, renewed, lasts }
    }

    fn write(lease: &Lease, reason: Option<&str>, before: Option<&Object>) -> Object {
        let now = Time(Duration::from_secs(1_700_000_100));
        written(lease, Writes { us: US, node: &node(), namespace: NAMESPACE, now, reason }, before)
    }

    #[test]
    fn a_lease_is_read_as_it_was_written() {
        let object = write(&ours(), None, None);
        assert_eq!(object.metadata.name.as_deref(), Some("node-a"));
        assert_eq!(read(&object, US), ours());
        assert_eq!(read(&object, "tread/2").holder, Holder::Other);
        let claims_nothing = Lease { holder: Holder::Us(None), ..ours() };
        let object = write(&claims_nothing, None, Some(&object));
        assert_eq!(read(&object, US), claims_nothing);
    }

    #[test]
    fn a_renewal_keeps_when_and_why_it_was_acquired_and_what_others_wrote() {
        let mut first = write(&ours(), Some("a disk is changed"), None);
        let labels = first.metadata.labels.get_or_insert_default();
        labels.insert("a".to_owned(), "b".to_owned());
        let renewed = ours().renewed.map(|at| at.after(Duration::from_secs(9)));
        let later = Lease { renewed, ..ours() };
        let spec = |object: &Object| object.spec.clone().unwrap();
        spec(&first).acquire_time.unwrap();
        first.spec.as_mut().unwrap().acquire_time = Some(MicroTime(timestamp(Time::default())));
        let renewed = write(&later, None, Some(&first));
        assert_eq!(renewed.metadata.labels, first.metadata.labels);
        assert_eq!(renewed.metadata.annotations, first.metadata.annotations);
        assert_eq!(spec(&renewed).acquire_time, spec(&first).acquire_time);
        assert_ne!(spec(&renewed).renew_time, spec(&first).renew_time);
        let taken = write(&Lease { transitions: 4, ..later }, None, Some(&first));
        assert_ne!(spec(&taken).acquire_time, spec(&first).acquire_time);
        assert!(!taken.metadata.annotations.unwrap().contains_key(REASON_ANNOTATION));
    }

    #[test]
    fn what_strangers_write_in_a_lease_is_read_as_the_harsher() {
        let lease = |spec: serde_json::Value| {
            read(&serde_json::from_value(json!({"spec": spec})).unwrap(), US)
        };
        let at = "2026-10-21T07:28:00.000000Z";
        let held =
            lease(json!({"holderIdentity": "x", "renewTime": at, "leaseDurationSeconds": 60}));
        assert_eq!((held.holder, held.lasts), (Holder::Other, Some(Duration::from_secs(60))));
        let unnamed = lease(json!({"renewTime": at, "leaseDurationSeconds": 60}));
        assert_eq!((unnamed.holder, unnamed.renewed), (Holder::Other, held.renewed));
        let given_back =
            lease(json!({"holderIdentity": "", "renewTime": at, "leaseDurationSeconds": 1}));
        assert_eq!(given_back.renewed, None);
        let endless =
            lease(json!({"holderIdentity": "x", "renewTime": at, "leaseDurationSeconds": -5}));
        assert_eq!((endless.lasts, endless.transitions), (None, 0));
        assert_eq!(lease(json!({"leaseTransitions": -1})).transitions, 0);
        assert_eq!(read(&Object::default(), US).renewed, None);
    }

    #[test]
    fn operations_that_are_none_are_not_read() {
        assert_eq!(
            parse_operation(&operation_text(Operation(u128::MAX))),
            Some(Operation(u128::MAX))
        );
        for bad in ["", "7", "+0000000000000000000000000000007", "zz000000000000000000000000000007"]
        {
            assert_eq!(parse_operation(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_node_whose_lease_could_not_have_its_name_has_none() {
        assert!(name(&"n".repeat(248)).is_some());
        assert_eq!(name(&"n".repeat(249)), None);
        for bad in ["a/../b", "a?watch=1", "a,metadata.name=b", "a b", "a\u{1b}"] {
            assert_eq!(name(bad), None, "{bad}");
        }
    }
}
