//! From the JSON of a schema to its rules.

use super::pattern::Pattern;
use super::same::canonical;
use crate::read::fields::unknown;
use crate::text::listed;
use serde_json::{Map, Number, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What a value has to keep.
#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    /// The rule on types first: with the wrong type all others say nothing.
    pub(super) rules: Vec<Rule>,
}

#[derive(Debug, Clone)]
pub(super) enum Rule {
    /// Nothing is right: the schema `false`.
    Never,
    /// `type`
    Types(Vec<Type>),
    /// `enum`, `const`
    Values { shown: String, canonical: BTreeSet<String> },
    /// `minLength`, `maxLength`
    Characters(Range),
    /// `pattern`
    Pattern(Pattern),
    /// `minimum`, `exclusiveMinimum`
    Least { bound: Number, included: bool },
    /// `maximum`, `exclusiveMaximum`
    Most { bound: Number, included: bool },
    /// `multipleOf`
    MultipleOf(u64),
    /// `items`
    Items(Box<Node>),
    /// `minItems`, `maxItems`
    ItemCount(Range),
    /// `uniqueItems`
    Unique,
    /// `properties`, `additionalProperties`
    Fields { known: BTreeMap<String, Node>, others: Others },
    /// `propertyNames`
    Names(Box<Node>),
    /// `minProperties`, `maxProperties`
    FieldCount(Range),
    /// `required`
    Required(Vec<String>),
    /// `allOf`
    All(Vec<Node>),
    /// `anyOf`
    Any(Vec<Node>),
    /// `oneOf`
    One(Vec<Node>),
    /// `not`
    Not(Box<Node>),
}

/// What fields may be that `properties` does not name.
#[derive(Debug, Clone)]
pub(super) enum Others {
    None,
    Of(Box<Node>),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub(super) least: u64,
    pub(super) most: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    Text,
    List,
    Object,
}

const TYPES: [(&str, Type); 7] = [
    ("null", Type::Null),
    ("boolean", Type::Boolean),
    ("integer", Type::Integer),
    ("number", Type::Number),
    ("string", Type::Text),
    ("array", Type::List),
    ("object", Type::Object),
];

/// Keywords for people, which restrict nothing.
const NOTES: [&str; 10] = [
    "$schema",
    "$id",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
];

/// What is enforced.
const ENFORCED: [&str; 25] = [
    "type",
    "enum",
    "const",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "multipleOf",
    "items",
    "minItems",
    "maxItems",
    "uniqueItems",
    "properties",
    "additionalProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "required",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
];

/// Keywords of JSON Schema that are not enforced, and what to do without them.
const REFUSED: [(&str, &str); 12] = [
    ("$ref", "write what it stands for in its place"),
    ("$defs", "write what it holds where it is meant"),
    ("definitions", "write what it holds where it is meant"),
    ("format", "write a pattern"),
    ("patternProperties", "write propertyNames and additionalProperties"),
    ("prefixItems", "write an object, which has names"),
    ("if", "write anyOf, or let the policy check it"),
    ("then", "write anyOf, or let the policy check it"),
    ("else", "write anyOf, or let the policy check it"),
    ("contains", "let the policy check it"),
    ("dependentRequired", "let the policy check it"),
    ("unevaluatedProperties", "write additionalProperties"),
];

/// Schemas lie no deeper within each other.
const DEEPEST: usize = 16;

/// No schema has more patterns: compiling one takes a while.
const MOST_PATTERNS: usize = 64;

pub(super) fn node(schema: &Value) -> Result<Node, String> {
    Reader { patterns: 0 }.node(schema, "", 0)
}

struct Reader {
    patterns: usize,
}

impl Reader {
    fn node(&mut self, schema: &Value, at: &str, depth: usize) -> Result<Node, String> {
        if depth > DEEPEST {
            return Err(wrong(at, format!("more than {DEEPEST} schemas lie within each other")));
        }
        let keywords = match schema {
            Value::Bool(true) => return Ok(Node::default()),
            Value::Bool(false) => return Ok(Node { rules: vec![Rule::Never] }),
            Value::Object(keywords) => keywords,
            _ => return Err(wrong(at, "expected a schema: an object, true or false".to_owned())),
        };
        let mut rules = Vec::new();
        for (keyword, value) in keywords {
            let place = place(at, keyword);
            let rule = self.rule(keyword, value, &place, depth)?;
            match rule {
                Some(types @ Rule::Types(_)) => rules.insert(0, types),
                Some(rule) => rules.push(rule),
                None => {}
            }
        }
        rules.extend(self.together(keywords, at, depth)?);
        Ok(Node { rules })
    }

    /// A rule that one keyword makes by itself.
    fn rule(
        &mut self,
        keyword: &str,
        value: &Value,
        at: &str,
        depth: usize,
    ) -> Result<Option<Rule>, String> {
        let wrong = |message: String| wrong(at, message);
        let bound = || {
            let number = value.as_number().cloned();
            number.ok_or_else(|| wrong("expected a number".to_owned()))
        };
        Ok(Some(match keyword {
            "type" => Rule::Types(types(value).map_err(wrong)?),
            "enum" => match value {
                Value::Array(values) if !values.is_empty() => values_rule(values),
                _ => return Err(wrong("expected a list of values".to_owned())),
            },
            "const" => values_rule(std::slice::from_ref(value)),
            "pattern" => {
                self.patterns += 1;
                if self.patterns > MOST_PATTERNS {
                    return Err(wrong(format!("{MOST_PATTERNS} patterns are allowed")));
                }
                let text = value.as_str().ok_or_else(|| wrong("expected text".to_owned()))?;
                Rule::Pattern(
                    Pattern::read(text).map_err(|error| wrong(format!("{text:?}: {error}")))?,
                )
            }
            "minimum" => Rule::Least { bound: bound()?, included: true },
            "exclusiveMinimum" => Rule::Least { bound: bound()?, included: false },
            "maximum" => Rule::Most { bound: bound()?, included: true },
            "exclusiveMaximum" => Rule::Most { bound: bound()?, included: false },
            "multipleOf" => {
                let step = value.as_u64().filter(|it| *it > 0);
                let what = "expected a whole number from 1 on: of others it is not enforced";
                Rule::MultipleOf(step.ok_or_else(|| wrong(what.to_owned()))?)
            }
            "items" => Rule::Items(Box::new(self.node(value, at, depth + 1)?)),
            "uniqueItems" => match value {
                Value::Bool(true) => Rule::Unique,
                Value::Bool(false) => return Ok(None),
                _ => return Err(wrong("expected true or false".to_owned())),
            },
            "propertyNames" => Rule::Names(Box::new(self.node(value, at, depth + 1)?)),
            "required" => Rule::Required(names(value).map_err(wrong)?),
            "allOf" => Rule::All(self.nodes(value, at, depth)?),
            "anyOf" => Rule::Any(self.nodes(value, at, depth)?),
            "oneOf" => Rule::One(self.nodes(value, at, depth)?),
            "not" => Rule::Not(Box::new(self.node(value, at, depth + 1)?)),
            other => return known(other).map(|()| None).map_err(wrong),
        }))
    }

    /// Rules that several keywords make together.
    fn together(
        &mut self,
        keywords: &Map<String, Value>,
        at: &str,
        depth: usize,
    ) -> Result<Vec<Rule>, String> {
        let mut rules = Vec::new();
        let range = |least, most| range(keywords, at, least, most);
        rules.extend(range("minLength", "maxLength")?.map(Rule::Characters));
        rules.extend(range("minItems", "maxItems")?.map(Rule::ItemCount));
        rules.extend(range("minProperties", "maxProperties")?.map(Rule::FieldCount));
        let (properties, others) =
            (keywords.get("properties"), keywords.get("additionalProperties"));
        if properties.is_none() && others.is_none() {
            return Ok(rules);
        }
        let mut known = BTreeMap::new();
        if let Some(properties) = properties {
            let place = place(at, "properties");
            let Value::Object(properties) = properties else {
                return Err(wrong(&place, "expected names, each with a schema".to_owned()));
            };
            for (name, schema) in properties {
                let place = format!("{place}.{name}");
                known.insert(name.clone(), self.node(schema, &place, depth + 1)?);
            }
        }
        let others = match others {
            Some(Value::Bool(false)) => Others::None,
            None => Others::Of(Box::default()),
            Some(schema) => {
                let place = place(at, "additionalProperties");
                Others::Of(Box::new(self.node(schema, &place, depth + 1)?))
            }
        };
        rules.push(Rule::Fields { known, others });
        Ok(rules)
    }

    fn nodes(&mut self, value: &Value, at: &str, depth: usize) -> Result<Vec<Node>, String> {
        match value {
            Value::Array(schemas) if !schemas.is_empty() => (0usize..)
                .zip(schemas)
                .map(|(index, schema)| self.node(schema, &format!("{at}[{index}]"), depth + 1))
                .collect(),
            _ => Err(wrong(at, "expected a list of schemas".to_owned())),
        }
    }
}

fn place(at: &str, keyword: &str) -> String {
    if at.is_empty() { keyword.to_owned() } else { format!("{at}.{keyword}") }
}

fn wrong(at: &str, message: String) -> String {
    if at.is_empty() { message } else { format!("{at}: {message}") }
}

/// Whether a keyword is one of those that are read elsewhere, or say nothing.
fn known(keyword: &str) -> Result<(), String> {
    if ENFORCED.contains(&keyword) || NOTES.contains(&keyword) {
        return Ok(());
    }
    Err(match REFUSED.iter().find(|(refused, _)| *refused == keyword) {
        Some((_, instead)) => format!("tread does not enforce this keyword: {instead}"),
        None => format!(
            "{}; tread takes no keyword that it does not enforce",
            unknown("keyword", keyword, &ENFORCED)
        ),
    })
}

fn types(value: &Value) -> Result<Vec<Type>, String> {
    let words: Vec<&Value> = match value {
        Value::Array(words) if !words.is_empty() => words.iter().collect(),
        word => vec![word],
    };
    let read = |word: &Value| {
        let found = TYPES.iter().find(|(name, _)| word.as_str() == Some(name));
        found.map(|(_, found)| *found).ok_or_else(|| {
            let names = TYPES.map(|(name, _)| name).join(", ");
            format!("expected one of {names}, found {word}")
        })
    };
    words.into_iter().map(read).collect()
}

fn values_rule(values: &[Value]) -> Rule {
    const MOST: usize = 20;
    let word = |it: &Value| it.as_str().map_or_else(|| it.to_string(), str::to_owned);
    let shown = listed(&values.iter().map(word).collect::<Vec<_>>(), MOST);
    Rule::Values { shown, canonical: values.iter().map(canonical).collect() }
}

fn names(value: &Value) -> Result<Vec<String>, String> {
    let names = value.as_array().and_then(|names| {
        names.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Option<_>>()
    });
    names.ok_or_else(|| "expected a list of names".to_owned())
}

fn range(
    keywords: &Map<String, Value>,
    at: &str,
    least: &str,
    most: &str,
) -> Result<Option<Range>, String> {
    let bound = |keyword: &str| match keywords.get(keyword) {
        None => Ok(None),
        Some(value) => match value.as_u64() {
            Some(bound) => Ok(Some(bound)),
            None => Err(wrong(&place(at, keyword), "expected a whole number from 0 on".to_owned())),
        },
    };
    Ok(match (bound(least)?, bound(most)?) {
        (None, None) => None,
        (least, most) => Some(Range { least: least.unwrap_or(0), most: most.unwrap_or(u64::MAX) }),
    })
}
