//! Whether a policy may claim what it claims, or an admin has to say so first.

use super::Pattern;
use crate::description::Claim;
use crate::text::listed;

/// How many claims a sentence names.
const NAMED: usize = 3;

/// Why an admin has to approve a policy; None: nobody has to.
///
/// `allowed` is what its namespace lists, one claim a line.
pub fn needed(claims: &[Claim], allowed: Option<&str>) -> Option<String> {
    let allowed = allowed.map(|text| {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.filter_map(|line| Pattern::parse(line).ok().map(|it| (line, it))).collect::<Vec<_>>()
    });
    let mut wide = Vec::new();
    let mut beyond = Vec::new();
    for claim in claims {
        let text = claim.changes.as_str();
        // What is no pattern is no claim; whoever loads the policy says so.
        let Ok(pattern) = Pattern::parse(text) else { continue };
        if pattern.is_wide() {
            wide.push(text);
        } else if let Some(lines) = &allowed
            && !lines.iter().any(|(line, allowed)| covers(line, allowed, text, &pattern))
        {
            beyond.push(text);
        }
    }
    let mut why = Vec::new();
    if !wide.is_empty() {
        why.push(format!("it claims as much as {}", listed(&wide, NAMED)));
    }
    if !beyond.is_empty() {
        why.push(format!(
            "it claims {}, which its namespace does not list",
            listed(&beyond, NAMED)
        ));
    }
    (!why.is_empty()).then(|| why.join(", and "))
}

/// Whether every change that `claimed` matches is matched by `allowed`. Where
/// that is hard to say, it is not so.
fn covers(line: &str, allowed: &Pattern, text: &str, claimed: &Pattern) -> bool {
    if line == text {
        return true;
    }
    if let Some(id) = claimed.exact() {
        return allowed.matches(id);
    }
    // Everything below a directory that has no glob in its name.
    let Some(directory) = line.strip_suffix("/**") else { return false };
    let plain = |part: &str| !part.contains(['*', '?', '[', '{', '\\']);
    plain(directory)
        && allowed.kind() == claimed.kind()
        // Nothing leads out of it again: paths are clean.
        && text.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::Effect;

    fn claims(all: &[&str]) -> Vec<Claim> {
        all.iter().map(|it| Claim::on(*it, Effect::None, Effect::Reboot)).collect()
    }

    #[test]
    fn a_namespace_allows_what_it_lists_and_nothing_wide() {
        let app = Some("file:/etc/app/**\n\n  unit:app.service  \n");
        for (claimed, allowed, why) in [
            (&["file:/etc/app/a.conf"][..], None, None),
            (&["file:/etc/app/**"], None, None),
            (&["file:/**"], None, Some("it claims as much as file:/**")),
            (&["unit:*"], None, Some("as much as unit:*")),
            (&["file:/etc/app/**", "unit:app.service"], app, None),
            (&["file:/etc/app/a.conf", "file:/etc/app/d/*.conf"], app, None),
            (&["file:/etc/app/{a,b}/**"], app, None),
            (&["file:/etc/app"], app, Some("file:/etc/app, which its namespace does not list")),
            (&["file:/etc/apple/**"], app, Some("file:/etc/apple/**")),
            (&["file:/etc/ap{p,q}/**"], app, Some("file:/etc/ap{p,q}/**")),
            (&["unit:app@*.service"], app, Some("unit:app@*.service")),
            (&["file:/**"], Some("file:/**"), Some("as much as")),
            (&["file:/etc/a/b"], Some(""), Some("does not list")),
            (&["file:/etc/a/b"], Some("no claim"), Some("does not list")),
            (
                &["unit:a.service", "unit:b.service", "unit:c.service", "unit:d.service"],
                Some(""),
                Some("unit:a.service, unit:b.service, unit:c.service and 1 more, which"),
            ),
            (&["file:/**", "unit:a.service"], app, Some("file:/**, and it claims unit:a.service")),
        ] {
            let found = needed(&claims(claimed), allowed);
            match (why, &found) {
                (None, None) => {}
                (Some(words), Some(found)) if found.contains(words) => {}
                _ => panic!("{claimed:?} with {allowed:?}: {found:?}"),
            }
        }
    }
}
