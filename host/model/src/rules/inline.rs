//! A DisruptionPolicy with inline rules.

use super::policy::{RulesPolicy, default_reason};
use super::rule::{Rule, RuleAction, Then};
use crate::claim::{Pattern, check_size};
use crate::object_name;
use crate::read::fields::{Fields, join, unknown};
use crate::read::report::Report;
use crate::text::barred_from_sentence;
use crate::touch::{touch, touch_gently};
use crate::unit_name::{is_template, is_unit_name};
use crate::verdict::Layer;

/// The apiVersion of DisruptionPolicies.
pub const API_VERSION: &str = "tread.dev/v1alpha1";

/// A policy of more patterns would cost more to evaluate than a plan.
const MOST_PATTERNS: usize = 1000;
const MOST_ACTIONS: usize = 32;
const LONGEST_REASON: usize = 512;

/// What rules are read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Enforce,
    Shadow,
    Check,
}

impl Use {
    fn takes(self, mode: &str) -> bool {
        match self {
            Use::Enforce => mode == "Enforce",
            Use::Shadow => ["Enforce", "Shadow"].contains(&mode),
            Use::Check => ["Enforce", "Shadow", "Disabled"].contains(&mode),
        }
    }
}

/// Reads an object whose kind and version are known; None, and a report, if it
/// is no policy of rules.
pub(super) fn read(object: &Fields<'_>, wanted: Use, report: &mut Report) -> Option<RulesPolicy> {
    object.only(&["apiVersion", "kind", "metadata", "spec", "status"], report);
    let name = read_name(object, report);
    let Some(spec) = object.child("spec", report) else {
        if object.get("spec").is_none() {
            report.problem(object.at("spec"), "is missing: expected an object with `rules`");
        }
        return None;
    };
    let layer = read_spec(&spec, wanted, report);
    let policy = name.unwrap_or("this policy");
    let mut rules = Vec::new();
    let mut patterns = 0;
    for (_, fields) in spec.objects("rules", report) {
        if let Some(rule) = read_rule(&fields, policy, layer, report) {
            patterns += rule.r#match.len();
            rules.push(rule);
        }
    }
    if patterns > MOST_PATTERNS {
        let message = format!("{patterns} patterns: {MOST_PATTERNS} are the most for one policy");
        report.problem(spec.at("rules"), message);
    }
    let all = rules.iter().flat_map(|rule| &rule.r#match);
    let all: Vec<Pattern> = all.filter_map(|text| Pattern::parse(text).ok()).collect();
    if let Err(message) = check_size(&all) {
        report.problem(spec.at("rules"), message);
    }
    let may_relax = spec.boolean("mayRelax", report) == Some(true);
    let mut policy = RulesPolicy::new(name?, layer, rules);
    policy.may_relax = may_relax;
    if may_relax && layer == Layer::Admin {
        policy.warnings.push(format!(
            "mayRelax of {} has no effect: rules of the admin layer decide over all others.",
            policy.name
        ));
    }
    report.is_clean().then_some(policy)
}

fn read_name<'v>(object: &Fields<'v>, report: &mut Report) -> Option<&'v str> {
    let Some(metadata) = object.child("metadata", report) else {
        if object.get("metadata").is_none() {
            report.problem(object.at("metadata"), "is missing: expected an object with a `name`");
        }
        return None;
    };
    let name = metadata.required_string("name", report)?;
    if !object_name::is_name(name) {
        let message = format!(
            "{name:?} is no name: expected up to {} lower-case letters, digits, - and ., with a \
             letter or digit first, last and beside each .",
            object_name::LONGEST
        );
        report.problem(metadata.at("name"), message);
        return None;
    }
    Some(name)
}

/// The layer, and everything of `spec` that is not the rules.
fn read_spec(spec: &Fields<'_>, wanted: Use, report: &mut Report) -> Layer {
    // Fields that the API server fills in are accepted where they mean the same as
    // leaving them out.
    let known = ["approved", "layer", "mayRelax", "mode", "readSecrets", "rules"];
    for name in spec.names().filter(|name| !known.contains(name)) {
        let message = match name {
            "source" => {
                "is for policies in the cluster: a file of rules has them inline, in `rules`; \
                         a component is given with --policy"
                    .to_owned()
            }
            "digest" | "limits" | "settings" => {
                "means nothing for inline rules: leave it out".to_owned()
            }
            name => unknown("field", name, &known),
        };
        report.problem(spec.at(name), message);
    }
    for name in ["approved", "readSecrets"] {
        spec.boolean(name, report);
    }
    if let Some(mode) = spec.string("mode", report).filter(|mode| !wanted.takes(mode)) {
        let message = match mode {
            "Shadow" => "Shadow rules decide nothing: leave out the file, write Enforce, or try \
                         them with `tread plan --shadow`"
                .to_owned(),
            "Disabled" => {
                "Disabled rules decide nothing: leave out the file, or write Enforce".to_owned()
            }
            mode => unknown("mode", mode, &["Enforce", "Shadow", "Disabled"]),
        };
        report.problem(spec.at("mode"), message);
    }
    let has_source = spec.get("source").is_some();
    if spec.get("rules").is_none() && !has_source {
        report.problem(spec.at("rules"), "is missing: expected a list of rules");
    } else if spec.get("rules").and_then(|rules| rules.as_array()).is_some_and(Vec::is_empty) {
        report.problem(spec.at("rules"), "is empty: expected at least one rule");
    }
    match spec.string("layer", report) {
        None | Some("admin") => Layer::Admin,
        Some("template") => Layer::Template,
        Some("builtin") => {
            report.problem(
                spec.at("layer"),
                "only tread itself speaks as builtin: write admin or template",
            );
            Layer::Admin
        }
        Some(other) => {
            report.problem(spec.at("layer"), unknown("layer", other, &["admin", "template"]));
            Layer::Admin
        }
    }
}

fn read_rule(fields: &Fields<'_>, policy: &str, layer: Layer, report: &mut Report) -> Option<Rule> {
    fields.only(&["abstain", "actions", "drain", "match", "reason", "refuse"], report);
    let patterns = read_match(fields, report);
    let reason = read_reason(fields, report);
    let refuse = read_flag(fields, "refuse", report);
    let abstain = read_flag(fields, "abstain", report);
    let actions = fields.get("actions").map(|_| read_actions(fields, layer, report));
    if fields.get("drain").is_some() && actions.is_none() {
        report.problem(fields.at("drain"), "stands only beside a reboot in `actions`");
    }
    let then = match (actions, refuse, abstain) {
        (Some(actions), false, false) => {
            let reason = reason.map(str::to_owned);
            let reason = reason.unwrap_or_else(|| default_reason(policy, &patterns, &actions));
            Then::Act { actions, reason }
        }
        (None, true, false) => {
            let Some(reason) = reason else {
                let message = "is missing: say why the change is refused, and what to do instead";
                if fields.get("reason").is_none() {
                    report.problem(fields.at("reason"), message);
                }
                return None;
            };
            Then::Refuse { reason: reason.to_owned() }
        }
        (None, false, true) => {
            if reason.is_some() {
                let message = "is never shown where a rule abstains: write it as a comment";
                report.problem(fields.at("reason"), message);
            }
            Then::Abstain
        }
        (None, false, false) => {
            let message = "says nothing: expected one of `actions` (which may be empty), `refuse` and `abstain`";
            report.problem(fields.path(), message);
            return None;
        }
        _ => {
            let message = "says two things: expected only one of `actions`, `refuse` and `abstain`";
            report.problem(fields.path(), message);
            return None;
        }
    };
    Some(Rule { r#match: patterns.into_iter().map(str::to_owned).collect(), then })
}

fn read_match<'v>(fields: &Fields<'v>, report: &mut Report) -> Vec<&'v str> {
    let patterns = fields.strings("match", report);
    for (index, pattern) in &patterns {
        if let Err(error) = Pattern::parse(pattern) {
            report.problem(format!("{}[{index}]", fields.at("match")), error);
        }
    }
    if fields.get("match").is_none_or(|list| list.as_array().is_some_and(Vec::is_empty)) {
        let message =
            "is missing or empty: name what the rule is for, such as file:/etc/chrony.conf";
        report.problem(fields.at("match"), message);
    }
    patterns.into_iter().map(|(_, pattern)| pattern).collect()
}

fn read_reason<'v>(fields: &Fields<'v>, report: &mut Report) -> Option<&'v str> {
    let reason = fields.string("reason", report)?;
    let trimmed = reason.trim();
    let message = if trimmed.is_empty() {
        "is empty: leave it out, or say why".to_owned()
    } else if let Some(barred) = barred_from_sentence(trimmed) {
        format!("has to be one line of plain text, without {barred}")
    } else if trimmed.len() > LONGEST_REASON {
        format!("is longer than {LONGEST_REASON} bytes")
    } else {
        return Some(trimmed);
    };
    report.problem(fields.at("reason"), message);
    None
}

/// A field that can only be true: `false` is refused, so that its presence is enough.
fn read_flag(fields: &Fields<'_>, name: &str, report: &mut Report) -> bool {
    let flag = fields.boolean(name, report);
    if flag == Some(false) {
        report.problem(fields.at(name), "can only be true: leave it out");
    }
    flag == Some(true)
}

fn read_actions(rule: &Fields<'_>, layer: Layer, report: &mut Report) -> Vec<RuleAction> {
    let mut actions: Vec<RuleAction> = Vec::new();
    let list = rule.get("actions").and_then(|list| list.as_array()).into_iter().flatten();
    let words: Vec<usize> =
        (0..).zip(list).filter(|(_, item)| item.is_string()).map(|(index, _)| index).collect();
    if !words.is_empty() {
        let message =
            "expected an object such as {do: restart, unit: crio.service}, found a string";
        for index in words {
            report.problem(format!("{}[{index}]", rule.at("actions")), message);
        }
        return actions;
    }
    for (_, fields) in rule.objects("actions", report) {
        if let Some(action) = read_action(&fields, layer, report) {
            if actions.contains(&action) {
                report.problem(fields.path(), "stands there twice");
            }
            actions.push(action);
        }
    }
    if actions.len() > MOST_ACTIONS {
        let message =
            format!("{} actions: {MOST_ACTIONS} are the most for one rule", actions.len());
        report.problem(rule.at("actions"), message);
    }
    let reboots = actions.contains(&RuleAction::Reboot);
    if reboots && actions.len() > 1 {
        let message = "a reboot stands alone: it drains the node and restarts everything";
        report.problem(rule.at("actions"), message);
    }
    match rule.boolean("drain", report) {
        Some(false) if !reboots => {
            report.problem(rule.at("drain"), "stands only beside a reboot in `actions`");
        }
        Some(true) if !reboots => {
            report.problem(
                rule.at("drain"),
                "stands only beside a reboot: write {do: drain} in `actions`",
            );
        }
        Some(false) if layer != Layer::Admin => {
            let message = "only a policy in the admin layer can reboot without a drain";
            report.problem(rule.at("drain"), message);
        }
        Some(false) => actions = vec![RuleAction::RebootUndrained],
        Some(true) | None => {}
    }
    actions
}

fn read_action(fields: &Fields<'_>, layer: Layer, report: &mut Report) -> Option<RuleAction> {
    fields.only(&["do", "unit"], report);
    let word = fields.required_string("do", report)?;
    let action = match word {
        "reload" => RuleAction::Reload { unit: read_unit(fields, word, layer, report)? },
        "restart" => RuleAction::Restart { unit: read_unit(fields, word, layer, report)? },
        "daemon-reload" => RuleAction::DaemonReload,
        "drain" => RuleAction::Drain,
        "reboot" => RuleAction::Reboot,
        "none" | "None" | "nothing" => {
            let message = format!("{word:?} is no action: for none at all write `actions: []`");
            report.problem(join(fields.path(), "do"), message);
            return None;
        }
        other => {
            let known = ["reload", "restart", "daemon-reload", "drain", "reboot"];
            report.problem(join(fields.path(), "do"), unknown("action", other, &known));
            return None;
        }
    };
    if !matches!(action, RuleAction::Reload { .. } | RuleAction::Restart { .. })
        && fields.get("unit").is_some()
    {
        report.problem(fields.at("unit"), format!("{word} takes no unit"));
    }
    Some(action)
}

fn read_unit(fields: &Fields<'_>, word: &str, layer: Layer, report: &mut Report) -> Option<String> {
    let Some(unit) = fields.string("unit", report) else {
        if fields.get("unit").is_none() {
            let message =
                format!("is missing: {word} which unit? Expected a name such as crio.service");
            report.problem(fields.at("unit"), message);
        }
        return None;
    };
    if !is_unit_name(unit) {
        let message = format!("{unit:?} is no unit: names are complete, as in crio.service");
        report.problem(fields.at("unit"), message);
        return None;
    }
    if is_template(unit) {
        let message = format!("{unit:?} is a template: name an instance, such as app@blue.service");
        report.problem(fields.at("unit"), message);
        return None;
    }
    let touched = if layer == Layer::Admin { touch(unit).map(|_| ()) } else { touch_gently(unit) };
    if let Err(why) = touched {
        report.problem(fields.at("unit"), format!("{unit:?} {why}"));
        return None;
    }
    Some(unit.to_owned())
}
