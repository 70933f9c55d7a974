//! The law of the policy, tried by brute force: a node is not drained only if
//! every pull that worked still works and gives the same image, whatever is up.
//!
//! The runtime is modelled here a second time, word by word and without any
//! cleverness, over a world small enough to try all of it.

#![expect(
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a model in a test may panic: that is how it fails"
)]

mod runtime;
mod victims;
mod world;

use proptest::prelude::*;
use tread_guest_sdk::{Action, Context, Policy, test};
use tread_policy_registries::{Mirrors, Registries, Settings, ShortNames};
use victims::{Assumed, LONGEST, victim};
use world::{pair, side, toml};

fn assumed() -> impl Strategy<Value = Assumed> {
    let longest = proptest::sample::select(&[128, 128, 200, 255][..]);
    let lengths = proptest::array::uniform3(1..=LONGEST);
    let short_names = proptest::sample::select(vec![
        ShortNames::Unknown,
        ShortNames::Enforcing,
        ShortNames::Disabled,
    ]);
    (any::<bool>(), longest, lengths, short_names).prop_map(
        |(trusted, longest, lengths, short_names)| Assumed {
            trusted,
            longest,
            lengths,
            short_names,
        },
    )
}

fn drains(before: &str, after: &str, assumed: &Assumed) -> (bool, String) {
    let change = test::file("/etc/containers/registries.conf", before, after);
    let mirrors = if assumed.trusted { Mirrors::Trusted } else { Mirrors::Untrusted };
    let longest_name = assumed.longest.try_into().unwrap();
    let short_names = assumed.short_names;
    let settings = Settings { mirrors, longest_name, short_names, ..Settings::default() };
    let verdict = test::verdicts::<Registries>(&settings, vec![change], vec![]).remove(0);
    let reload = Action::reload("crio.service");
    assert!(verdict.actions().contains(&reload), "always reloaded: {}", verdict.reason());
    (verdict.actions().contains(&Action::Drain), verdict.reason().to_string())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_node_is_drained_exactly_if_a_pull_may_suffer((before, after) in pair(), assumed in assumed()) {
        let (drains, reason) = drains(&toml(&before), &toml(&after), &assumed);
        let victim = victim(&before, &after, &assumed);
        prop_assert_eq!(drains, victim.is_some(),
            "{}\n{:?}, {:?}\n--- before\n{}\n--- after\n{}",
            reason, victim, assumed, toml(&before), toml(&after));
    }

    #[test]
    fn what_means_the_same_never_drains(side in side(), assumed in assumed()) {
        let same = format!("# another comment\nunknown = 1\n{}", toml(&side));
        prop_assert!(!drains(&toml(&side), &same, &assumed).0);
    }

    /// Where the entries stand, in the main file or in a drop-in, is the same.
    #[test]
    fn a_drop_in_counts_as_if_it_were_in_the_main_file(side in side()) {
        let path = "/etc/containers/registries.conf.d/50-moved.conf";
        let changes = [
            test::file("/etc/containers/registries.conf", &toml(&side), "# moved\n"),
            test::file_added(path, &toml(&side)),
        ];
        let context = Context { changes: &changes, unchanged: &[] };
        for verdict in Registries::classify_all(&Settings::default(), &context) {
            prop_assert_eq!(verdict.actions(), &[Action::reload("crio.service")]);
        }
    }

    #[test]
    fn any_text_is_answered(before in ".{0,60}", after in "(registry|\\[|\\]|=|\"|'|a|\\.|\n| ){0,30}") {
        let _ = test::verdict::<Registries>(
            test::file("/etc/containers/registries.conf", &before, &after));
    }
}
