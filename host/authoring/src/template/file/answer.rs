
@SERVICES@/// A configuration file: what its lines say decides, not its bytes. A reload is
/// asked for as long as nobody says that the service takes a restart.
fn file(settings: &Settings, change: &Change) -> Verdict {
@SERVICEOF@    let act = |reason: &str| match @RESTARTS@ {
        true => Verdict::restart(service, reason),
        false => Verdict::reload(service, reason),
    };
    let (Some(before), Some(after)) = (change.before.as_file(), change.after.as_file()) else {
        return act("the file came or went, and the service has to read it anew");
    };
    let access = |file: &File| (file.mode, file.user.clone(), file.group.clone());
    if access(before) != access(after) {
        return act("who may read the file changed: better to see now whether the service can");
    }
    let (Some(before), Some(after)) = (before.content.text(), after.content.text()) else {
        // A secret is only known by a token, and other bytes are no text:
        // better to have no opinion than to guess.
        return Verdict::abstain_because("it is a secret, of which only a token is known, or no text");
    };
    let (before, after) = (without_comments(before), without_comments(after));
    let lines = diff::lines(&before, &after);
    if lines.is_empty() {
        return Verdict::nothing("only comments, blank lines or white space at their ends changed");
    }
    // A reason counts and names; it never quotes contents, since it is shown
    // in the cluster.
    let (added, removed) = (lines.added.len(), lines.removed.len());
    act(&format!(
        "the service has to read the file anew; lines added: {added}, removed: {removed}"
    ))
}

/// The lines that say something. What stands in front of a word counts: in YAML it does.
fn without_comments(text: &str) -> String {
    let says = |line: &&str| {
        let said = line.trim_start();
        !said.is_empty() && (!said.starts_with('#') || said.starts_with("#!"))
    };
    text.lines().map(str::trim_end).filter(says).collect::<Vec<_>>().join("\n")
}
