
/// A name: whatever it is costs a reboot anyway, but some must not come in at
/// all. On the others this policy has no opinion.
fn text(settings: &Settings, change: &Change) -> Verdict {
    let is = |text: &str| settings.forbidden_names.iter().any(|start| text.starts_with(start));
    let (before, after) = (change.before.as_text(), change.after.as_text());
    match (before.is_some_and(is), after.is_some_and(is)) {
        (false, true) => Verdict::refuse("this is not allowed here: go back to what was set"),
        _ => Verdict::abstain(),
    }
}
