//! SSH keys and password hashes take effect as soon as they are written: sshd
//! and PAM read them at every login.

use tread_guest_sdk::{Change, Claim, Context, Effect, Policy, Verdict, export};

/// The policy `ssh-keys`.
pub struct SshKeys;

const KEYS_READ: &str = "sshd reads the authorized keys at every login";
const HASH_READ: &str = "the password hash is read at every login";

impl Policy for SshKeys {
    type Settings = ();
    const NAME: &'static str = "ssh-keys";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "SSH keys and password hashes are read at every login";
    const CLAIMS: &'static [Claim] = &[
        Claim::on("ssh-keys:*", Effect::None, Effect::None),
        Claim::on("password:*", Effect::None, Effect::None),
    ];

    const REASONS: &'static [&'static str] = &[KEYS_READ, HASH_READ];

    fn classify((): &(), change: &Change, _: &Context<'_>) -> Verdict {
        match change.kind() {
            "ssh-keys" => Verdict::nothing(KEYS_READ),
            "password" => Verdict::nothing(HASH_READ),
            _ => Verdict::abstain(),
        }
    }
}

export!(SshKeys);

#[cfg(test)]
mod tests {
    use super::*;
    use tread_guest_sdk::{State, test};

    #[test]
    fn new_keys_need_nothing() {
        for (before, after) in
            [(&["ssh-ed25519 a"][..], &["ssh-ed25519 b"][..]), (&[], &["a"]), (&["a", "b"], &["b"])]
        {
            let verdict = test::verdict::<SshKeys>(test::list("ssh-keys:core", before, after));
            assert_eq!(verdict.effect(), Some(Effect::None));
        }
    }

    #[test]
    fn a_new_password_needs_nothing_though_it_is_seen_as_a_token_only() {
        let token = |text: &str| State::Digest(text.to_string());
        let change = Change {
            id: "password:core".to_string(),
            before: token("secret:1"),
            after: token("secret:2"),
        };
        assert_eq!(test::verdict::<SshKeys>(change).effect(), Some(Effect::None));
    }

    #[test]
    fn the_reason_names_no_key() {
        let change = test::list("ssh-keys:core", &[], &["ssh-ed25519 AAAA me@home"]);
        assert!(!test::verdict::<SshKeys>(change).reason().contains("AAAA"));
    }
}
