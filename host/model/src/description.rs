//! What a policy says of itself.

use crate::effect::Effect;
use serde::{Deserialize, Serialize};

/// What a policy is: in WIT `description`, and as JSON the component's custom
/// section [`SECTION`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Description {
    /// Lower-case letters, digits and `-`, 63 characters at most.
    pub name: String,
    /// A semantic version.
    pub version: String,
    /// One line.
    pub summary: String,
    /// What it wants to see.
    pub claims: Vec<Claim>,
    /// The settings that it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<SettingsDescription>,
}

/// The label of a ConfigMap that holds a policy.
pub const POLICY_LABEL: &str = "tread.dev/policy";

/// The component's custom section that holds the description.
pub const SECTION: &str = "tread:policy";

/// What a policy says beforehand on secrets: in WIT `declared`, since 1.1.0, and
/// as JSON the component's custom section [`DECLARATIONS`]. One that is built
/// against 1.0.0 declares nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Declarations {
    /// Whether it can say nothing of a secret without reading it.
    pub needs_secrets: bool,
    /// Sentences that hold no contents, word by word as its verdicts say them.
    pub reasons: Vec<String>,
}

/// The component's custom section that holds the declarations.
pub const DECLARATIONS: &str = "tread:declarations";

/// Changes that a policy wants to see, and the range of its answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Claim {
    /// `KIND` or `KIND:GLOB`.
    pub changes: String,
    /// The least disruptive answer…
    pub least: Effect,
    /// … and the most disruptive.
    pub most: Effect,
    /// Offer it also when it did not change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_unchanged: bool,
}

impl Claim {
    /// Offered only when it changed.
    pub fn on(changes: impl Into<String>, least: Effect, most: Effect) -> Claim {
        Claim { changes: changes.into(), least, most, with_unchanged: false }
    }
}

/// The settings that a policy takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SettingsDescription {
    /// One JSON object: every setting with its default.
    pub defaults: String,
    /// A JSON Schema of it.
    pub schema: String,
}

/// What two descriptions say in two ways.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Of what.
    pub what: String,
    /// What the one says.
    pub one: String,
    /// What the other says.
    pub two: String,
}

impl Description {
    /// The first thing that another description says in another way.
    pub fn difference(&self, other: &Description) -> Option<Difference> {
        let texts = [
            ("the name", &self.name, &other.name),
            ("the version", &self.version, &other.version),
            ("the summary", &self.summary, &other.summary),
        ];
        let text = texts.into_iter().find(|(_, one, two)| one != two);
        let text = text.map(|(what, one, two)| differs(what, one, two));
        text.or_else(|| claims_differ(&self.claims, &other.claims))
            .or_else(|| settings_differ(self.settings.as_ref(), other.settings.as_ref()))
    }
}

fn differs(what: &str, one: &str, two: &str) -> Difference {
    let quoted = |text: &str, other: &str| format!("{:?}", around(text, other));
    Difference { what: what.to_owned(), one: quoted(one, two), two: quoted(two, one) }
}

/// A text, or the part of a long one where it begins to be another than `other`.
fn around(text: &str, other: &str) -> String {
    const SHOWN: usize = 60;
    let same = text.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    if text.chars().count().max(other.chars().count()) <= 2 * SHOWN {
        return text.to_owned();
    }
    let before = if same > SHOWN / 2 { "…" } else { "" };
    let shown: String = text.chars().skip(same.saturating_sub(SHOWN / 2)).take(SHOWN).collect();
    format!("{before}{shown}…")
}

fn claims_differ(one: &[Claim], two: &[Claim]) -> Option<Difference> {
    for (number, (one, two)) in (1usize..).zip(one.iter().zip(two)) {
        if one.changes != two.changes {
            return Some(differs(&format!("claim {number}"), &one.changes, &two.changes));
        }
        let words = |claim: &Claim| {
            let beside = if claim.with_unchanged { ", with what did not change" } else { "" };
            format!("{} to {}{beside}", claim.least, claim.most)
        };
        if one != two {
            let what = format!("the range of claim {number}, {}", one.changes);
            return Some(differs(&what, &words(one), &words(two)));
        }
    }
    let count = |claims: &[Claim]| claims.len().to_string();
    let what = "the number of claims".to_owned();
    (one.len() != two.len()).then(|| Difference { what, one: count(one), two: count(two) })
}

fn settings_differ(
    one: Option<&SettingsDescription>,
    two: Option<&SettingsDescription>,
) -> Option<Difference> {
    let taken = |settings: Option<_>| if settings.is_some() { "some" } else { "none" }.to_owned();
    match (one, two) {
        (Some(one), Some(two)) if one.defaults != two.defaults => {
            Some(differs("the defaults of the settings", &one.defaults, &two.defaults))
        }
        (Some(one), Some(two)) if one.schema != two.schema => {
            Some(differs("the schema of the settings", &one.schema, &two.schema))
        }
        (Some(_), Some(_)) | (None, None) => None,
        (one, two) => {
            let what = "the settings that it takes".to_owned();
            Some(Difference { what, one: taken(one), two: taken(two) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described() -> Description {
        let claim = |changes: &str| Claim::on(changes, Effect::None, Effect::Restart);
        let text = str::to_owned;
        Description {
            name: text("chrony"),
            version: text("1.0.0"),
            summary: text("Restarts chronyd"),
            claims: vec![claim("file:/etc/a"), claim("file:/etc/b")],
            settings: Some(SettingsDescription { defaults: text("{}"), schema: text("{}") }),
        }
    }

    #[test]
    fn whatever_differs_is_named_with_both_values() {
        type Edit = fn(&mut Description);
        assert_eq!(described().difference(&described()), None);
        let edits: [(Edit, &str); 11] = [
            (|it| it.name = "time".into(), "the name: \"chrony\", \"time\""),
            (|it| it.version = "2.0.0".into(), "the version: \"1.0.0\", \"2.0.0\""),
            (|it| it.summary.push('!'), "the summary: \"Restarts chronyd\", \"Restarts chronyd!\""),
            (|it| it.claims[1].changes.push('x'), "claim 2: \"file:/etc/b\", \"file:/etc/bx\""),
            (
                |it| it.claims[1].most = Effect::Reboot,
                "the range of claim 2, file:/etc/b: \"none to restart\", \"none to reboot\"",
            ),
            (
                |it| it.claims[0].least = Effect::Reload,
                "\"none to restart\", \"reload to restart\"",
            ),
            (
                |it| it.claims[0].with_unchanged = true,
                "\"none to restart, with what did not change\"",
            ),
            (|it| it.claims.truncate(1), "the number of claims: 2, 1"),
            (|it| it.settings = None, "the settings that it takes: some, none"),
            (
                |it| it.settings.as_mut().unwrap().defaults = "{\"a\":1}".into(),
                "the defaults of the settings: \"{}\", \"{\\\"a\\\":1}\"",
            ),
            (
                |it| it.settings.as_mut().unwrap().schema = "{ }".into(),
                "the schema of the settings",
            ),
        ];
        for (edit, words) in edits {
            let mut other = described();
            edit(&mut other);
            let Difference { what, one, two } = described().difference(&other).unwrap();
            let found = format!("{what}: {one}, {two}");
            assert!(found.contains(words), "{words:?} in {found}");
            assert!(other.difference(&described()).is_some());
        }
    }

    #[test]
    fn of_long_texts_the_part_is_shown_that_differs() {
        let long = |end: &str| Description {
            settings: Some(SettingsDescription {
                defaults: "{}".into(),
                schema: format!("{{\"a\":\"{}{end}\"}}", "ü".repeat(1000)),
            }),
            ..described()
        };
        let Difference { one, two, .. } = long("one").difference(&long("two")).unwrap();
        assert!(one.contains("one") && two.contains("two"), "{one} {two}");
        assert!(one.len() < 200 && two.len() < 200, "{one} {two}");
    }
}
