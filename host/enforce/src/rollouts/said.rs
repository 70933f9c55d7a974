//! Who else has a node, in words.

use k8s_openapi::api::coordination::v1::Lease as Object;
use tread_kube::clean::clean;
use tread_kube::dated::timestamp;
use tread_kube::node_lease::REASON_ANNOTATION;
use tread_model::protocol::Lease;

/// The longest that is repeated of what others write.
const LONGEST: usize = 200;

/// Who holds a node's Lease, why, and until when.
pub(crate) fn holds(object: &Object, lease: &Lease) -> String {
    let spec = object.spec.as_ref();
    let holder = spec.and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default();
    let holder = match holder {
        "" => "somebody who does not say who".to_owned(),
        holder => short(holder),
    };
    let reason = object.metadata.annotations.as_ref().and_then(|all| all.get(REASON_ANNOTATION));
    let reason = reason.map(|reason| format!(" ({})", short(reason))).unwrap_or_default();
    let until = match lease.ends() {
        Some(ends) => format!("until {:.0}", timestamp(ends)),
        None => "until it gives it back".to_owned(),
    };
    format!("{holder} holds its Lease {until}{reason}")
}

fn short(text: &str) -> String {
    clean(text).chars().take(LONGEST).collect()
}
