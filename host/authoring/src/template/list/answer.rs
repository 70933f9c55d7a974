
/// A list of words: whatever is on it costs a reboot anyway, but some must not
/// come in at all. On the others this policy has no opinion.
fn list(settings: &Settings, change: &Change) -> Verdict {
    let (before, after) = (change.before.as_list(), change.after.as_list());
    let found = settings.forbidden.iter().find(|it| after.contains(it) && !before.contains(it));
    match found {
        Some(word) => Verdict::refuse(format!("{word} is not allowed here: take it out again")),
        None => Verdict::abstain(),
    }
}
