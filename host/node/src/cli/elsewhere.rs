//! What a text names for an admin to run, where it is about the tree of another system.

use std::path::Path;

/// The commands that know `--root`.
const KNOW_ROOT: [&str; 6] = ["adopt", "apply", "check", "settle", "status", "watch"];
/// What a text says that does not know which tree it is about.
const UNLESS_KNOWN: [&str; 2] =
    [" (with --root, if it was in another tree)", " (with --root, if it is of another tree)"];

/// The same text, with commands that are about this tree. No steps follow there that could be
/// gone on with: settled is all that it can be.
pub(super) fn named(text: &str, root: &Path) -> String {
    let quoted = quoted(root);
    let mut text = text.replace(", then tread node resume", "");
    text = text.replace("tread node resume", "tread node settle");
    for unless in UNLESS_KNOWN {
        text = text.replace(unless, "");
    }
    for verb in KNOW_ROOT {
        let command = format!("tread node {verb}");
        let with_root = format!("{command} --root '{quoted}'");
        text = text.replace(&with_root, &command).replace(&command, &with_root);
    }
    text
}

/// The same text, whose paths in quotes are below this tree.
pub(super) fn below(text: &str, root: &Path) -> String {
    text.replace(" '/", &format!(" '{}/", quoted(root)))
}

/// Between two quotes of a shell.
fn quoted(root: &Path) -> String {
    root.display().to_string().trim_end_matches('/').replace('\'', r"'\''")
}

#[cfg(test)]
mod tests {
    use super::{below, named};
    use std::path::Path;

    #[test]
    fn each_command_that_a_text_names_is_about_the_tree_that_was_given() {
        for (text, expected) in [
            ("no command", "no command"),
            ("say so: tread node adopt --keep", "say so: tread node adopt --root '/mnt' --keep"),
            (
                "first: tread node settle (with --root, if it was in another tree)",
                "first: tread node settle --root '/mnt'",
            ),
            (
                "then: tread node settle, then tread node resume. Else: tread node adopt",
                "then: tread node settle --root '/mnt'. Else: tread node adopt --root '/mnt'",
            ),
            ("then: tread node resume", "then: tread node settle --root '/mnt'"),
            ("tread node status --root '/mnt'", "tread node status --root '/mnt'"),
        ] {
            assert_eq!(named(text, Path::new("/mnt")), expected);
        }
        let copied = below("cp -a '/var/x' '/etc/a'", Path::new("/mnt/"));
        assert_eq!(copied, "cp -a '/mnt/var/x' '/mnt/etc/a'");
        let odd = named("tread node check", Path::new("/a b/it's"));
        assert_eq!(odd, r"tread node check --root '/a b/it'\''s'");
    }
}
