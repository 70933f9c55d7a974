//! The lines of file_contexts(5), and those of the substitutions beside it.

use crate::tree::Kind;

/// What one line says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Spec<'t> {
    /// The expression that whole paths match.
    pub(super) expression: &'t str,
    /// What it speaks of; all kinds unless set.
    pub(super) kind: Option<Kind>,
    /// The label; `<<none>>` is none.
    pub(super) label: Option<&'t str>,
}

/// What is wrong with a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// Counted from one.
    pub(super) line: usize,
    /// To follow the line's number in a sentence.
    pub(super) what: &'static str,
}

/// The longest field that libselinux takes.
const MOST_OF_FIELD: usize = u16::MAX as usize - 1;

/// What the lines of a file say, one by one.
pub(super) fn specs(bytes: &[u8]) -> impl Iterator<Item = Result<Spec<'_>, Wrong>> {
    bytes.split(|byte| *byte == b'\n').enumerate().filter_map(|(line, bytes)| {
        let wrong = |what| Wrong { line: line + 1, what };
        spec(bytes).map_err(wrong).transpose()
    })
}

/// What a line says; nothing if it is empty or a comment.
fn spec(line: &[u8]) -> Result<Option<Spec<'_>>, &'static str> {
    let line = line.trim_ascii_start();
    if line.is_empty() || line.starts_with(b"#") {
        return Ok(None);
    }
    let Ok(line) = std::str::from_utf8(line) else { return Err("is not valid text") };
    let fields: Vec<&str> = line.split(is_space).filter(|it| !it.is_empty()).take(3).collect();
    if !fields.iter().all(|it| it.is_ascii()) {
        return Err("has letters that are not ASCII");
    }
    if fields.iter().any(|it| it.len() > MOST_OF_FIELD) {
        return Err("has a field that is too long");
    }
    let (expression, kind, label) = match fields.as_slice() {
        [expression, label] => (*expression, None, *label),
        [expression, kind, label] => (*expression, Some(kind_of(kind)?), *label),
        _ => return Err("has no label"),
    };
    Ok(Some(Spec { expression, kind, label: (label != "<<none>>").then_some(label) }))
}

fn kind_of(field: &str) -> Result<Kind, &'static str> {
    Ok(match field {
        "--" => Kind::File,
        "-d" => Kind::Folder,
        "-l" => Kind::Link,
        "-b" | "-c" | "-p" | "-s" => Kind::Other,
        _ => return Err("names no kind of file: `--`, `-d`, `-l`, `-p`, `-s`, `-b` or `-c`"),
    })
}

/// What C takes for a space.
fn is_space(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r')
}

/// Prefixes of paths, and what stands for each: the last one first.
#[derive(Debug, Default)]
pub(super) struct Substitutions(Vec<(Box<str>, Box<str>)>);

impl Substitutions {
    /// Those of a file; lines without two fields are skipped.
    pub(super) fn of(text: &str) -> Substitutions {
        let mut all: Vec<_> = text
            .split('\n')
            .filter_map(|line| {
                let mut fields = line.split(is_space).filter(|it| !it.is_empty());
                let from = fields.next().filter(|it| !it.starts_with('#'))?;
                Some((from.into(), fields.next()?.into()))
            })
            .collect();
        all.reverse();
        Substitutions(all)
    }

    /// The path that stands for another one, if one does.
    pub(super) fn apply(&self, path: &str) -> Option<String> {
        self.0.iter().find_map(|(from, to)| {
            let rest = path.strip_prefix(&**from)?;
            match rest.strip_prefix('/') {
                Some(below) if **to == *"/" => Some(format!("/{below}")),
                Some(_) => Some(format!("{to}{rest}")),
                None => rest.is_empty().then(|| to.to_string()),
            }
        })
    }
}
