
/// A password: it counts from the next login on. Only tokens of it reach a
/// policy, so that all it can see is whether there is one.
fn password(settings: &Settings, change: &Change) -> Verdict {
    match change.edit() {
        Edit::Removed if !settings.may_remove_password => Verdict::refuse(
            "without its password nobody could log in on the console: leave it in place",
        ),
        _ => Verdict::nothing("the password counts from the next login on"),
    }
}
