//! What could not be written, for whoever asks how it stands.

use super::Watches;

impl Watches {
    /// Notes why something is not written yet, or that all of it is: `policies`,
    /// `plans`.
    pub fn unwritten(&self, what: &'static str, why: Option<String>) {
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
        all.iter().map(|(what, why)| format!("{what}: {why}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_written_is_said_until_it_was() {
        let watches = Watches::default();
        assert!(watches.not_written().is_empty());
        watches.unwritten("plans", Some("too many requests".to_owned()));
        watches.unwritten("policies", None);
        assert_eq!(watches.not_written(), ["plans: too many requests"]);
        watches.unwritten("plans", None);
        assert!(watches.not_written().is_empty());
    }
}
