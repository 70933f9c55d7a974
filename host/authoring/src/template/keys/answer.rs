
/// SSH keys: they count from the next login on, but some must not come in.
fn keys(settings: &Settings, change: &Change) -> Verdict {
    let (before, after) = (change.before.as_list(), change.after.as_list());
    let refused = after.iter().filter(|key| !before.contains(key)).any(|key| {
        // Options may stand in front of the type.
        let is_refused = |word: &str| settings.refused_keys.iter().any(|refused| refused == word);
        key.split_whitespace().any(is_refused)
    });
    if refused {
        return Verdict::refuse("a new key is of a type that is not allowed here: add another");
    }
    let added = after.iter().filter(|key| !before.contains(key)).count();
    let removed = before.iter().filter(|key| !after.contains(key)).count();
    Verdict::nothing(format!(
        "keys count from the next login on; added: {added}, removed: {removed}"
    ))
}
