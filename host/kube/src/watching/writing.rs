//! What could not be written, for whoever asks how it stands.

use super::watches::{Unwritten, Watches};
use crate::asking::{Failed, lacks_rights};
use crate::metrics::Metrics;
use kube::Client;

impl Unwritten {
    /// What is not written, and the call that failed.
    pub async fn of(client: &Client, metrics: &Metrics, what: &str, failed: &Failed) -> Unwritten {
        let lacks_rights = lacks_rights(client, metrics, failed).await;
        Unwritten { why: format!("{what}: {failed}"), lacks_rights }
    }

    /// Several of them as one.
    pub fn together(all: Vec<Unwritten>) -> Option<Unwritten> {
        let whys: Vec<&str> = all.iter().map(|it| it.why.as_str()).collect();
        let lacks_rights = all.iter().any(|it| it.lacks_rights);
        (!all.is_empty()).then(|| Unwritten { why: whys.join("; "), lacks_rights })
    }
}

impl From<String> for Unwritten {
    fn from(why: String) -> Unwritten {
        Unwritten { why, lacks_rights: false }
    }
}

impl Watches {
    /// Notes why something is not written yet, or that all of it is: `policies`,
    /// `plans`.
    pub fn unwritten(&self, what: &'static str, why: Option<Unwritten>) {
        self.unwritten.send_if_modified(|all| {
            let before = all.get(what).cloned();
            match &why {
                Some(why) => all.insert(what, why.clone()),
                None => all.remove(what),
            };
            before != why
        });
    }

    /// What is not written, and tried again, in words. Empty: all is written.
    pub fn not_written(&self) -> Vec<String> {
        let all = self.unwritten.borrow();
        all.iter().map(|(what, it)| format!("{what}: {}", it.why)).collect()
    }

    /// Whether some of it is not written for want of rights.
    pub fn lacks_rights(&self) -> bool {
        self.unwritten.borrow().values().any(|it| it.lacks_rights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_written_is_said_until_it_was() {
        let watches = Watches::default();
        assert!(watches.not_written().is_empty());
        let because =
            |why: &str, lacks_rights| Some(Unwritten { why: why.to_owned(), lacks_rights });
        watches.unwritten("plans", because("too many requests", false));
        watches.unwritten("policies", None);
        assert_eq!(watches.not_written(), ["plans: too many requests"]);
        assert!(!watches.lacks_rights());
        watches.unwritten("policies", because("forbidden", true));
        assert!(watches.lacks_rights());
        watches.unwritten("policies", None);
        watches.unwritten("plans", None);
        assert!(watches.not_written().is_empty());
    }
}
