//! Who else has a node, in words.

use k8s_openapi::api::coordination::v1::Lease as Object;
use tread_kube::clean::clean;
use tread_kube::dated::timestamp;
use tread_kube::node_lease::REASON_ANNOTATION;
use tread_model::protocol::Lease;

/// The longest that is repeated of what others write.
const LONGEST: usize = 200;

/// Who holds a node's Lease, since when, until when, and why.
pub(crate) fn holds(object: &Object, lease: &Lease) -> String {
    let spec = object.spec.as_ref();
    let holder = spec.and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default();
    let holder = match holder {
        "" => "somebody who does not say who".to_owned(),
        holder => short(holder),
    };
    let reason = object.metadata.annotations.as_ref().and_then(|all| all.get(REASON_ANNOTATION));
    let reason = reason.map(|reason| format!(" ({})", short(reason))).unwrap_or_default();
    let since = spec.and_then(|spec| spec.acquire_time.as_ref());
    let since = since.map(|at| format!("since {:.0} ", at.0)).unwrap_or_default();
    let until = match lease.ends() {
        Some(ends) => format!("until {:.0}", timestamp(ends)),
        None => "until it gives it back".to_owned(),
    };
    format!("{holder} holds its Lease {since}{until}{reason}")
}

fn short(text: &str) -> String {
    clean(text).chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tread_kube::node_lease;

    #[test]
    fn who_holds_a_lease_is_said_with_since_when_until_when_and_why() {
        let said = |spec: Value, reason: Option<&str>| {
            let annotations = reason.map(|reason| json!({REASON_ANNOTATION: reason}));
            let object = json!({"metadata": {"annotations": annotations}, "spec": spec});
            let object: Object = serde_json::from_value(object).unwrap();
            holds(&object, &node_lease::read(&object, "tread/1"))
        };
        let (acquired, renewed) = ("2026-10-21T07:00:00.250000Z", "2026-10-21T07:50:00.000000Z");
        let spec = json!({"holderIdentity": "somebody", "leaseDurationSeconds": 3600,
            "acquireTime": acquired, "renewTime": renewed});
        assert_eq!(
            said(spec, Some("a new\ndisk")),
            "somebody holds its Lease since 2026-10-21T07:00:00Z until 2026-10-21T08:50:00Z (a new; \
             disk)"
        );
        assert_eq!(
            said(json!({"renewTime": renewed}), None),
            "somebody who does not say who holds its Lease until it gives it back"
        );
    }
}
