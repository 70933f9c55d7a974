//! What a policy did wrong, in the words of its author.

use std::path::{Component, Path};
use tread_console::inputs;
use tread_model::change::{Change, Content, State};
use tread_model::claim::Pattern;
use tread_model::description::Claim;
use tread_model::text::listed;
use tread_model::verdict::{Failure, FailureKind};

/// How a trap begins that reads or writes where no memory is.
const OUT_OF_BOUNDS: &str = "out of bounds memory access";

/// `tread policy build` puts the stack below all data, so that what is beyond it is no memory.
const USED_UP: &str = "most often its stack of 48 KiB is used up, by a recursion or by a large array: \
    bound the recursion, or put the array into a Vec";

/// What helps to explain a failure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene<'s> {
    pub(crate) claims: &'s [Claim],
    /// The directory of the crate, where there is one.
    pub(crate) source: Option<&'s Path>,
}

/// The directory of the crate that a component lies in, as `tread policy build`
/// leaves it.
pub(crate) fn crate_of(component: &Path) -> Option<&Path> {
    let dir = component.parent()?;
    dir.join("Cargo.toml").is_file().then_some(dir)
}

impl Scene<'_> {
    /// A failure of a call with these changes, in lines.
    pub(crate) fn failure(&self, failure: &Failure, offered: &[&Change<'_>]) -> Vec<String> {
        let Failure { kind, message } = failure;
        let mut lines = Vec::new();
        match kind {
            FailureKind::Trap => lines.extend(self.trap(message)),
            _ => lines.push(failure.to_string()),
        }
        match kind {
            FailureKind::BeyondClaim => lines.extend(self.widen(message, offered)),
            FailureKind::UnknownChange => lines.push(format!(
                "it was offered, from 0 on: {}",
                shortened(offered.iter().map(|change| change.id.as_str()))
            )),
            FailureKind::OutOfFuel
            | FailureKind::Deadline
            | FailureKind::Memory
            | FailureKind::Stack => lines.push(format!(
                "it was offered {} change{} with {} bytes",
                offered.len(),
                if offered.len() == 1 { "" } else { "s" },
                offered.iter().map(|change| size(change)).sum::<usize>()
            )),
            FailureKind::BadOutput => lines.push(
                "what an answer may be is in the contract's `verdict`, field by field".to_owned(),
            ),
            FailureKind::InvalidSettings => {
                lines.push("the settings are the defaults, with those of the case".to_owned());
            }
            _ => {}
        }
        lines
    }

    fn trap(&self, message: &str) -> Vec<String> {
        let panicked = message.strip_prefix("panicked at ").and_then(|it| it.split_once(": "));
        let Some((place, text)) = panicked else {
            let why = match message.contains(OUT_OF_BOUNDS) {
                true => USED_UP,
                false => "no panic was logged before: only policies made with the SDK say where",
            };
            return vec![format!("trap: {message}"), why.to_owned()];
        };
        let mut lines = vec![format!("trap: it panicked at {place}: {text}")];
        lines.extend(self.source_line(place));
        lines.push(
            "for what it cannot read it can abstain: a panic costs a reboot for all that is offered"
                .to_owned(),
        );
        lines
    }

    /// The line that `src/lib.rs:12:5` names.
    fn source_line(&self, place: &str) -> Option<String> {
        let mut parts = place.rsplitn(3, ':');
        let (_, line, path) = (parts.next()?, parts.next()?, parts.next()?);
        let number: usize = line.parse().ok()?;
        let path = own_source(path)?;
        // A member of a workspace is compiled in the workspace's directory.
        let text = self.source?.ancestors().find_map(|dir| {
            let file = dir.join(path);
            // Only a file has an end for sure.
            let read = file.is_file().then(|| inputs::read_file(&file))?;
            String::from_utf8(read.ok()?.bytes).ok()
        })?;
        let line = text.lines().nth(number.checked_sub(1)?)?;
        Some(format!("  {number} | {}", line.trim_end()))
    }

    /// The claim whose range was left.
    fn widen(&self, message: &str, offered: &[&Change<'_>]) -> Option<String> {
        let named = offered.iter().find(|change| message.contains(&change.id))?;
        let claim = self.claims.iter().find(|claim| matches(claim, &named.id))?;
        Some(format!(
            "the claim on {} goes from {} to {}: answer within it, or change the claim",
            claim.changes, claim.least, claim.most
        ))
    }

    /// Why a change is not offered.
    pub(crate) fn not_offered(&self, id: &str) -> String {
        match self.nearest(id) {
            Some(claim) => format!("no claim matches {id}; the nearest is on {}", claim.changes),
            None => format!("no claim matches {id}"),
        }
    }

    /// The claim that has most in common with an id, at its start and its end.
    fn nearest(&self, id: &str) -> Option<&Claim> {
        self.claims.iter().rev().max_by_key(|claim| alike(&claim.changes, id))
    }
}

/// A path within the crate. What a policy says of itself can name any file of
/// whoever tests it.
fn own_source(path: &str) -> Option<&Path> {
    let path = Path::new(path);
    let is_source = path.extension().is_some_and(|it| it == "rs");
    let is_within = path.components().all(|it| matches!(it, Component::Normal(_)));
    (is_source && is_within).then_some(path)
}

/// How much two ids have in common at their start, which counts most, and their
/// end.
pub(crate) fn alike(one: &str, other: &str) -> usize {
    let same = |(a, b): &(u8, u8)| a == b;
    let start = one.bytes().zip(other.bytes()).take_while(same).count();
    let end = one.bytes().rev().zip(other.bytes().rev()).take_while(same).count();
    4 * start + end.min(one.len().min(other.len()) - start)
}

pub(crate) fn matches(claim: &Claim, id: &str) -> bool {
    Pattern::parse(&claim.changes).is_ok_and(|pattern| pattern.matches(id))
}

/// The first few of some names.
pub(crate) fn shortened<'n>(names: impl Iterator<Item = &'n str>) -> String {
    listed(&names.collect::<Vec<_>>(), 8)
}

fn size(change: &Change<'_>) -> usize {
    let content = |content: &Content<'_>| match content {
        Content::Bytes(bytes) => bytes.len(),
        Content::Absent | Content::Token(_) => 0,
    };
    let state = |state: &State<'_>| match state {
        State::Absent | State::Token(_) => 0,
        State::File(file) => content(&file.content),
        State::Unit(unit) => {
            let dropins = unit.dropins.iter().map(|dropin| content(&dropin.contents));
            content(&unit.contents) + dropins.sum::<usize>()
        }
        State::List(items) => items.iter().map(|item| item.len()).sum(),
        State::Text(text) => text.len(),
    };
    state(&change.before) + state(&change.after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_model::effect::Effect;

    fn claims(all: &[&str]) -> Vec<Claim> {
        all.iter().map(|it| Claim::on(*it, Effect::None, Effect::Reload)).collect()
    }

    fn change(id: &str) -> Change<'static> {
        let after = State::List(vec!["12345".into()]);
        Change { id: id.to_owned(), before: State::Absent, after }
    }

    #[test]
    fn a_panic_is_told_with_its_text_and_the_line_of_the_source() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("src")).unwrap();
        std::fs::write(dir.path().join("src/lib.rs"), "one\n    let x = parts[1];\n").unwrap();
        let failure = Failure {
            kind: FailureKind::Trap,
            message: "panicked at src/lib.rs:2:13: index out of bounds: the len is 1".to_owned(),
        };
        let claims = claims(&["file:/etc/a"]);
        let scene = Scene { claims: &claims, source: Some(dir.path()) };
        let lines = scene.failure(&failure, &[]);
        assert_eq!(
            lines[..2],
            [
                "trap: it panicked at src/lib.rs:2:13: index out of bounds: the len is 1",
                "  2 |     let x = parts[1];",
            ]
        );
        let without = Scene { source: None, ..scene }.failure(&failure, &[]);
        assert_eq!(without.len(), lines.len() - 1);
        let trap = Failure { kind: FailureKind::Trap, message: "unreachable".to_owned() };
        assert!(scene.failure(&trap, &[])[1].contains("no panic was logged"));
    }

    #[test]
    fn a_panic_shows_no_file_but_sources_of_the_crate() {
        let dir = tempfile::tempdir().unwrap();
        for file in ["secret.rs", "crate/src/lib.rs", "crate/notes.txt"] {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "kept\n").unwrap();
        }
        std::fs::create_dir(dir.path().join("crate/dir.rs")).unwrap();
        let source = dir.path().join("crate");
        let scene = Scene { claims: &[], source: Some(&source) };
        assert_eq!(scene.source_line("src/lib.rs:1:1").as_deref(), Some("  1 | kept"));
        let absolute = dir.path().join("secret.rs").display().to_string();
        for path in [&absolute, "/dev/zero", "../secret.rs", "src/../../secret.rs", "./src/lib.rs"]
            .into_iter()
            .chain(["notes.txt", "dir.rs", "src", ""])
        {
            assert_eq!(scene.source_line(&format!("{path}:1:1")), None, "{path}");
        }
    }

    #[test]
    fn each_failure_comes_with_what_helps_to_mend_it() {
        let claims = claims(&["file:/etc/a", "ssh-keys:*"]);
        let scene = Scene { claims: &claims, source: None };
        let changes = [change("file:/etc/a"), change("ssh-keys:core")];
        let offered: Vec<&Change<'_>> = changes.iter().collect();
        for (kind, message, part) in [
            (
                FailureKind::BeyondClaim,
                "it answers restart for ssh-keys:core, and its claims go from none to reload",
                "the claim on ssh-keys:* goes from none to reload",
            ),
            (FailureKind::UnknownChange, "x", "from 0 on: file:/etc/a, ssh-keys:core"),
            (FailureKind::OutOfFuel, "x", "2 changes with 10 bytes"),
            (FailureKind::BadOutput, "two verdicts for file:/etc/a", "`verdict`"),
            (
                FailureKind::Trap,
                "wasm trap: out of bounds memory access",
                "its stack of 48 KiB is used up",
            ),
            (FailureKind::Trap, "wasm trap: unreachable", "no panic was logged"),
        ] {
            let failure = Failure { kind, message: message.to_owned() };
            let lines = scene.failure(&failure, &offered);
            assert!(lines[0].starts_with(kind.name()), "{lines:?}");
            assert!(lines[1].contains(part), "{part} in {lines:?}");
        }
    }

    #[test]
    fn the_nearest_claim_is_the_one_with_most_in_common() {
        let claims = claims(&["file:/etc/chrony.conf", "file:/etc/chrony.d/*", "unit:a.service"]);
        let scene = Scene { claims: &claims, source: None };
        for (id, nearest) in [
            ("file:/etc/chrony.cnf", "file:/etc/chrony.conf"),
            ("file:/ect/chrony.conf", "file:/etc/chrony.conf"),
            ("file:/etc/chrony.d/more/a.conf", "file:/etc/chrony.d/*"),
            ("unit:b.service", "unit:a.service"),
        ] {
            let line = scene.not_offered(id);
            assert!(line.ends_with(&format!("the nearest is on {nearest}")), "{line}");
        }
    }
}
