//! What patterns match, where it can be said without globs.

use super::{Kind, Pattern, Token, tokens};

/// What one alternative of a pattern matches, once its `{a,b}` are written out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// One name.
    Exact(String),
    /// Everything below a directory; of kinds without directories, every name.
    /// Empty for the whole tree.
    Below(String),
    /// Names that only a glob can tell.
    Glob {
        /// What they begin with.
        start: String,
        /// How many components they have, if that is fixed.
        depth: Option<usize>,
    },
}

impl Shape {
    /// The directory that all it matches lies in or below; none for a name.
    pub fn directory(&self) -> Option<&str> {
        match self {
            Shape::Exact(_) => None,
            Shape::Below(directory) => Some(directory),
            Shape::Glob { start, .. } => Some(start.rsplit_once('/').map_or("", |(dir, _)| dir)),
        }
    }

    /// Whether it matches all below a directory.
    pub fn covers(&self, directory: &str) -> bool {
        matches!(self, Shape::Below(own) if own == directory || is_below(directory, own))
    }

    /// Whether it might match something below a directory, though not all.
    /// True too often, never too seldom.
    pub fn may_reach(&self, directory: &str) -> bool {
        let Shape::Glob { start, depth } = self else { return false };
        let inside = format!("{directory}/");
        let deep_enough = depth.is_none_or(|depth| depth > components(directory));
        deep_enough && (inside.starts_with(start.as_str()) || start.starts_with(&inside))
    }
}

/// Whether a path lies somewhere below a directory; all do below the empty one.
pub fn is_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

impl Pattern {
    /// What it matches, alternative by alternative.
    pub fn shapes(&self) -> Vec<Shape> {
        match &self.glob {
            None => {
                let name = self.literal.split_once(':').map_or("", |(_, name)| name);
                vec![Shape::Exact(name.to_owned())]
            }
            Some(glob) => expanded(glob).iter().map(|it| shape(self.kind, it)).collect(),
        }
    }
}

fn shape(kind: Kind, glob: &str) -> Shape {
    if let Some(name) = literal(glob) {
        return Shape::Exact(name);
    }
    if glob == "**" || (kind != Kind::File && glob == "*") {
        return Shape::Below(String::new());
    }
    if let Some(directory) = glob.strip_suffix("/**").and_then(literal)
        && kind == Kind::File
    {
        return Shape::Below(directory);
    }
    let start = tokens(glob).into_iter().map_while(|token| match token {
        Token::Plain('*' | '?') | Token::Class { .. } => None,
        Token::Plain(c) | Token::Escaped(c) => Some(c),
    });
    let depth = (!glob.contains("**")).then(|| components(glob));
    Shape::Glob { start: start.collect(), depth }
}

fn components(path: &str) -> usize {
    path.matches('/').count()
}

/// The text that a glob stands for, if it is none.
fn literal(glob: &str) -> Option<String> {
    tokens(glob)
        .into_iter()
        .map(|token| match token {
            Token::Plain('*' | '?') | Token::Class { .. } => None,
            Token::Plain(c) | Token::Escaped(c) => Some(c),
        })
        .collect()
}

/// A valid glob without its `{a,b}`: every alternative, written out.
fn expanded(glob: &str) -> Vec<String> {
    let Some((before, inside, after)) = first_group(glob) else { return vec![glob.to_owned()] };
    let written = inside.iter().map(|one| format!("{before}{one}{after}"));
    written.flat_map(|one| expanded(&one)).collect()
}

/// The first `{…}`: what stands before it, its alternatives, what follows.
fn first_group(glob: &str) -> Option<(&str, Vec<&str>, &str)> {
    let mut depth = 0usize;
    // Of a class, how many members have been seen: its first is one even if it
    // is a bracket.
    let mut class: Option<usize> = None;
    let mut escaped = false;
    let mut open = 0;
    let mut from = 0;
    let mut alternatives = Vec::new();
    for (at, c) in glob.char_indices() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match c {
            '\\' => {
                escaped = true;
                class = class.map(|members| members + 1);
            }
            ']' if class.is_some_and(|members| members > 0) => class = None,
            '!' | '^' if class == Some(0) => {}
            _ if class.is_some() => class = class.map(|members| members + 1),
            '[' => class = Some(0),
            '{' => {
                depth += 1;
                if depth == 1 {
                    (open, from) = (at, at + 1);
                }
            }
            ',' if depth == 1 => {
                alternatives.push(glob.get(from..at)?);
                from = at + 1;
            }
            '}' if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    alternatives.push(glob.get(from..at)?);
                    return Some((glob.get(..open)?, alternatives, glob.get(at + 1..)?));
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(pattern: &str) -> Vec<String> {
        let shapes = Pattern::parse(pattern).unwrap().shapes();
        let text = |shape: &Shape| match shape {
            Shape::Exact(name) => format!("exactly {name}"),
            Shape::Below(directory) => format!("all below {directory:?}"),
            Shape::Glob { start, depth: Some(depth) } => format!("{depth} deep from {start}"),
            Shape::Glob { start, depth: None } => format!("some from {start}"),
        };
        shapes.iter().map(text).collect()
    }

    #[test]
    fn a_pattern_is_a_name_a_directory_or_a_glob() {
        for (pattern, expected) in [
            ("file:/etc/a.conf", &["exactly /etc/a.conf"][..]),
            ("file:/etc/\\[a\\].conf", &["exactly /etc/[a].conf"]),
            ("file:/etc/a/**", &["all below \"/etc/a\""]),
            ("file:/etc/\\*/**", &["all below \"/etc/*\""]),
            ("file:/**", &["all below \"\""]),
            ("file:**", &["all below \"\""]),
            ("file:/etc/a*/**", &["some from /etc/a"]),
            ("file:/etc/a/*.conf", &["3 deep from /etc/a/"]),
            ("file:/etc/[ab].conf", &["2 deep from /etc/"]),
            ("file:/etc/**/x", &["some from /etc/"]),
            ("file:/etc/[]{,a]/x", &["3 deep from /etc/"]),
            ("file:/etc/[!{]{a,b}", &["2 deep from /etc/", "2 deep from /etc/"]),
            ("file:/etc/{a,b}.conf", &["exactly /etc/a.conf", "exactly /etc/b.conf"]),
            (
                "file:/etc/{a,b/{c,d}}/**",
                &["all below \"/etc/a\"", "all below \"/etc/b/c\"", "all below \"/etc/b/d\""],
            ),
            ("file:/etc/{a,*}", &["exactly /etc/a", "2 deep from /etc/"]),
            ("unit:crio.service", &["exactly crio.service"]),
            ("unit:*", &["all below \"\""]),
            ("unit:app@*.service", &["0 deep from app@"]),
            ("ssh-keys:*", &["all below \"\""]),
            ("password:core", &["exactly core"]),
        ] {
            assert_eq!(shapes(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn a_glob_reaches_a_directory_only_where_it_could_match_something_in_it() {
        for (pattern, directory, reaches) in [
            ("file:/etc/a/*.conf", "/etc/a", true),
            ("file:/etc/*.conf", "/etc/a", false),
            ("file:/etc/*/x", "/etc/a", true),
            ("file:/etc/**/x", "/etc/a/b", true),
            ("file:/etc/b*/**", "/etc/a", false),
            ("file:/opt/*", "/etc", false),
            ("file:/etc/a/b/*.conf", "/etc/a", true),
        ] {
            let shapes = Pattern::parse(pattern).unwrap().shapes();
            let found = shapes.iter().any(|shape| shape.may_reach(directory));
            assert_eq!(found, reaches, "{pattern} {directory}");
        }
    }
}
