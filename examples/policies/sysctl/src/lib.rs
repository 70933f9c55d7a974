//! When kernel parameters can be set on a node that runs.
//!
//! `systemd-sysctl.service` writes what the files in sysctl.d say, and writes it
//! again when it is restarted. So a value that comes or changes needs no boot,
//! if the kernel takes it while it runs. A value that goes does: nothing
//! puts back what the kernel had before.

mod files;
mod kernel;

use files::{File, Values, path_of, shown};
use kernel::Needs;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tread_guest_sdk::{Change, Claim, Context, Edit, Effect, Policy, State, Verdict, export, glob};

/// The policy.
pub struct SysctlPolicy;

/// What an admin can set, with the defaults below.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// More keys that count once they are written; `*` stands for a part.
    pub live: Vec<String>,
    /// More keys that need a boot; they win over `live`.
    pub reboot: Vec<String>,
    /// Names of files that the operating system brings in /usr/lib/sysctl.d: one
    /// of the same name in /etc takes its place as a whole.
    pub system_files: Vec<String>,
}

impl Default for Settings {
    fn default() -> Settings {
        let system = [
            "10-coreos-ratelimit-kmsg.conf",
            "10-default-yama-scope.conf",
            "50-coredump.conf",
            "50-default.conf",
            "50-libkcapi-optmem_max.conf",
            "50-pid-max.conf",
            "50-redhat.conf",
            "99-sysctl.conf",
        ];
        Settings {
            live: Vec::new(),
            reboot: Vec::new(),
            system_files: system.map(str::to_owned).to_vec(),
        }
    }
}

const UNIT: &str = "systemd-sysctl.service";

impl Policy for SysctlPolicy {
    type Settings = Settings;
    const NAME: &'static str = env!("CARGO_PKG_NAME");
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str =
        "Sets kernel parameters without a boot where the kernel allows it";
    // Unchanged as well: a later file may set the same key.
    const CLAIMS: &'static [Claim] =
        &[Claim::on("file:/etc/sysctl.d/*.conf", Effect::None, Effect::Refuse).with_unchanged()];

    fn check(settings: &Settings) -> Result<(), Vec<String>> {
        let keys = [("live", &settings.live), ("reboot", &settings.reboot)];
        let named = keys.iter().flat_map(|(name, keys)| keys.iter().map(move |key| (name, key)));
        let wrong = named.filter(|(_, key)| !key.contains(['.', '/']) || key.contains(['=', ' ']));
        let errors: Vec<String> =
            wrong.map(|(name, _)| format!("{name}: expected keys such as vm.swappiness")).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    fn classify(settings: &Settings, change: &Change, context: &Context<'_>) -> Verdict {
        let Some(sides) = Sides::of(context) else {
            // One that cannot be read may set anything.
            return Verdict::abstain();
        };
        let path = change.path().unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default();
        if let Some(line) = sides.after.get(path).and_then(|file| file.broken_line) {
            return Verdict::refuse(format!(
                "line {line} is no assignment, and {UNIT} would fail: write it as key = value"
            ));
        }
        if change.edit() != Edit::Changed && settings.system_files.iter().any(|file| file == name) {
            return Verdict::reboot(
                "the operating system has a file of this name, and which of the two counts changes",
            );
        }
        sides.verdict(settings, path)
    }
}

export!(SysctlPolicy);

/// All files of sysctl.d that the configuration brings, by path.
struct Sides {
    before: BTreeMap<String, File>,
    after: BTreeMap<String, File>,
}

impl Sides {
    /// None if one of them cannot be read.
    fn of(context: &Context<'_>) -> Option<Sides> {
        let mut sides = Sides { before: BTreeMap::new(), after: BTreeMap::new() };
        for entry in context.unchanged {
            for side in [&mut sides.before, &mut sides.after] {
                add(side, entry.path(), &entry.state)?;
            }
        }
        for change in context.changes {
            add(&mut sides.before, change.path(), &change.before)?;
            add(&mut sides.after, change.path(), &change.after)?;
        }
        Some(sides)
    }

    /// On the keys that this file names, in the light of all others.
    fn verdict(&self, settings: &Settings, path: &str) -> Verdict {
        let (before, after) = (Values::of(&self.before), Values::of(&self.after));
        let of_file = [&self.before, &self.after].into_iter().filter_map(|side| side.get(path));
        let names = of_file.flat_map(File::names).collect();
        let differ = before.changed(&after, path, names);
        if differ.iter().any(|name| before.is_uncertain(&after, name)) {
            return Verdict::reboot(
                "a key with * or an exception changes: which parameters it is about is known on \
                 the node only",
            );
        }
        let (changed, gone): (Vec<&str>, Vec<&str>) =
            differ.into_iter().partition(|name| after.has(name));
        if let Some(first) = gone.first() {
            return Verdict::reboot(format!(
                "{} is not set any more, and the kernel keeps its old value until it boots",
                and_more(first, gone.len())
            ));
        }
        for name in &changed {
            let why = match needs(settings, name) {
                Needs::Writing => continue,
                Needs::Boot(why) => why,
                Needs::Unknown => {
                    "nothing gentler is known for it; the setting live of this policy can say so"
                }
            };
            return Verdict::reboot(format!("{}: {why}", short(name)));
        }
        match changed.first() {
            None => Verdict::nothing(
                "no value changes: only comments, layout, or what another file sets anyway",
            ),
            Some(first) => Verdict::restart(
                UNIT,
                format!("{} is set when the service runs again", and_more(first, changed.len())),
            ),
        }
    }
}

fn add(side: &mut BTreeMap<String, File>, path: Option<&str>, state: &State) -> Option<()> {
    if !state.is_absent() {
        side.insert(path?.to_owned(), File::read(state.as_text()?));
    }
    Some(())
}

fn needs(settings: &Settings, path: &str) -> Needs {
    let says = |keys: &[String]| keys.iter().any(|key| glob::matches(&path_of(key), path));
    if says(&settings.reboot) {
        return Needs::Boot("the settings of this policy ask for a boot");
    }
    if says(&settings.live) { Needs::Writing } else { kernel::needs(path) }
}

/// `vm.swappiness and 2 more`
fn and_more(first: &str, count: usize) -> String {
    match count {
        0 | 1 => short(first),
        count => format!("{} and {} more", short(first), count - 1),
    }
}

/// A key as people write it; whatever else stands in its place is cut.
fn short(path: &str) -> String {
    shown(path).chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use tread_guest_sdk::{Entry, test};

    const FILE: &str = "/etc/sysctl.d/50-ours.conf";

    fn verdict(changes: Vec<Change>, unchanged: Vec<Entry>) -> Verdict {
        test::verdicts::<SysctlPolicy>(&Settings::default(), changes, unchanged).swap_remove(0)
    }

    #[test]
    fn a_value_that_the_kernel_takes_while_it_runs_is_set_again() {
        for (before, after, effect) in [
            ("vm.swappiness = 10", "# ours\nvm/swappiness=10", Effect::None),
            ("vm.swappiness = 10", "vm.swappiness = 20", Effect::Restart),
            ("vm.swappiness = 10", "vm.swappiness = 10\nfs.file-max = 9", Effect::Restart),
            ("vm.swappiness = 10", "vm.swappiness = 10\nnet.ipv4.ip_forward = 1", Effect::Reboot),
            ("vm.swappiness = 10", "vm.swappiness = 10\nkernel.new = 1", Effect::Reboot),
            ("vm.swappiness = 10\nfs.file-max = 9", "fs.file-max = 9", Effect::Reboot),
            ("vm.swappiness = 10", "net.ipv4.conf.*.rp_filter = 1", Effect::Reboot),
            ("vm.swappiness = 10", "vm.swappiness 20", Effect::Refuse),
        ] {
            let verdict = verdict(vec![test::file(FILE, before, after)], vec![]);
            assert_eq!(verdict.effect(), Some(effect), "{before:?} to {after:?}");
        }
    }

    #[test]
    fn what_a_later_file_sets_anyway_needs_nothing() {
        let beside = |name: &str| {
            vec![test::unchanged_file(&format!("/etc/sysctl.d/{name}"), "vm.swappiness = 60")]
        };
        let change = || vec![test::file(FILE, "vm.swappiness = 10", "vm.swappiness = 20")];
        assert_eq!(verdict(change(), beside("99-all.conf")).effect(), Some(Effect::None));
        assert_eq!(verdict(change(), beside("10-all.conf")).effect(), Some(Effect::Restart));
    }

    /// The answers for all changes, which are the same.
    fn together(changes: Vec<Change>, unchanged: Vec<Entry>) -> Option<Effect> {
        let verdicts = test::verdicts::<SysctlPolicy>(&Settings::default(), changes, unchanged);
        let effects: BTreeSet<_> = verdicts.iter().map(Verdict::effect).collect();
        assert_eq!(effects.len(), 1, "{verdicts:?}");
        effects.into_iter().next().flatten()
    }

    #[test]
    fn a_key_that_moves_to_another_file_is_set_again_since_one_of_the_system_may_stand_between() {
        for (text, effect) in [
            ("kernel.sysrq = 1", Effect::Restart),
            ("net.ipv4.ip_forward = 1", Effect::Reboot),
            ("net.ipv4.conf.*.rp_filter = 1", Effect::Reboot),
            ("-net.ipv4.conf.lo.rp_filter", Effect::Reboot),
            ("# nothing yet", Effect::None),
        ] {
            let changes = vec![
                test::file_removed("/etc/sysctl.d/99-a.conf", text),
                test::file_added("/etc/sysctl.d/10-a.conf", text),
            ];
            assert_eq!(together(changes, vec![]), Some(effect), "{text}");
        }
        // The key gets its value in an earlier file than before.
        let change = || vec![test::file(FILE, "kernel.sysrq = 0", "kernel.sysrq = 1")];
        let later = vec![test::unchanged_file("/etc/sysctl.d/99-a.conf", "kernel.sysrq = 1")];
        assert_eq!(together(change(), later), Some(Effect::Restart));
    }

    #[test]
    fn keys_that_change_places_are_set_again_since_one_may_reset_the_other() {
        let (ratio, bytes) = ("vm.dirty_ratio = 30", "vm.dirty_bytes = 4096");
        for (before, after, effect) in [
            (format!("{ratio}\n{bytes}"), format!("{bytes}\n{ratio}"), Effect::Restart),
            (
                format!("{ratio}\nnet.ipv4.ip_forward = 1"),
                format!("net.ipv4.ip_forward = 1\n{ratio}"),
                Effect::Reboot,
            ),
            (
                format!("{ratio}\nnet.ipv4.conf.*.rp_filter = 1"),
                format!("net.ipv4.conf.*.rp_filter = 1\n{ratio}"),
                Effect::Reboot,
            ),
            // The last value counts from where it first stands.
            (format!("{ratio}\n{bytes}\n{ratio}"), format!("{ratio}\n{bytes}"), Effect::None),
            (format!("{ratio}\n{bytes}"), format!("{ratio}\n# b\n\n{bytes}"), Effect::None),
            // What stays where it is beside a new key is not asked for a boot.
            (
                format!("net.ipv4.ip_forward = 1\n{bytes}"),
                format!("{ratio}\nnet.ipv4.ip_forward = 1\nfs.file-max = 9\n{bytes}"),
                Effect::Restart,
            ),
        ] {
            let found = together(vec![test::file(FILE, &before, &after)], vec![]);
            assert_eq!(found, Some(effect), "{before:?} to {after:?}");
        }
    }

    #[test]
    fn a_file_that_hides_one_of_the_system_needs_a_boot() {
        let file = "/etc/sysctl.d/50-default.conf";
        for (change, effect) in [
            (test::file_added(file, "vm.swappiness = 10"), Effect::Reboot),
            (test::file(file, "vm.swappiness = 10", "vm.swappiness = 20"), Effect::Restart),
        ] {
            assert_eq!(verdict(vec![change], vec![]).effect(), Some(effect));
        }
    }

    #[test]
    fn with_a_file_that_cannot_be_read_it_has_no_opinion() {
        let change = test::file(FILE, "vm.swappiness = 10", "vm.swappiness = 20");
        let mut secret = test::unchanged_file("/etc/sysctl.d/99-secret.conf", "");
        if let State::File(file) = &mut secret.state {
            file.content = tread_guest_sdk::Content::Digest("sha256:00".to_owned());
        }
        assert_eq!(verdict(vec![change], vec![secret]), Verdict::abstain());
    }

    #[test]
    fn an_admin_can_say_more_of_keys() {
        let settings = |live: &str, reboot: &str| {
            let json = format!(r#"{{"live": ["{live}"], "reboot": ["{reboot}"]}}"#);
            test::settings::<SysctlPolicy>(&json)
        };
        for (settings, effect) in [
            (settings("kernel.new.*", "vm.swap"), Effect::Restart),
            (settings("kernel.new.*", "kernel.*.one"), Effect::Reboot),
        ] {
            let change = test::file(FILE, "", "kernel.new.one = 1");
            let verdicts = test::verdicts::<SysctlPolicy>(&settings.unwrap(), vec![change], vec![]);
            assert_eq!(verdicts[0].effect(), Some(effect));
        }
        let errors = settings("swappiness", "vm.swap").err().unwrap();
        assert!(errors[0].starts_with("live: "), "{errors:?}");
    }
}
