//! What somebody who asks for a Lease gets: medik8s' rules, and stricter where clocks may differ.

use k8s_openapi::api::coordination::v1::Lease as Object;
use std::fmt;
use std::time::Duration;
use tread_kube::clean::clean;
use tread_kube::dated::shown;
use tread_kube::node_lease::REASON_ANNOTATION;
use tread_model::protocol::{Holder, Lease, Terms, Time};

/// What somebody who asks for a Lease gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// There is none: this one is made.
    Make(Lease),
    /// It is taken, or lasts longer: this is written.
    Write(Lease),
    /// They hold it for long enough already: until then.
    Keep(Time),
    /// Somebody else holds it.
    Held(HeldBy),
}

/// Somebody else who holds a Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBy {
    /// What they call themselves.
    pub holder: String,
    /// Until when, by what they wrote; nothing if it never ends by itself.
    pub until: Option<Time>,
    /// When it may be taken, by every clock.
    pub free: Option<Time>,
    /// Why they hold it, if they say so.
    pub reason: Option<String>,
    /// When this was looked at.
    pub now: Time,
    /// The version of the Lease that was looked at.
    pub version: Option<String>,
}

/// What somebody gets who asks for a Lease that is to last for so long.
pub fn answer(
    object: Option<&Object>,
    lease: Option<Lease>,
    now: Time,
    lasts: Duration,
    terms: &Terms,
) -> Answer {
    let with = |transitions| Lease::ours(None, transitions, now, lasts, terms);
    let (Some(object), Some(lease)) = (object, lease) else { return Answer::Make(with(0)) };
    match lease.holder {
        Holder::Us(_) if lease.left(now) >= lasts => Answer::Keep(now.after(lease.left(now))),
        Holder::Us(_) => Answer::Write(with(lease.transitions)),
        Holder::Other if lease.is_anothers(now, terms) => {
            Answer::Held(HeldBy::of(object, &lease, now, terms))
        }
        Holder::Other => Answer::Write(with(lease.transitions.saturating_add(1))),
    }
}

impl HeldBy {
    /// Who holds this one.
    pub fn of(object: &Object, lease: &Lease, now: Time, terms: &Terms) -> HeldBy {
        let spec = object.spec.as_ref();
        let holder = spec.and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default();
        let reason =
            object.metadata.annotations.as_ref().and_then(|all| all.get(REASON_ANNOTATION));
        HeldBy {
            holder: if holder.is_empty() {
                "somebody without a name".to_owned()
            } else {
                clean(holder)
            },
            until: lease.ends(),
            free: lease.ends().map(|ends| ends.after(terms.skew)),
            reason: reason.map(|reason| clean(reason)),
            now,
            version: object.metadata.resource_version.clone(),
        }
    }
}

impl fmt::Display for HeldBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} holds it", self.holder)?;
        if let Some(reason) = &self.reason {
            write!(f, " ({reason})")?;
        }
        match (self.until, self.free) {
            (Some(until), _) if until > self.now => write!(f, ", until {}", shown(until)),
            (Some(until), Some(free)) => write!(
                f,
                ": it ended at {}, and may be taken from {} on, since its holder's clock may be late",
                shown(until),
                shown(free)
            ),
            _ => f.write_str(", and does not say until when: its holder has to give it back"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::{Value, json};
    use tread_kube::node_lease::read;

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Case {
        name: String,
        lease: Option<Value>,
        medik8s: String,
        tread: String,
        #[serde(default)]
        why: String,
    }

    /// What a Lease says in a case: times are in seconds from now on.
    fn object(spec: &Value) -> Object {
        let at = |field: &str| {
            let seconds = spec.get(field)?.as_f64().unwrap();
            let at = 1_800_000_000.0 + seconds;
            Some(json!(k8s_openapi::jiff::Timestamp::from_second(at as i64).unwrap()))
        };
        let spec = json!({
            "holderIdentity": spec.get("holder"),
            "leaseDurationSeconds": spec.get("lasts"),
            "leaseTransitions": spec.get("transitions"),
            "acquireTime": at("acquired"),
            "renewTime": at("renewed"),
        });
        serde_json::from_value(json!({"spec": spec})).unwrap()
    }

    #[test]
    fn who_asks_gets_what_the_table_says() {
        let text = include_str!("../../../../tests/cases/leases.yaml");
        let cases: Vec<Case> = serde_saphyr::from_str(text).unwrap();
        assert!(cases.len() >= 11, "{}", cases.len());
        let now = Time(Duration::from_secs(1_800_000_000));
        let hour = Duration::from_secs(3600);
        for Case { name, lease, medik8s, tread, why } in cases {
            let object = lease.as_ref().map(object);
            let lease = object.as_ref().map(|it| read(it, "some-operator"));
            let before = lease.map_or(0, |lease| lease.transitions);
            let says = match answer(object.as_ref(), lease, now, hour, &Terms::default()) {
                Answer::Make(_) => "made",
                Answer::Keep(_) => "kept",
                Answer::Held(_) => "refused",
                Answer::Write(lease) if lease.transitions == before => "renewed",
                Answer::Write(_) => "taken",
            };
            assert_eq!(says, tread, "{name}");
            assert_eq!(medik8s == tread, why.is_empty(), "{name}: a difference has a reason");
        }
    }

    #[test]
    fn whoever_holds_a_lease_is_named_with_all_that_is_known() {
        let now = Time(Duration::from_secs(1_800_000_000));
        let described = |spec: Value| {
            let mut object = object(&spec);
            let reason = (REASON_ANNOTATION.to_owned(), "a disk\u{1b}[31m".to_owned());
            object.metadata.annotations = Some([reason].into());
            let lease = read(&object, "us");
            HeldBy::of(&object, &lease, now, &Terms::default()).to_string()
        };
        let held = described(json!({"holder": "x", "renewed": 0, "lasts": 60}));
        assert!(held.starts_with("x holds it (a disk"), "{held}");
        assert!(held.ends_with("until 2027-01-15T08:01:00Z"), "{held}");
        assert!(!held.contains('\u{1b}'), "{held}");
        let late = described(json!({"holder": "x", "renewed": -120, "lasts": 60}));
        assert!(late.contains("may be taken from 2027-01-15T08:10:00Z on"), "{late}");
        let endless = described(json!({"renewed": -120}));
        assert!(endless.starts_with("somebody without a name holds it"), "{endless}");
        assert!(endless.contains("has to give it back"), "{endless}");
    }
}
