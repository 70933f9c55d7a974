//! SSH keys and password hashes take effect as soon as they are written: sshd
//! and PAM read them at every login.

use tread_guest_sdk::{Change, Claim, Context, Effect, Policy, Verdict, export};

/// The policy `ssh-keys`.
pub struct SshKeys;

impl Policy for SshKeys {
    type Settings = ();
    const NAME: &'static str = "ssh-keys";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "SSH keys and password hashes are read at every login";
    const CLAIMS: &'static [Claim] = &[
        Claim::on("ssh-keys:*", Effect::None, Effect::None),
        Claim::on("password:*", Effect::None, Effect::None),
    ];

    fn classify((): &(), change: &Change, _: &Context<'_>) -> Verdict {
        match change.kind() {
            "ssh-keys" => Verdict::nothing("sshd reads the authorized keys at every login"),
            "password" => Verdict::nothing("the password hash is read at every login"),
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
    fn a_new_password_needs_nothing_though_it_is_seen_as_a_digest_only() {
        let digest = |text: &str| State::Digest(text.to_string());
        let change = Change {
            id: "password:core".to_string(),
            before: digest("sha256:aa"),
            after: digest("sha256:bb"),
        };
        assert_eq!(test::verdict::<SshKeys>(change).effect(), Some(Effect::None));
    }

    #[test]
    fn the_reason_names_no_key() {
        let change = test::list("ssh-keys:core", &[], &["ssh-ed25519 AAAA me@home"]);
        assert!(!test::verdict::<SshKeys>(change).reason().contains("AAAA"));
    }
}
