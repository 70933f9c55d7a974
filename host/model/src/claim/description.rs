//! The rules that a description has to keep.

use super::pattern::{MOST_ELEMENTS, Pattern};
use crate::description::{Claim, Declarations, Description, SettingsDescription};
use crate::schema::Schema;
use crate::text::{barred_from_sentence, is_barred_from_sentences, quoted};
use std::collections::BTreeSet;

const MOST_CLAIMS: usize = 256;
const LONGEST_VERSION: usize = 256;
const LONGEST_SUMMARY: usize = 200;
const MOST_REASONS: usize = 256;
/// As long as a reason may be in a verdict.
const LONGEST_REASON: usize = 512;

/// Checks what a policy says of itself; the error is for its author.
pub fn validate_description(description: &Description) -> Result<(), String> {
    let Description { name, version, summary, claims, settings } = description;
    let fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || name.len() > 63 || !name.bytes().all(fine) {
        return Err(format!(
            "the name {name:?} is none: expected 1 to 63 lower-case letters, digits and -"
        ));
    }
    let length = version.chars().count();
    if length > LONGEST_VERSION {
        return Err(format!(
            "the version has {length} characters, and {LONGEST_VERSION} are allowed"
        ));
    }
    if let Err(error) = semver::Version::parse(version) {
        return Err(format!(
            "the version {version:?} is no semantic version such as 1.4.0: {error}"
        ));
    }
    let mut chars = summary.chars().enumerate();
    if let Some((at, odd)) = chars.find(|(_, c)| is_barred_from_sentences(*c)) {
        let what = match odd {
            '\n' | '\r' => "a line break",
            odd if odd.is_control() => "a control character",
            _ => "a character that hides or turns text",
        };
        return Err(format!(
            "the summary holds {what} (U+{:04X}, character {}): write one line without it",
            u32::from(odd),
            at + 1
        ));
    }
    let length = summary.chars().count();
    if length > LONGEST_SUMMARY {
        return Err(format!(
            "the summary has {length} characters, and {LONGEST_SUMMARY} are allowed"
        ));
    }
    if claims.is_empty() || claims.len() > MOST_CLAIMS {
        return Err(format!("{} claims: expected 1 to {MOST_CLAIMS}", claims.len()));
    }
    let mut seen = BTreeSet::new();
    let mut patterns = Vec::with_capacity(claims.len());
    for claim in claims {
        let pattern = check_claim(claim);
        patterns.push(pattern.map_err(|error| format!("the claim {:?}: {error}", claim.changes))?);
        if !seen.insert(&claim.changes) {
            return Err(format!("the claim {:?} stands there twice", claim.changes));
        }
    }
    check_size(&patterns)?;
    settings.as_ref().map_or(Ok(()), check_settings)
}

/// Checks what a policy declares beside its description.
pub fn validate_declarations(declarations: &Declarations) -> Result<(), String> {
    let reasons = &declarations.reasons;
    if reasons.len() > MOST_REASONS {
        return Err(format!("{} reasons: {MOST_REASONS} are allowed", reasons.len()));
    }
    for reason in reasons {
        let fine = !reason.trim().is_empty() && reason.len() <= LONGEST_REASON;
        let barred = barred_from_sentence(reason);
        if !fine || barred.is_some() {
            let without = barred.map(|it| format!(", without {it}")).unwrap_or_default();
            return Err(format!(
                "the reason {}: expected one line of {LONGEST_REASON} bytes at most{without}",
                quoted(reason)
            ));
        }
    }
    Ok(())
}

/// Checks that all patterns of a policy together are not too much to match.
pub fn check_size(patterns: &[Pattern]) -> Result<(), String> {
    let elements = patterns.iter().map(Pattern::elements).sum::<usize>();
    match patterns.iter().max_by_key(|pattern| pattern.elements()) {
        Some(longest) if elements > MOST_ELEMENTS => Err(format!(
            "its globs are too long: counted from the first glob character of each, with all \
             braces written out, they have {elements} characters, and {MOST_ELEMENTS} are allowed. \
             Write fewer or wider ones; most of it has one that begins with {:?}",
            longest.literal
        )),
        _ => Ok(()),
    }
}

/// Of claims that nobody checked, those that can be used: each has to be a pattern,
/// none may stand there twice, and all together may cost no more than the patterns of
/// `policies` policies. The first ones stay.
pub fn usable_claims(claims: impl IntoIterator<Item = Claim>, policies: usize) -> Vec<Claim> {
    let most = MOST_CLAIMS.saturating_mul(policies);
    let most_elements = MOST_ELEMENTS.saturating_mul(policies);
    let (mut usable, mut seen, mut elements) = (Vec::new(), BTreeSet::new(), 0_usize);
    for claim in claims {
        if usable.len() >= most {
            break;
        }
        let Ok(pattern) = Pattern::parse(&claim.changes) else { continue };
        let sum = elements.saturating_add(pattern.elements());
        if sum > most_elements || !seen.insert(claim.changes.clone()) {
            continue;
        }
        elements = sum;
        usable.push(claim);
    }
    usable
}

fn check_claim(claim: &Claim) -> Result<Pattern, String> {
    let pattern = Pattern::parse(&claim.changes)?;
    if claim.least > claim.most {
        return Err(format!("its least, {}, is more than its most, {}", claim.least, claim.most));
    }
    Ok(pattern)
}

fn check_settings(settings: &SettingsDescription) -> Result<(), String> {
    let SettingsDescription { defaults, schema } = settings;
    if let Err(error) = serde_json::from_str::<serde_json::Map<_, serde_json::Value>>(defaults) {
        return Err(format!("the defaults of the settings are no JSON object: {error}"));
    }
    Schema::read(schema).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::Effect;

    fn claim(changes: &str) -> Claim {
        Claim::on(changes, Effect::None, Effect::Restart)
    }

    fn good() -> Description {
        Description {
            name: "chrony".into(),
            version: "1.0.0".into(),
            summary: "Restarts chronyd when its configuration changes".into(),
            claims: vec![claim("file:/etc/chrony.conf")],
            settings: Some(SettingsDescription { defaults: "{}".into(), schema: "{}".into() }),
        }
    }

    #[test]
    fn a_good_description_is_taken() {
        assert_eq!(validate_description(&good()), Ok(()));
        assert_eq!(validate_description(&Description { settings: None, ..good() }), Ok(()));
    }

    #[test]
    fn what_keyboards_write_may_stand_in_sentences_and_what_turns_text_may_not() {
        let summary = "⚠\u{fe0f} asks first \u{e0100}\u{180b}\u{3164}";
        let described = Description { summary: summary.into(), ..good() };
        assert_eq!(validate_description(&described), Ok(()));
        let declared = |reason: &str| {
            validate_declarations(&Declarations {
                reasons: vec![reason.into()],
                ..Declarations::default()
            })
        };
        assert_eq!(declared(summary), Ok(()));
        let error = declared("⚠\u{fe0f} a\u{202e}b").expect_err("turned");
        assert!(
            error.contains(r"\u{fe0f} a\u{202e}b") && error.ends_with(", without U+202E"),
            "{error}"
        );
        assert!(!declared("").expect_err("empty").contains("without"));
    }

    #[test]
    fn each_broken_rule_is_named() {
        let settings = |defaults: &str, schema: &str| {
            Some(SettingsDescription { defaults: defaults.into(), schema: schema.into() })
        };
        let range = Claim { least: Effect::Reboot, ..claim("file:/etc/x") };
        let many = (0..257).map(|n| claim(&format!("file:/etc/{n}"))).collect();
        let twice = vec![claim("file:/etc/x"), claim("file:/etc/x")];
        for (broken, word) in [
            (Description { name: String::new(), ..good() }, "name"),
            (Description { name: "Chrony".into(), ..good() }, "name"),
            (Description { name: "a".repeat(64), ..good() }, "name"),
            (Description { version: "1.0".into(), ..good() }, "version"),
            (
                Description { version: format!("1.0.0-{}", "a".repeat(251)), ..good() },
                "the version has 257 characters, and 256 are allowed",
            ),
            (
                Description { summary: "two\nlines".into(), ..good() },
                "the summary holds a line break (U+000A, character 4)",
            ),
            (
                Description { summary: "\u{1b}[31mred".into(), ..good() },
                "the summary holds a control character (U+001B, character 1)",
            ),
            (
                Description { summary: "turned \u{202e}".into(), ..good() },
                "the summary holds a character that hides or turns text (U+202E, character 8)",
            ),
            (
                Description { summary: "a".repeat(201), ..good() },
                "the summary has 201 characters, and 200 are allowed",
            ),
            (Description { claims: vec![claim("file:/etc/\u{202e}x")], ..good() }, "turns text"),
            (Description { claims: Vec::new(), ..good() }, "0 claims"),
            (Description { claims: many, ..good() }, "257 claims"),
            (Description { claims: twice, ..good() }, "twice"),
            (Description { claims: vec![claim("file:etc")], ..good() }, "begins with /"),
            (Description { claims: vec![range], ..good() }, "least"),
            (Description { settings: settings("[]", "{}"), ..good() }, "defaults"),
            (Description { settings: settings("{}", "true"), ..good() }, "schema"),
            (
                Description {
                    settings: settings("{}", r#"{"properties":{"a":{"format":"uri"}}}"#),
                    ..good()
                },
                "the schema: properties.a.format: tread does not enforce this keyword",
            ),
        ] {
            let error = validate_description(&broken).expect_err(word);
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn globs_that_are_too_much_to_match_are_refused_with_what_to_do() {
        let claims = |length: usize| {
            vec![claim("file:/etc/x"), claim(&format!("file:/a*{}", "b".repeat(length)))]
        };
        let many = |length| {
            (0..9).map(|n| claim(&format!("file:/etc/{n}*{}", "b".repeat(length)))).collect()
        };
        for (claims, fits) in [
            (claims(900), true),
            (many(453), true),
            (many(454), false),
            (vec![claim(&format!("file:/{{a,b,c,d,e}}{}", "b".repeat(900)))], false),
        ] {
            let result = validate_description(&Description { claims, ..good() });
            assert_eq!(result.is_ok(), fits, "{result:?}");
            if let Err(error) = result {
                assert!(error.contains("Write fewer") || error.contains("too long"), "{error}");
            }
        }
    }

    #[test]
    fn of_claims_that_nobody_checked_those_are_usable_that_a_policy_may_have() {
        let changes = |claims: Vec<Claim>, policies| {
            let usable = usable_claims(claims, policies);
            usable.into_iter().map(|claim| claim.changes).collect::<Vec<_>>()
        };
        let mixed = ["file:/etc/a", "file:etc", "", "file:/etc/a", "file:/etc/\u{1b}[2J", "unit:*"];
        let mixed: Vec<Claim> = mixed.iter().map(|it| claim(it)).collect();
        assert_eq!(changes(mixed, 1), ["file:/etc/a", "unit:*"]);
        let many: Vec<Claim> = (0..1000).map(|n| claim(&format!("file:/etc/{n}"))).collect();
        assert_eq!(changes(many.clone(), 1).len(), 256);
        assert_eq!(changes(many, 2).len(), 512);
        let long = (0..100).map(|n| claim(&format!("file:/etc/{n}*{}", "b".repeat(900))));
        let mut long: Vec<Claim> = long.collect();
        long.push(claim("file:/etc/exact"));
        let usable = changes(long, 1);
        assert_eq!((usable.len(), usable.last().unwrap().as_str()), (5, "file:/etc/exact"));
    }

    #[test]
    fn limits_are_reached_but_not_passed() {
        let claims = (0..256).map(|n| claim(&format!("file:/etc/{n}"))).collect();
        let full = Description {
            name: "a".repeat(63),
            version: format!("1.0.0-{}", "a".repeat(250)),
            summary: "é".repeat(200),
            claims,
            ..good()
        };
        assert_eq!(validate_description(&full), Ok(()));
    }
}
