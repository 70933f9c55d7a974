//! How it stands with the certificates.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Key of the problem that the API server asks at an address which the certificate is
/// not for.
pub(super) const ADDRESS: &str = "address";

/// How it stands, for whoever asks.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Until when what is served is good, in seconds since 1970.
    pub(super) ends: Option<u64>,
    /// What is wrong, by the kind of object.
    pub(super) problems: BTreeMap<&'static str, String>,
    /// How it stands with the webhook's configuration.
    pub(super) registration: String,
}

pub(super) fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// How it stands with what is served until `ends`.
    pub(super) fn said(&self, ends: &str) -> String {
        let problems = self.problems.values().map(String::as_str);
        // Asked at an address that the certificate is not for, it warns nobody,
        // whatever the API server was told.
        match self.problems.contains_key(ADDRESS) {
            true => problems.chain([ends]).collect::<Vec<_>>().join("; "),
            false => {
                let said = [ends, self.registration.as_str()].into_iter();
                said.chain(problems).collect::<Vec<_>>().join("; ")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_api_server_asks_in_vain_it_is_not_said_that_warnings_are_asked_for() {
        let mut state =
            State { registration: "warnings are asked for".to_owned(), ..State::default() };
        assert_eq!(state.said("good until then"), "good until then; warnings are asked for");
        state.problems.insert("Secret", "no answer".to_owned());
        assert!(state.said("").ends_with("warnings are asked for; no answer"));
        state.problems.insert(ADDRESS, "nobody is warned: so it is".to_owned());
        let said = state.said("good until then");
        assert!(!said.contains("asked for") && said.contains("nobody is warned"), "{said}");
        assert!(said.ends_with("; good until then"), "{said}");
    }
}
