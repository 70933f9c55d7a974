//! What patterns match, as names and directories where no glob is needed to say it.

use super::automaton::Element;
use super::kind::Kind;
use super::pattern::Pattern;
use crate::path::is_below;

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

impl Pattern {
    /// What it matches, alternative by alternative.
    pub fn shapes(&self) -> Vec<Shape> {
        let start = self.literal.split_once(':').map_or("", |(_, name)| name);
        match self.globs.as_slice() {
            [] => vec![Shape::Exact(start.to_owned())],
            globs => globs.iter().map(|elements| shape(self.kind, start, elements)).collect(),
        }
    }
}

/// Of a name that begins with `start`, and goes on in these elements.
fn shape(kind: Kind, start: &str, elements: &[Element]) -> Shape {
    let mut start = start.as_bytes().to_vec();
    let mut rest = elements;
    while let [element, after @ ..] = rest
        && let Some(byte) = literal(element)
    {
        start.push(byte);
        rest = after;
    }
    let start = String::from_utf8_lossy(&start).into_owned();
    match rest {
        [Element::End] => Shape::Exact(start),
        [Element::Rest, Element::End] if start.is_empty() => Shape::Below(start),
        [Element::Star, Element::End] if start.is_empty() && kind != Kind::File => {
            Shape::Below(start)
        }
        [Element::Rest, Element::End] if kind == Kind::File => {
            Shape::Below(start.strip_suffix('/').unwrap_or(&start).to_owned())
        }
        rest => {
            let open = rest.iter().any(|element| matches!(element, Element::Parts | Element::Rest));
            let more = rest.iter().filter(|element| literal(element) == Some(b'/')).count();
            Shape::Glob { depth: (!open).then(|| components(&start) + more), start }
        }
    }
}

/// The one byte that an element takes, if there is one.
fn literal(element: &Element) -> Option<u8> {
    match element {
        Element::One(bytes) => bytes.single(),
        _ => None,
    }
}

fn components(path: &str) -> usize {
    path.matches('/').count()
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
