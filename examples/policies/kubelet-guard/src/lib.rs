//! Keeps the kubelets of the control plane as they are: a change to their
//! configuration is refused until an admin opens the guard.
//!
//! It never allows anything: what it does not refuse, it leaves to others.

mod role;

use role::Role;
use serde::{Deserialize, Serialize};
use tread_guest_sdk::{
    Change, Claim, Content, Context, Effect, File, Policy, State, Unit, Verdict, diff, export,
};

/// The policy.
pub struct KubeletGuardPolicy;

/// What an admin can set, with the defaults below.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Lets every change through: for the time of a maintenance.
    pub open: bool,
    /// Lets changes through that come together with another OS image, as those
    /// of a release do.
    pub open_for_releases: bool,
    /// Whose configuration it is: `detect` reads it from the labels with which
    /// the kubelet registers; `control-plane` and `worker` say it.
    pub role: String,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { open: false, open_for_releases: true, role: role::DETECT.to_owned() }
    }
}

const SERVICE: &str = "unit:kubelet.service";

impl Policy for KubeletGuardPolicy {
    type Settings = Settings;
    const NAME: &'static str = env!("CARGO_PKG_NAME");
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str =
        "Refuses changes to the kubelet's configuration on the control plane";
    // It can refuse and nothing else: whoever installs it reads that here.
    const CLAIMS: &'static [Claim] = &[
        Claim::on("file:/etc/kubernetes/kubelet.conf", Effect::Refuse, Effect::Refuse),
        Claim::on("file:/etc/kubernetes/kubelet.conf.d/*.conf", Effect::Refuse, Effect::Refuse),
        Claim::on("file:/etc/kubernetes/kubelet-env", Effect::Refuse, Effect::Refuse),
        // Unchanged as well: it says whose kubelet this is.
        Claim::on(SERVICE, Effect::Refuse, Effect::Refuse).with_unchanged(),
        // Only to see a release coming; never answered.
        Claim::on("os-image", Effect::Refuse, Effect::Refuse),
    ];

    fn check(settings: &Settings) -> Result<(), Vec<String>> {
        if Role::named(&settings.role).is_some() || settings.role == role::DETECT {
            return Ok(());
        }
        Err(vec!["role: expected detect, control-plane or worker".to_owned()])
    }

    fn classify(settings: &Settings, change: &Change, context: &Context<'_>) -> Verdict {
        let release = || context.changes.iter().any(|change| change.kind() == "os-image");
        if change.kind() == "os-image"
            || settings.open
            || (settings.open_for_releases && release())
            || same(&change.before, &change.after)
        {
            return Verdict::abstain();
        }
        match Role::named(&settings.role).or_else(|| role::detect(context)) {
            Some(Role::Worker) => Verdict::abstain(),
            Some(Role::ControlPlane) => Verdict::refuse(
                "this is a control plane's kubelet, which kubelet-guard keeps as it is; to change \
                 it, set open of kubelet-guard for the time of a maintenance",
            ),
            None => Verdict::refuse(
                "kubelet.service does not say whether this is a control plane: set role of \
                 kubelet-guard, or open it for the time of a maintenance",
            ),
        }
    }
}

export!(KubeletGuardPolicy);

/// Whether the kubelet is told the same on both sides, comments aside.
fn same(before: &State, after: &State) -> bool {
    match (before, after) {
        (State::File(before), State::File(after)) => {
            let owners = |file: &File| (file.mode, file.user.clone(), file.group.clone());
            owners(before) == owners(after) && says_the_same(&before.content, &after.content)
        }
        (State::Unit(before), State::Unit(after)) => {
            let switches = |unit: &Unit| (unit.enabled, unit.masked);
            let pairs = || before.dropins.iter().zip(&after.dropins);
            switches(before) == switches(after)
                && says_the_same(&before.contents, &after.contents)
                && before.dropins.len() == after.dropins.len()
                && pairs().all(|(one, other)| {
                    one.name == other.name && says_the_same(&one.contents, &other.contents)
                })
        }
        (before, after) => before == after,
    }
}

/// In YAML, in units and in environments alike a line that starts with # is a
/// comment; what stands in front of a key counts in YAML, and so it counts here.
fn says_the_same(before: &Content, after: &Content) -> bool {
    fn lines(text: &str) -> Vec<&str> {
        let lines = text.lines().map(str::trim_end);
        lines.filter(|line| !line.is_empty() && !line.trim_start().starts_with('#')).collect()
    }
    match (before.text(), after.text()) {
        (Some(before), Some(after)) => {
            diff::lines(before, after).is_empty() || lines(before) == lines(after)
        }
        _ => before == after,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_guest_sdk::{Entry, test};

    const CONF: &str = "/etc/kubernetes/kubelet.conf";

    fn service(role: &str) -> String {
        format!(
            "[Service]\nExecStart=/usr/bin/kubelet \\\n  --config=/etc/kubernetes/kubelet.conf \\\n  \
             --node-labels=node-role.kubernetes.io/{role},node.openshift.io/os_id=${{ID}} \\\n  --v=2\n"
        )
    }

    fn beside(role: &str) -> Vec<Entry> {
        let state = test::unit_state(&service(role));
        vec![Entry { id: SERVICE.to_owned(), state }]
    }

    fn effect(settings: &Settings, changes: Vec<Change>, unchanged: Vec<Entry>) -> Option<Effect> {
        test::verdicts::<KubeletGuardPolicy>(settings, changes, unchanged)[0].effect()
    }

    fn more_pods() -> Vec<Change> {
        vec![test::file(CONF, "maxPods: 250\n", "maxPods: 500\n")]
    }

    #[test]
    fn on_a_control_plane_and_where_it_is_not_known_a_change_is_refused() {
        for (unchanged, expected) in [
            (beside("master"), Some(Effect::Refuse)),
            (beside("control-plane"), Some(Effect::Refuse)),
            (beside("worker"), None),
            (beside("gpu"), Some(Effect::Refuse)),
            (vec![], Some(Effect::Refuse)),
        ] {
            assert_eq!(effect(&Settings::default(), more_pods(), unchanged), expected);
        }
    }

    #[test]
    fn a_comment_is_left_to_others_and_indentation_counts() {
        for (after, expected) in [
            ("# more\nkind: A\nlogging:\n  verbosity: 2\n", None),
            ("kind: A\nlogging:\nverbosity: 2\n", Some(Effect::Refuse)),
        ] {
            let change = test::file(CONF, "kind: A\nlogging:\n  verbosity: 2\n", after);
            assert_eq!(effect(&Settings::default(), vec![change], beside("master")), expected);
        }
    }

    #[test]
    fn an_admin_can_open_it_and_say_the_role() {
        let set = |json: &str| test::settings::<KubeletGuardPolicy>(json);
        for (settings, unchanged, expected) in [
            (r#"{"open": true}"#, beside("master"), None),
            (r#"{"role": "worker"}"#, beside("master"), None),
            (r#"{"role": "control-plane"}"#, beside("worker"), Some(Effect::Refuse)),
        ] {
            assert_eq!(effect(&set(settings).unwrap(), more_pods(), unchanged), expected);
        }
        assert!(set(r#"{"role": "master"}"#).err().unwrap()[0].starts_with("role: "));
    }

    #[test]
    fn a_release_passes_unless_an_admin_says_otherwise() {
        let release = || {
            let mut changes = more_pods();
            changes.push(test::text("os-image", "a@sha256:1", "a@sha256:2"));
            changes
        };
        assert_eq!(effect(&Settings::default(), release(), beside("master")), None);
        let closed = Settings { open_for_releases: false, ..Settings::default() };
        assert_eq!(effect(&closed, release(), beside("master")), Some(Effect::Refuse));
    }

    #[test]
    fn a_kubelet_that_becomes_a_control_plane_s_is_guarded() {
        let change = test::unit("kubelet.service", &service("worker"), &service("master"));
        assert_eq!(effect(&Settings::default(), vec![change], vec![]), Some(Effect::Refuse));
    }

    #[test]
    fn another_mode_counts_and_other_comments_of_a_drop_in_do_not() {
        let mut change = test::file(CONF, "a: 1", "a: 1");
        if let State::File(file) = &mut change.after {
            file.mode = 0o600;
        }
        assert_eq!(
            effect(&Settings::default(), vec![change], beside("master")),
            Some(Effect::Refuse)
        );
        let mut change = test::unit("kubelet.service", &service("master"), &service("master"));
        for (side, text) in
            [(&mut change.before, "[Service]\n"), (&mut change.after, "# a\n[Service]\n")]
        {
            if let State::Unit(unit) = side {
                let contents = Content::Bytes(text.as_bytes().to_vec());
                unit.dropins
                    .push(tread_guest_sdk::Dropin { name: "10-a.conf".to_owned(), contents });
            }
        }
        assert_eq!(effect(&Settings::default(), vec![change], vec![]), None);
    }
}
