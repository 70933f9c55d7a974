//! Takes settings, and looks at what does not change. Made with wit-bindgen
//! alone, without the SDK.

wit_bindgen::generate!({ path: "policy.wit", world: "policy" });

use exports::tread::policy::classifier::Guest;
use tread::policy::types::{
    Action, Answer, Change, Claim, Content, Description, Effect, Entry, SettingsDescription, State,
    Verdict,
};

struct WithSettings;

impl Guest for WithSettings {
    fn describe() -> Description {
        Description {
            name: "settings".to_owned(),
            version: "1.0.0".to_owned(),
            summary: "Counts what does not change".to_owned(),
            claims: vec![Claim {
                changes: "file:/etc/settings.d/*".to_owned(),
                least: Effect::Restart,
                most: Effect::Drain,
                with_unchanged: true,
            }],
            settings: Some(SettingsDescription {
                defaults: r#"{"at_most":1,"unit":"settings.service"}"#.to_owned(),
                schema: r#"{"type":"object","properties":{"at_most":{"type":"integer"},"unit":{"type":"string"}}}"#
                    .to_owned(),
            }),
        }
    }

    fn check_settings(settings: String) -> Result<(), Vec<String>> {
        match read(&settings) {
            Ok((0, _)) => Err(vec!["at_most: expected more than 0".to_owned()]),
            Ok(_) => Ok(()),
            Err(error) => Err(vec![error]),
        }
    }

    fn classify(settings: String, changes: Vec<Change>, unchanged: Vec<Entry>) -> Vec<Verdict> {
        let Ok((at_most, unit)) = read(&settings) else { return Vec::new() };
        let lines: usize = unchanged.iter().map(|entry| lines(&entry.state)).sum();
        let count = changes.len() as u32;
        let reason = format!("changed: {count} of {at_most}; lines beside: {lines}");
        let mut actions = vec![Action::Restart(unit)];
        if count > at_most {
            actions.push(Action::Drain);
        }
        let answer = Answer::Act(actions);
        (0..count)
            .map(|change| Verdict { change, answer: answer.clone(), reason: reason.clone() })
            .collect()
    }
}

export!(WithSettings);

/// `{"at_most":1,"unit":"settings.service"}`
fn read(settings: &str) -> Result<(u32, String), String> {
    let (mut at_most, mut unit) = (0, String::new());
    for pair in settings.trim_matches(['{', '}']).split(',') {
        let (name, value) = pair.split_once(':').unwrap_or((pair, ""));
        let bare = |text: &str| text.trim_matches('"').to_owned();
        match bare(name).as_str() {
            "at_most" => at_most = value.parse().map_err(|_| "at_most: expected a number")?,
            "unit" => unit = bare(value),
            other => return Err(format!("{other}: there is no such setting")),
        }
    }
    Ok((at_most, unit))
}

fn lines(state: &State) -> usize {
    match state {
        State::File(file) => match &file.content {
            Content::Bytes(bytes) => bytes.iter().filter(|byte| **byte == b'\n').count(),
            _ => 0,
        },
        _ => 0,
    }
}
