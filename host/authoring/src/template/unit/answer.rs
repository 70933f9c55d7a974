
/// A systemd unit: what its keys say decides, not its bytes. systemd itself
/// reads it again without being asked: tread sees to that.
fn unit(settings: &Settings, change: &Change) -> Verdict {
    let (Some(before), Some(after)) = (change.before.as_unit(), change.after.as_unit()) else {
        // Whether a unit that comes is started, or one that goes is stopped, is
        // more than a restart can say.
        return Verdict::abstain();
    };
    let switches = |unit: &Unit| (unit.enabled, unit.masked);
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
    match change.name().rsplit('.').next() {
        _ if changed.is_empty() => {
            Verdict::nothing("nothing changed that the running unit depends on")
        }
        // systemd mounts it again with its new options, and ends nothing that uses it.
        Some("mount") if changed == ["Mount.Options"] => Verdict::reload(change.name(), why),
        // A reload reads the configuration of a service anew, and not the unit's own.
        Some("service" | "socket" | "path" | "timer" | "mount") => {
            Verdict::restart(change.name(), why)
        }
        // A target, a slice and the like are nothing that a policy may restart.
        _ => Verdict::abstain(),
    }
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
