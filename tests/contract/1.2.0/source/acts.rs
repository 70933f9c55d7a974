//! Acts, in every way that there is.
use tread_guest_sdk::{Action, Change, Claim, Context, Effect, Policy, Verdict, export};

pub struct Acts;

impl Policy for Acts {
    type Settings = ();
    const NAME: &'static str = "acts";
    const VERSION: &'static str = "1.0.0";
    const SUMMARY: &'static str = "Acts as the file asks for";
    const CLAIMS: &'static [Claim] =
        &[Claim::on("file:/etc/acts/*", Effect::None, Effect::Refuse)];

    fn classify((): &(), change: &Change, _: &Context<'_>) -> Verdict {
        let text = change.after.as_text().unwrap_or_default();
        match change.name().rsplit('/').next().unwrap_or_default() {
            "daemon-reload" => Verdict::act(vec![Action::DaemonReload], "units are read again"),
            "drain" => Verdict::drain("pods move first").and(Action::restart("drained.service")),
            "none" => Verdict::nothing("it is read at every use"),
            "panic" => panic!("asked to"),
            "reboot" => Verdict::reboot("it is read at boot"),
            "refuse" => Verdict::refuse("take it out again"),
            "reload" => Verdict::reload(text, "it is read again"),
            "restart" => Verdict::restart(text, "it is read at the start"),
            _ => Verdict::abstain(),
        }
    }
}

export!(Acts);
