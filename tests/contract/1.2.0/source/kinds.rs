//! Tells what it is offered of every kind: units with drop-ins, keys, tokens.
use tread_guest_sdk::{Change, Claim, Content, Context, Effect, Policy, State, Verdict, export};

pub struct Kinds;

impl Policy for Kinds {
    type Settings = ();
    const NAME: &'static str = "kinds";
    const VERSION: &'static str = "1.0.0";
    const SUMMARY: &'static str = "Tells what it is offered";
    const CLAIMS: &'static [Claim] = &[
        Claim::on("file:/etc/kinds/*", Effect::None, Effect::None),
        Claim::on("unit:kinds*.service", Effect::None, Effect::None),
        Claim::on("ssh-keys:core", Effect::None, Effect::None),
        Claim::on("password:core", Effect::None, Effect::None),
        Claim::on("kernel-arguments", Effect::None, Effect::None),
        Claim::on("kernel-type", Effect::None, Effect::None),
        Claim::on("os-image", Effect::None, Effect::None),
        Claim::on("extensions", Effect::None, Effect::None),
    ];

    fn classify((): &(), change: &Change, _: &Context<'_>) -> Verdict {
        Verdict::nothing([told(&change.before), told(&change.after)].join(" -> "))
    }
}

fn told(state: &State) -> String {
    match state {
        State::Absent => "absent".to_owned(),
        State::File(file) => {
            format!("{} {} {}:{}", content(&file.content), file.mode, file.user, file.group)
        }
        State::Unit(unit) => {
            let mut text = content(&unit.contents);
            text += match unit.enabled {
                None => ", by preset",
                Some(true) => ", enabled",
                Some(false) => ", disabled",
            };
            if unit.masked {
                text += ", masked";
            }
            for dropin in &unit.dropins {
                text += &format!(", {} of {}", dropin.name, content(&dropin.contents));
            }
            text
        }
        State::List(items) => format!("[{}]", items.join(" ")),
        State::Text(text) => text.clone(),
        State::Digest(digest) => digest.clone(),
    }
}

fn content(content: &Content) -> String {
    match content {
        Content::Absent => "no bytes".to_owned(),
        Content::Bytes(bytes) => format!("{} bytes", bytes.len()),
        Content::Digest(digest) => digest.clone(),
    }
}

export!(Kinds);
