//! Loads audit rules into a node that runs.
//!
//! No service takes new audit rules by a reload: a command does, `augenrules
//! --load`. A policy cannot run a command, but it can ask for a restart of a unit
//! that does. The template that brings the rules brings this unit as well.

use std::collections::{BTreeMap, BTreeSet};
use tread_guest_sdk::{
    Change, Claim, Content, Context, Effect, Policy, State, Unit, Verdict, export,
};

/// The policy.
pub struct AuditRulesPolicy;

/// The unit that runs the command, and ends.
const UNIT: &str = "load-audit-rules.service";

impl Policy for AuditRulesPolicy {
    type Settings = ();
    const NAME: &'static str = env!("CARGO_PKG_NAME");
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "Loads audit rules by a unit of the template's own";
    // Unchanged as well: all rules are loaded together, by the unit.
    const CLAIMS: &'static [Claim] = &[
        Claim::on("file:/etc/audit/rules.d/*.rules", Effect::None, Effect::Reboot).with_unchanged(),
        Claim::on("unit:load-audit-rules.service", Effect::None, Effect::None).with_unchanged(),
    ];

    fn classify((): &(), change: &Change, context: &Context<'_>) -> Verdict {
        match change.kind() {
            "file" => rules(context),
            _ => unit(change),
        }
    }
}

export!(AuditRulesPolicy);

/// All rules together, since they are loaded together.
fn rules(context: &Context<'_>) -> Verdict {
    let (Some(before), Some(after)) =
        (files(context, |change| &change.before), files(context, |change| &change.after))
    else {
        return Verdict::abstain_because(
            "one of the files with rules cannot be read here: it is a secret, or no text",
        );
    };
    // Also if a rule only moves to another file: augenrules sorts names as versions, 2.rules before
    // 10.rules, and which rule comes first decides.
    if before == after {
        return Verdict::nothing("the rules stay the same: only comments or layout change");
    }
    let lines = |files: BTreeMap<&str, Vec<String>>| files.into_values().flatten().collect();
    let (before, after): (Vec<String>, Vec<String>) = (lines(before), lines(after));
    if before.iter().any(|line| locks(line)) {
        return Verdict::reboot("the rules are locked by -e 2 until the node boots");
    }
    if !after.iter().any(|line| line == "-D") {
        return Verdict::reboot(
            "without -D in front of the rules, those that were loaded before stay until the node \
             boots",
        );
    }
    let kept: BTreeSet<&str> = after.iter().flat_map(|line| settings(line)).collect();
    let mut set = before.iter().flat_map(|line| settings(line));
    if let Some(gone) = set.find(|setting| !kept.contains(setting)) {
        return Verdict::reboot(format!(
            "{} is not set any more; -D deletes rules only, and the kernel keeps the setting until \
             the node boots",
            gone.chars().take(64).collect::<String>()
        ));
    }
    match loader(context) {
        Some(unit) if runs_at_each_restart(unit) => Verdict::restart(
            UNIT,
            format!(
                "augenrules loads the rules anew; lines before: {}, after: {}",
                before.len(),
                after.len()
            ),
        ),
        _ => Verdict::abstain_because(format!(
            "{UNIT} is not in the configuration, or is none that runs its command at each restart"
        )),
    }
}

/// The lines of each file of one side that has any. None if one of them cannot be
/// read.
fn files<'c>(
    context: &Context<'c>,
    side: fn(&Change) -> &State,
) -> Option<BTreeMap<&'c str, Vec<String>>> {
    let unchanged = context.unchanged.iter().map(|entry| (entry.path(), &entry.state));
    let changed = context.changes.iter().map(|change| (change.path(), side(change)));
    let mut files = BTreeMap::new();
    for (path, state) in unchanged.chain(changed).filter(|(_, state)| !state.is_absent()) {
        let Some(path) = path else { continue };
        let text = state.as_text()?.lines().map(str::trim);
        let rules = text.filter(|line| !line.is_empty() && !line.starts_with('#'));
        // Layout within a line means nothing.
        let lines: Vec<String> =
            rules.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        if !lines.is_empty() {
            files.insert(path, lines);
        }
    }
    Some(files)
}

/// Options of lines that are rules: -D deletes what these add.
const RULES: &[&str] = &["-a", "-A", "-d", "-w", "-W"];
/// Options that set nothing: they delete rules, or say how the lines are read.
const SETS_NOTHING: &[&str] = &["-D", "-k", "-c", "-i"];

/// The options of a line that set something other than rules, such as `-f`.
fn settings(line: &str) -> Vec<&str> {
    let words = line.split(' ').filter(|word| word.starts_with('-'));
    let options: Vec<&str> = words.map(option).collect();
    if options.first().is_some_and(|first| RULES.contains(first)) {
        return Vec::new();
    }
    options.into_iter().filter(|option| !SETS_NOTHING.contains(option)).collect()
}

/// `-b8192` is `-b`, and `--backlog_wait_time=1` is `--backlog_wait_time`.
fn option(word: &str) -> &str {
    match word.strip_prefix("--") {
        Some(_) => word.split('=').next().unwrap_or(word),
        None => word.get(..2).unwrap_or(word),
    }
}

/// Also behind other options of its line.
fn locks(line: &str) -> bool {
    let line = format!(" {line} ");
    line.contains(" -e 2 ") || line.contains(" -e2 ")
}

/// The unit as the node is to have it.
fn loader<'c>(context: &Context<'c>) -> Option<&'c Unit> {
    let changed = context.changes.iter().find(|change| change.name() == UNIT);
    let unchanged = || context.unchanged.iter().find(|entry| entry.name() == UNIT);
    match changed {
        Some(change) => change.after.as_unit(),
        None => unchanged()?.state.as_unit(),
    }
}

/// A change of the unit itself: it does not run when it changes, and has nothing
/// running that would have to stop.
fn unit(change: &Change) -> Verdict {
    match change.after.as_unit() {
        Some(unit) if !runs_at_each_restart(unit) => Verdict::abstain_because(
            "a restart would not run its command: it needs Type=oneshot without RemainAfterExit",
        ),
        _ => Verdict::nothing("it runs when the rules change, and ends"),
    }
}

/// Whether it is inactive once its command has ended, so that a restart always
/// runs the command.
fn runs_at_each_restart(unit: &Unit) -> bool {
    let pieces = std::iter::once(&unit.contents).chain(unit.dropins.iter().map(|it| &it.contents));
    let (mut oneshot, mut remains, mut command) = (false, false, false);
    for content in pieces.filter(|content| **content != Content::Absent) {
        let Some(text) = content.text() else { return false };
        for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
            match (key.trim(), value.trim()) {
                ("Type", kind) => oneshot = kind == "oneshot",
                ("RemainAfterExit", value) => {
                    remains = !["no", "false", "off", "0"].contains(&value)
                }
                ("ExecStart", run) => command = !run.is_empty(),
                _ => {}
            }
        }
    }
    oneshot && command && !remains && !unit.masked
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_guest_sdk::{Entry, test};

    const FILE: &str = "/etc/audit/rules.d/50-ours.rules";
    const BASE: &str = "-D\n-b 8192\n";
    const LOADS: &str = "[Service]\nType=oneshot\nExecStart=/usr/sbin/augenrules --load\n";

    fn unchanged_unit(text: &str) -> Entry {
        Entry { id: format!("unit:{UNIT}"), state: test::unit_state(text) }
    }

    fn effect(before: &str, after: &str, base: &str, unit: &str) -> Option<Effect> {
        let beside = vec![
            test::unchanged_file("/etc/audit/rules.d/00-base.rules", base),
            unchanged_unit(unit),
        ];
        let change = vec![test::file(FILE, before, after)];
        test::verdicts::<AuditRulesPolicy>(&(), change, beside).swap_remove(0).effect()
    }

    #[test]
    fn new_rules_are_loaded_by_the_unit() {
        let (old, new) = ("-w /etc/passwd -p wa\n", "-w /etc/shadow -p wa\n");
        for (after, base, expected) in [
            (new, BASE, Some(Effect::Restart)),
            ("", BASE, Some(Effect::Restart)),
            ("# ours\n-w  /etc/passwd  -p wa\n", BASE, Some(Effect::None)),
            (new, "-b 8192\n", Some(Effect::Reboot)),
            (new, "-D\n-e 2\n", Some(Effect::Reboot)),
            (new, "-D\n-b 8192 -e 2\n", Some(Effect::Reboot)),
            (new, "-D\n-e 1\n", Some(Effect::Restart)),
        ] {
            assert_eq!(effect(old, after, base, LOADS), expected, "{after:?} {base:?}");
        }
    }

    #[test]
    fn a_setting_that_goes_stays_in_the_kernel_until_it_boots() {
        for (before, after, expected) in [
            ("-f 2\n", "", Effect::Reboot),
            ("-f 2\n-b 8192\n", "-b 8192\n", Effect::Reboot),
            ("-r 100\n", "-w /etc/passwd -p wa\n", Effect::Reboot),
            ("--backlog_wait_time 60000\n", "", Effect::Reboot),
            ("--loginuid-immutable\n", "", Effect::Reboot),
            ("-e 0\n", "", Effect::Reboot),
            ("-b 8192 -f 2\n", "-b 8192\n", Effect::Reboot),
            // A new value takes the place of the old one, however it is written.
            ("-f 2\n", "-f 1\n", Effect::Restart),
            ("-b8192\n", "-b 4096\n", Effect::Restart),
            ("--backlog_wait_time=1\n", "--backlog_wait_time 2\n", Effect::Restart),
            ("", "-f 2\n", Effect::Restart),
            // Rules go with -D, and these only say how the files are read.
            ("-a always,exit -S mount\n-A x\n-W /a\n-d x\n-w/etc/a\n", "", Effect::Restart),
            ("-i\n-c\n", "", Effect::Restart),
        ] {
            let found = effect(before, after, "-D\n", LOADS);
            assert_eq!(found, Some(expected), "{before:?} to {after:?}");
        }
    }

    #[test]
    fn rules_that_move_to_another_file_are_loaded_anew_since_names_are_not_sorted_by_bytes() {
        let rules = |path: &str, before: &str, after: &str| {
            let path = format!("/etc/audit/rules.d/{path}");
            match (before, after) {
                ("", after) => test::file_added(&path, after),
                (before, "") => test::file_removed(&path, before),
                (before, after) => test::file(&path, before, after),
            }
        };
        // By bytes 10.rules stands before 2.rules, and by version it stands behind it.
        let (one, other) = ("-a never,exit -S mount\n", "-a always,exit -S mount\n");
        for changes in [
            vec![rules("10.rules", one, ""), rules("2.rules", other, &format!("{one}{other}"))],
            vec![rules("10.rules", one, ""), rules("1.rules", "", one)],
        ] {
            let beside = vec![
                test::unchanged_file("/etc/audit/rules.d/00-base.rules", "-D\n"),
                unchanged_unit(LOADS),
            ];
            let verdicts = test::verdicts::<AuditRulesPolicy>(&(), changes, beside);
            assert!(verdicts.iter().all(|it| it.effect() == Some(Effect::Restart)), "{verdicts:?}");
        }
        // A file without a rule is none.
        let comment = vec![rules("10.rules", "", "# nothing yet\n")];
        let verdicts = test::verdicts::<AuditRulesPolicy>(&(), comment, vec![]);
        assert_eq!(verdicts[0].effect(), Some(Effect::None));
    }

    #[test]
    fn a_unit_that_would_not_run_again_loads_nothing() {
        for unit in [
            "[Service]\nExecStart=/usr/sbin/augenrules --load\n",
            "[Service]\nType=oneshot\n",
            &format!("{LOADS}RemainAfterExit=yes\n"),
        ] {
            assert_eq!(effect("-a x\n", "-a y\n", BASE, unit), None, "{unit}");
            let change = test::unit(UNIT, LOADS, unit);
            assert_eq!(test::verdict::<AuditRulesPolicy>(change).effect(), None, "{unit}");
        }
    }

    #[test]
    fn rules_and_the_unit_that_loads_them_can_come_together() {
        let mut unit = test::unit(UNIT, "", LOADS);
        unit.before = State::Absent;
        let changes = vec![test::file_added(FILE, "-D\n-w /etc/passwd -p wa\n"), unit];
        let verdicts = test::verdicts::<AuditRulesPolicy>(&(), changes, vec![]);
        let effects: Vec<_> = verdicts.iter().map(Verdict::effect).collect();
        assert_eq!(effects, [Some(Effect::Restart), Some(Effect::None)]);
    }

    #[test]
    fn without_the_unit_or_with_a_file_that_is_a_secret_it_has_no_opinion() {
        let change = || vec![test::file(FILE, "-D\n-a x\n", "-D\n-a y\n")];
        let alone = test::verdicts::<AuditRulesPolicy>(&(), change(), vec![]);
        assert_eq!(alone[0].effect(), None);
        let mut secret = change();
        if let State::File(file) = &mut secret[0].after {
            file.content = Content::Bytes(vec![0xff]);
        }
        let beside = vec![unchanged_unit(LOADS)];
        let verdicts = test::verdicts::<AuditRulesPolicy>(&(), secret, beside);
        assert_eq!(verdicts[0].effect(), None);
    }
}
