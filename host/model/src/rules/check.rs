//! What is probably not meant in rules that are valid.

use super::policy::{OF_OPENSHIFT, RulesPolicy};
use super::rule::{Rule, RuleAction, RuleSet, Then};
use crate::claim::{Kind, Pattern, Shape};
use crate::touch::{Touch, touch};
use crate::unit_name::kind_of_unit;
use crate::verdict::Layer;
use serde::Deserialize as _;
use std::collections::BTreeSet;

/// Everything that an author of rules should look at again. The warnings that
/// the policy has already come first.
pub fn warnings(policy: &RulesPolicy) -> Vec<String> {
    let rules = RuleSet::deserialize(&policy.settings).unwrap_or_default().rules;
    let mut warnings = policy.warnings.clone();
    let patterns = patterns(&rules);
    // OpenShift's own rules are entries without numbers.
    let named = |rule: usize| match policy.name == OF_OPENSHIFT {
        true => format!("An entry of {OF_OPENSHIFT}"),
        false => format!("Rule {} of {}", rule + 1, policy.name),
    };
    for (at, one) in patterns.iter().enumerate() {
        let rule = named(one.rule);
        let text = one.text;
        if let Some(why) = never_decides(one, patterns.get(..at).unwrap_or_default(), &patterns) {
            warnings.push(format!("{rule} never decides on {text}: {why}."));
        }
        let names_all = one.shapes.iter().all(|shape| matches!(shape, Shape::Exact(_)));
        // Of users there are few, and OpenShift's entry for keys stands for all of them.
        let of_users = matches!(one.pattern.kind(), Kind::SshKeys | Kind::Password);
        if one.pattern.is_wide() && !names_all && !of_users {
            warnings.push(format!(
                "{rule} matches very much with {text}: name the directory or the names that are \
                 meant."
            ));
        }
        if let Some(odd) = never_applied(one, &rules, policy.layer) {
            warnings.push(format!("{rule} answers {text} without a reboot: {odd}."));
        }
        if let Some(ending) = no_units_ending(&one.pattern, text) {
            warnings.push(format!(
                "{rule} matches nothing with {text}: no unit's name ends in .{ending}."
            ));
        }
    }
    for (index, rule) in rules.iter().enumerate() {
        let Then::Act { actions, .. } = &rule.then else { continue };
        for action in actions {
            if let Some(why) = odd_unit(action) {
                warnings.push(format!("{}: {why}.", named(index)));
            }
        }
    }
    warnings
}

struct Written<'r> {
    rule: usize,
    text: &'r str,
    pattern: Pattern,
    shapes: Vec<Shape>,
}

fn patterns(rules: &[Rule]) -> Vec<Written<'_>> {
    let texts = rules
        .iter()
        .enumerate()
        .flat_map(|(rule, it)| it.r#match.iter().map(move |text| (rule, text.as_str())));
    texts
        .filter_map(|(rule, text)| {
            let pattern = Pattern::parse(text).ok()?;
            let shapes = pattern.shapes();
            Some(Written { rule, text, pattern, shapes })
        })
        .collect()
}

/// Why a pattern decides on nothing, if others always do before it. The same
/// pattern twice is found elsewhere.
fn never_decides(one: &Written<'_>, before: &[Written<'_>], all: &[Written<'_>]) -> Option<String> {
    let kind = one.pattern.kind();
    if one.pattern.exact().is_some() {
        return None;
    }
    let same_kind = |other: &&Written<'_>| other.pattern.kind() == kind;
    let wider = before.iter().filter(same_kind).find(|other| {
        other.text != one.text
            && other.pattern.specificity() == one.pattern.specificity()
            && other.pattern.covers(&one.pattern)
    });
    if let Some(wider) = wider {
        return Some(format!(
            "{} of rule {} matches all of that, is as close, and stands before it",
            wider.text,
            wider.rule + 1
        ));
    }
    let names: BTreeSet<&str> = all.iter().filter_map(|other| other.pattern.exact()).collect();
    let taken = |shape: &Shape| match shape {
        Shape::Exact(name) => names.contains(format!("{}:{name}", kind.as_str()).as_str()),
        Shape::Below(_) | Shape::Glob { .. } => false,
    };
    one.shapes
        .iter()
        .all(taken)
        .then(|| "each of its names stands in a match of its own, which is closer".to_owned())
}

/// What happens where a rule asks for less than the boot that the change needs to take
/// effect.
fn never_applied(one: &Written<'_>, rules: &[Rule], layer: Layer) -> Option<&'static str> {
    let Then::Act { actions, .. } = &rules.get(one.rule)?.then else { return None };
    let boots = |action| matches!(action, &RuleAction::Reboot | &RuleAction::RebootUndrained);
    if !one.pattern.kind().needs_boot() || actions.iter().any(boots) {
        return None;
    }
    Some(match layer {
        Layer::Admin => {
            "only a boot applies such a change, so nodes take the new config and run on with what \
             they booted with, until something else boots them. Answer with {do: reboot} if it has \
             to take effect"
        }
        Layer::Template | Layer::Builtin => {
            "only a boot applies such a change, so it costs a reboot all the same. Only rules of \
             the layer admin may ask for less"
        }
    })
}

/// The ending of a glob over units that no unit has.
fn no_units_ending<'t>(pattern: &Pattern, text: &'t str) -> Option<&'t str> {
    if pattern.kind() != Kind::Unit || pattern.exact().is_some() {
        return None;
    }
    let end = text.rsplit(['*', '?', ']', '}', '\\']).next()?;
    let (_, ending) = end.rsplit_once('.')?;
    kind_of_unit(&format!("a.{ending}")).is_none().then_some(ending)
}

/// What is odd about the unit of an action, though systemd might have it.
fn odd_unit(action: &RuleAction) -> Option<String> {
    let (word, unit) = match action {
        RuleAction::Reload { unit } => ("reload", unit),
        RuleAction::Restart { unit } => ("restart", unit),
        RuleAction::DaemonReload
        | RuleAction::Drain
        | RuleAction::Reboot
        | RuleAction::RebootUndrained => return None,
    };
    let kind = kind_of_unit(unit)?;
    if touch(unit) == Ok(Touch::Wide) && touch(&format!("a.{kind}")) == Ok(Touch::Gentle) {
        return Some(format!("touching {unit} takes much of a node with it"));
    }
    if let Some((stem, _)) = unit.rsplit_once('.')
        && let Some(inner) = kind_of_unit(stem)
    {
        return Some(format!("{unit} ends in .{inner}.{kind}; perhaps {stem} is meant"));
    }
    match (word, kind) {
        ("reload", "service" | "mount") => None,
        ("reload", kind) => {
            Some(format!("systemd reloads services and mounts, and {unit} is a {kind}"))
        }
        (_, "target" | "swap" | "automount") => Some(format!(
            "restarting {unit} may stop much more than it says: a {kind} takes others with it"
        )),
        (_, "device" | "scope" | "slice") => {
            Some(format!("restarting {unit} applies no configuration: it is a {kind}"))
        }
        _ => None,
    }
}
