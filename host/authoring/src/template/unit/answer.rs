
/// A systemd unit: what its keys say decides, not its bytes. systemd itself
/// reads it again without being asked: tread sees to that.
fn unit(settings: &Settings, change: &Change) -> Verdict {
    let (Some(before), Some(after)) = (change.before.as_unit(), change.after.as_unit()) else {
        // Whether a unit that comes is started, or one that goes is stopped, is
        // more than a restart can say.
        return Verdict::abstain();
    };
    // A unit file of the configuration's own hides all that the system's says, which is not seen here.
    let switches = |unit: &Unit| (unit.enabled, unit.masked, unit.contents == Content::Absent);
    // A template such as app@.service is nothing that can be restarted.
    if switches(before) != switches(after) || change.name().contains("@.") {
        return Verdict::abstain();
    }
    let (Some(before), Some(after)) = (unit_text(before), unit_text(after)) else {
        return Verdict::abstain();
    };
    let counts = |key: &diff::Key<'_>| !settings.ignored_keys.contains(&key.key);
    let keys = diff::keys(&before, &after, '=');
    let changed: Vec<&str> =
        keys.iter().filter(|key| counts(key)).map(|key| key.key.as_str()).collect();
    let why = format!("the unit takes up what changed in it, keys: {}", changed.len());
    if changed.is_empty() {
        return Verdict::nothing("nothing changed that the running unit depends on");
    }
    // A target, a slice, dbus.service and the like: touching one takes others with it.
    if let Err(taboo) = units::touch_gently(change.name()) {
        return Verdict::abstain_because(format!("{} {taboo}", change.name()));
    }
    // systemd mounts it again with its new options, and ends nothing that uses it.
    if change.name().ends_with(".mount") && changed == ["Mount.Options"] {
        return Verdict::reload(change.name(), why);
    }
    // A reload reads the configuration of a service anew, and not the unit's own.
    Verdict::restart(change.name(), why)
}

/// The unit file and its drop-ins, one after the other, as systemd reads them: a line that ends in a
/// backslash goes on in the next one, and no section of a file reaches into the next file. None if one
/// of them is no text.
fn unit_text(unit: &Unit) -> Option<String> {
    let dropins = unit.dropins.iter().map(|dropin| &dropin.contents);
    let pieces = std::iter::once(&unit.contents).chain(dropins);
    let texts: Option<Vec<&str>> = pieces
        .filter(|content| **content != Content::Absent)
        .map(|content| content.text())
        .collect();
    Some(texts?.into_iter().map(in_whole_lines).collect::<Vec<_>>().join("\n[]\n"))
}

fn in_whole_lines(text: &str) -> String {
    let mut whole = String::new();
    let mut goes_on = false;
    for line in text.lines().filter(|line| !line.trim_start().starts_with(['#', ';'])) {
        if !goes_on {
            whole.push('\n');
        }
        // Two of them are one that is meant.
        let backslashes = line.len() - line.trim_end_matches('\\').len();
        goes_on = backslashes % 2 == 1;
        match line.strip_suffix('\\').filter(|_| goes_on) {
            Some(said) => whole.extend([said, " "]),
            None => whole.push_str(line),
        }
    }
    whole
}
