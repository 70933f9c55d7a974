//! Whether a pattern matches all that another does, as their texts tell.

use super::automaton::{ByteSet, Element};
use super::kind::Kind;
use super::pattern::Pattern;

impl Pattern {
    /// Whether it matches all that the other does. It says so too seldom, never too often: of
    /// alternatives, each has to lie within one of its own, and both have to begin with the
    /// same literal text.
    pub(crate) fn covers(&self, other: &Pattern) -> bool {
        if self.kind != other.kind || self.literal != other.literal {
            return false;
        }
        let exact = [vec![Element::End]];
        let (wide, narrow) = (alternatives(self, &exact), alternatives(other, &exact));
        narrow.iter().all(|narrow| wide.iter().any(|wide| holds(self.kind, wide, narrow)))
    }
}

/// The globs behind a pattern's literal text; `exact` where nothing follows it.
fn alternatives<'p>(pattern: &'p Pattern, exact: &'p [Vec<Element>]) -> &'p [Vec<Element>] {
    if pattern.globs.is_empty() { exact } else { &pattern.globs }
}

/// Whether one alternative matches all that another does. Each element of `narrow` is taken by
/// one of `wide`: the table holds, for what is left of `wide`, whether it takes what is left
/// of `narrow`, from the ends on.
fn holds(kind: Kind, wide: &[Element], narrow: &[Element]) -> bool {
    // Only the names of files have directories that a star could stop at.
    if kind != Kind::File && matches!(wide, [Element::Star | Element::Rest, Element::End]) {
        return true;
    }
    let mut after = vec![false; narrow.len() + 1];
    for element in wide.iter().rev() {
        let mut now = vec![false; narrow.len() + 1];
        // Whether a whole component of `narrow`, with its slash, leads to what this takes.
        let mut component = false;
        for at in (0..narrow.len()).rev() {
            let next = |row: &[bool]| row.get(at + 1).copied().unwrap_or_default();
            let skipped = after.get(at).copied().unwrap_or_default();
            let taken = match (element, narrow.get(at)) {
                (Element::End, Some(Element::End)) | (Element::Rest, Some(_)) => true,
                (Element::One(set), Some(Element::One(bytes))) => {
                    bytes.is_within(*set) && next(&after)
                }
                (Element::Star, Some(Element::Star)) => skipped || next(&now),
                (Element::Star, Some(Element::One(bytes))) => {
                    skipped || (bytes.is_within(ByteSet::all_but_slash()) && next(&now))
                }
                (Element::Star, Some(_)) => skipped,
                (Element::Parts, Some(Element::Parts)) => skipped || next(&now),
                (Element::Parts, Some(Element::One(bytes))) => {
                    match bytes.single() == Some(b'/') {
                        true => component = next(&now),
                        // What may be a slash or not ends no component for certain.
                        false => component &= bytes.is_within(ByteSet::all_but_slash()),
                    }
                    skipped || component
                }
                (Element::Parts, Some(Element::Star)) => skipped || component,
                (Element::Parts, Some(_)) => {
                    component = false;
                    skipped
                }
                (Element::End | Element::One(_), _) | (_, None) => false,
            };
            if let Some(cell) = now.get_mut(at) {
                *cell = taken;
            }
        }
        after = now;
    }
    after.first().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(wide: &str, narrow: &str) -> bool {
        Pattern::parse(wide).unwrap().covers(&Pattern::parse(narrow).unwrap())
    }

    #[test]
    fn a_star_holds_all_that_stays_in_its_component() {
        for narrow in ["?", "[x]", "[!x]", "??", "*a", "?*.conf", "[ab]c", "{x,?y}"] {
            assert!(covers("file:/etc/a/*", &format!("file:/etc/a/{narrow}")), "{narrow}");
        }
        for narrow in ["**", "*/b", "?/b", "{x,*/y}", "**/b"] {
            assert!(!covers("file:/etc/a/*", &format!("file:/etc/a/{narrow}")), "{narrow}");
            assert!(covers("file:/etc/a/**", &format!("file:/etc/a/{narrow}")), "{narrow}");
        }
    }

    #[test]
    fn globs_hold_globs_element_by_element() {
        for (wide, narrow) in [
            ("file:/etc/?", "file:/etc/[a-c]"),
            ("file:/etc/[a-c]", "file:/etc/[ab]"),
            ("file:/etc/*.conf", "file:/etc/?.conf"),
            ("file:/etc/*.conf", "file:/etc/*.d.conf"),
            ("file:/etc/*/a", "file:/etc/?/a"),
            ("file:/etc/**/a", "file:/etc/*/a"),
            ("file:/etc/**/a", "file:/etc/?x/*y/a"),
            ("file:/etc/**/*.conf", "file:/etc/*.conf"),
            ("file:/etc/**/*.conf", "file:/etc/*/b/**/a*.conf"),
            ("file:/etc/{?,??}", "file:/etc/[ab][ab]"),
            ("unit:*", "unit:**"),
            ("unit:*.service", "unit:?.service"),
        ] {
            assert!(covers(wide, narrow), "{wide} {narrow}");
            assert!(covers(wide, wide) && covers(narrow, narrow), "{wide} {narrow}");
            let back = covers(narrow, wide);
            assert!(!back || (wide, narrow) == ("unit:*", "unit:**"), "{wide} {narrow}");
        }
        for (wide, narrow) in [
            ("file:/etc/?", "file:/etc/*"),
            ("file:/etc/?", "file:/etc/??"),
            ("file:/etc/[ab]", "file:/etc/[bc]"),
            ("file:/etc/*.conf", "file:/etc/?.cnf"),
            ("file:/etc/**/a", "file:/etc/*a"),
            ("file:/etc/**/a", "file:/etc/?a"),
            ("file:/etc/**/a", "file:/etc/*/ba"),
            ("file:/etc/*/a", "file:/etc/**/a"),
            ("file:/etc/*", "unit:*"),
            ("file:/etc/*", "file:/opt/*"),
        ] {
            assert!(!covers(wide, narrow), "{wide} {narrow}");
        }
    }
}
