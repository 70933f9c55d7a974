//! Values held against the rules of a schema.

use super::problem::{Place, counted, expected, named, short};
use super::read::{Node, Others, Rule, Type};
use super::same::{canonical, order, size, whole};
use crate::read::fields::unknown;
use crate::text::shortened;
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// No more problems are told.
const MOST_PROBLEMS: usize = 8;

/// What checking settings may take, in steps of some nanoseconds. The settings
/// that fit into a ConfigMap take a small part of it with any schema that
/// somebody writes for people.
const MOST_WORK: usize = 10_000_000;

pub(super) fn check(node: &Node, value: &Value) -> Result<(), Vec<String>> {
    found(|checker, problems| checker.node(node, value, &Place::Root, problems))
}

/// One field of an object, by what the schema says of it.
pub(super) fn check_field(node: &Node, name: &str, value: &Value) -> Result<(), Vec<String>> {
    found(|checker, problems| {
        for rule in &node.rules {
            match rule {
                Rule::Fields { known, others } => {
                    checker.field(known, others, name, value, &Place::Root, problems)?;
                }
                Rule::Names(names) => checker.name(names, name, &Place::Root, problems)?,
                // What concerns several settings is seen with all of them.
                _ => {}
            }
        }
        Ok(())
    })
}

fn found(
    check: impl FnOnce(&mut Checker, &mut Vec<String>) -> Result<(), TooMuch>,
) -> Result<(), Vec<String>> {
    let mut problems = Vec::new();
    if check(&mut Checker { left: MOST_WORK }, &mut problems).is_err() {
        problems.push(
            "holding them to their schema takes more work than is allowed: write fewer or shorter \
             ones, or a simpler schema"
                .to_owned(),
        );
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// There is no work left.
struct TooMuch;

struct Checker {
    left: usize,
}

impl Checker {
    fn spend(&mut self, cost: usize) -> Result<(), TooMuch> {
        self.left = self.left.checked_sub(cost).ok_or(TooMuch)?;
        Ok(())
    }

    fn node(
        &mut self,
        node: &Node,
        value: &Value,
        at: &Place<'_>,
        problems: &mut Vec<String>,
    ) -> Result<(), TooMuch> {
        self.spend(1)?;
        for rule in &node.rules {
            if problems.len() >= MOST_PROBLEMS {
                break;
            }
            self.spend(1)?;
            if let Rule::Types(types) = rule
                && !types.iter().any(|it| it.fits(value))
            {
                let words: Vec<&str> = types.iter().map(|it| it.in_words()).collect();
                problems.push(at.problem(expected(&words.join(" or "), value)));
                break;
            }
            self.rule(rule, value, at, problems)?;
        }
        Ok(())
    }

    fn rule(
        &mut self,
        rule: &Rule,
        value: &Value,
        at: &Place<'_>,
        problems: &mut Vec<String>,
    ) -> Result<(), TooMuch> {
        match (rule, value) {
            (Rule::Values { shown, canonical: values }, _) => {
                self.spend(size(value))?;
                if !values.contains(&canonical(value)) {
                    let what = if values.len() == 1 { "" } else { "one of " };
                    problems.push(at.problem(expected(&format!("{what}{shown}"), value)));
                }
            }
            (Rule::All(nodes), _) => {
                for node in nodes {
                    self.node(node, value, at, problems)?;
                }
            }
            (Rule::Any(nodes), _) => self.forms(nodes, false, value, at, problems)?,
            (Rule::One(nodes), _) => self.forms(nodes, true, value, at, problems)?,
            (Rule::Not(node), _) if self.fits(node, value, at)?.is_empty() => {
                problems.push(at.problem(expected("anything but what its schema excludes", value)));
            }
            (Rule::Not(_), _) => {}
            (Rule::Never, _) => problems.push(at.problem(expected("nothing here", value))),
            (_, Value::String(text)) => self.text(rule, text, value, at, problems)?,
            (_, Value::Number(_)) => number(rule, value, at, problems),
            (_, Value::Array(items)) => self.list(rule, items, at, problems)?,
            (_, Value::Object(fields)) => self.object(rule, fields, at, problems)?,
            _ => {}
        }
        Ok(())
    }

    /// What is wrong with a value, told elsewhere or not at all.
    fn fits(&mut self, node: &Node, value: &Value, at: &Place<'_>) -> Result<Vec<String>, TooMuch> {
        let mut problems = Vec::new();
        self.node(node, value, at, &mut problems)?;
        Ok(problems)
    }

    fn forms(
        &mut self,
        nodes: &[Node],
        one_only: bool,
        value: &Value,
        at: &Place<'_>,
        problems: &mut Vec<String>,
    ) -> Result<(), TooMuch> {
        const MOST: usize = 4;
        let (mut fitting, mut why) = (0usize, Vec::<String>::new());
        for node in nodes {
            let found = self.fits(node, value, at)?;
            match found.into_iter().next() {
                None => fitting += 1,
                Some(first) => {
                    // Writing it took more than a step.
                    self.spend(100)?;
                    let first = shortened(&first, 200);
                    if why.len() < MOST && !why.contains(&first) {
                        why.push(first);
                    }
                }
            }
            if fitting > 0 && !one_only {
                return Ok(());
            }
        }
        match fitting {
            0 => problems.push(format!(
                "{} (it fits none of {} forms)",
                why.join("; or "),
                nodes.len()
            )),
            1 => {}
            several => problems.push(at.problem(format!(
                "it fits {several} of the forms that its schema has, and has to fit one of them only"
            ))),
        }
        Ok(())
    }

    fn text(
        &mut self,
        rule: &Rule,
        text: &str,
        value: &Value,
        at: &Place<'_>,
        problems: &mut Vec<String>,
    ) -> Result<(), TooMuch> {
        match rule {
            Rule::Characters(range) => {
                self.spend(text.len())?;
                problems.extend(counted(text.chars().count(), range, "character", at));
            }
            Rule::Pattern(pattern) => {
                self.spend(pattern.cost(text))?;
                if !pattern.matches(text) {
                    let what = format!("text that matches /{}/", pattern.text());
                    problems.push(at.problem(expected(&what, value)));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn list(
        &mut self,
        rule: &Rule,
        items: &[Value],
        at: &Place<'_>,
        problems: &mut Vec<String>,
    ) -> Result<(), TooMuch> {
        match rule {
            Rule::Items(node) => {
                for (index, item) in items.iter().enumerate() {
                    self.node(node, item, &Place::Item(at, index), problems)?;
                }
            }
            Rule::ItemCount(range) => problems.extend(counted(items.len(), range, "item", at)),
            Rule::Unique => {
                let mut seen = BTreeSet::new();
                for item in items {
                    self.spend(size(item))?;
                    if !seen.insert(canonical(item)) {
                        problems.push(at.problem(format!("{} stands there twice", short(item))));
                        break;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn object(
        &mut self,
        rule: &Rule,
        fields: &Map<String, Value>,
        at: &Place<'_>,
        problems: &mut Vec<String>,
    ) -> Result<(), TooMuch> {
        match rule {
            Rule::Fields { known, others } => {
                for (name, value) in fields {
                    self.field(known, others, name, value, at, problems)?;
                }
            }
            Rule::Names(node) => {
                for name in fields.keys() {
                    self.name(node, name, at, problems)?;
                }
            }
            Rule::FieldCount(range) => problems.extend(counted(fields.len(), range, "field", at)),
            Rule::Required(names) => {
                self.spend(names.len())?;
                let missing = names.iter().filter(|name| !fields.contains_key(*name));
                problems.extend(missing.take(MOST_PROBLEMS).map(|name| {
                    Place::Field(at, name).problem("it is missing, and has to be set")
                }));
            }
            _ => {}
        }
        Ok(())
    }

    fn field(
        &mut self,
        known: &BTreeMap<String, Node>,
        others: &Others,
        name: &str,
        value: &Value,
        at: &Place<'_>,
        problems: &mut Vec<String>,
    ) -> Result<(), TooMuch> {
        self.spend(1)?;
        if problems.len() >= MOST_PROBLEMS {
            return Ok(());
        }
        let place = Place::Field(at, name);
        match (known.get(name), others) {
            (Some(node), _) => self.node(node, value, &place, problems),
            (None, Others::Of(node)) => self.node(node, value, &place, problems),
            (None, Others::None) => {
                let names: Vec<&str> = known.keys().map(String::as_str).collect();
                self.spend(names.len().saturating_mul(named(name).len()))?;
                problems.push(at.problem(unknown("setting", &named(name), &names)));
                Ok(())
            }
        }
    }

    fn name(
        &mut self,
        node: &Node,
        name: &str,
        at: &Place<'_>,
        problems: &mut Vec<String>,
    ) -> Result<(), TooMuch> {
        let found = self.fits(node, &Value::from(name), &Place::Root)?;
        if let Some(why) = found.into_iter().next() {
            problems.push(at.problem(format!("the name {:?}: {why}", named(name))));
        }
        Ok(())
    }
}

fn number(rule: &Rule, value: &Value, at: &Place<'_>, problems: &mut Vec<String>) {
    let Value::Number(number) = value else { return };
    let what = match rule {
        Rule::Least { bound, included } => match (order(number, bound), included) {
            (Ordering::Greater, _) | (Ordering::Equal, true) => return,
            (_, true) => format!("at least {bound}"),
            (_, false) => format!("more than {bound}"),
        },
        Rule::Most { bound, included } => match (order(number, bound), included) {
            (Ordering::Less, _) | (Ordering::Equal, true) => return,
            (_, true) => format!("at most {bound}"),
            (_, false) => format!("less than {bound}"),
        },
        Rule::MultipleOf(step) => match whole(number) {
            Some(whole) if whole.rem_euclid(i128::from(*step)) == 0 => return,
            _ => format!("a multiple of {step}"),
        },
        _ => return,
    };
    problems.push(at.problem(expected(&what, value)));
}

impl Type {
    fn fits(self, value: &Value) -> bool {
        match self {
            Type::Null => value.is_null(),
            Type::Boolean => value.is_boolean(),
            Type::Integer => value.as_number().is_some_and(|number| whole(number).is_some()),
            Type::Number => value.is_number(),
            Type::Text => value.is_string(),
            Type::List => value.is_array(),
            Type::Object => value.is_object(),
        }
    }
}
