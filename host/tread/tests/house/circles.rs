//! That the files of a crate use each other in one direction only.
//!
//! A file uses another one where it names a path into that one's module: by
//! `crate::`, by `super::` or `self::`, or by the name of a module that it declares.
//! To declare a module is no use of it, nor is `pub use` of what is in it, as long as
//! the file itself does not name what it passes on. Tests do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

#[test]
fn files_of_a_crate_use_each_other_in_one_direction_only() {
    let host = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let mut circles = Vec::new();
    for folder in fs::read_dir(host).unwrap() {
        let folder = folder.unwrap();
        let name = folder.file_name().into_string().unwrap();
        let files = Files::of(&folder.path().join("src"));
        for circle in files.circles() {
            let arrows = files.arrows_within(&circle).join("\n  ");
            circles.push(format!("These files of host/{name} use each other:\n  {arrows}"));
        }
    }
    assert!(circles.is_empty(), "{}", circles.join("\n"));
}

/// The files of a crate, and those that each uses.
struct Files(BTreeMap<String, BTreeSet<String>>);

impl Files {
    fn of(src: &Path) -> Files {
        let mut modules = Modules::default();
        modules.add(src, "lib.rs".to_owned(), Vec::new());
        let uses = modules.0.iter().map(|(path, module)| {
            let used = module.paths().filter_map(|it| modules.file(path, module, &it));
            let used = used.filter(|used| *used != module.file);
            (module.file.clone(), used.map(str::to_owned).collect())
        });
        Files(uses.collect())
    }

    fn reached(&self, from: &str) -> BTreeSet<&str> {
        let mut reached = BTreeSet::new();
        let mut next: Vec<&String> = self.0[from].iter().collect();
        while let Some(file) = next.pop() {
            if reached.insert(file.as_str()) {
                next.extend(&self.0[file]);
            }
        }
        reached
    }

    /// Files each of which reaches all others, as large as can be.
    fn circles(&self) -> BTreeSet<BTreeSet<String>> {
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            self.0.keys().map(|file| (file.as_str(), self.reached(file))).collect();
        let circle = |file: &&str| {
            let back = reached[*file].iter().filter(|other| reached[**other].contains(*file));
            back.map(|other| (*other).to_owned()).collect::<BTreeSet<String>>()
        };
        reached.keys().map(circle).filter(|files| files.len() > 1).collect()
    }

    fn arrows_within(&self, circle: &BTreeSet<String>) -> Vec<String> {
        let arrows = circle.iter().map(|file| {
            let used: Vec<&str> = self.0[file].intersection(circle).map(String::as_str).collect();
            format!("{file} uses {}", used.join(", "))
        });
        arrows.collect()
    }
}

/// By their paths: `["plan", "told"]`.
#[derive(Default)]
struct Modules(BTreeMap<Vec<String>, Module>);

struct Module {
    file: String,
    /// Without comments and tests.
    code: Vec<String>,
    declares: Vec<String>,
}

impl Modules {
    /// Adds a file and those that it declares. One that lies elsewhere is left out.
    fn add(&mut self, src: &Path, file: String, path: Vec<String>) {
        let Ok(text) = fs::read_to_string(src.join(&file)) else { return };
        let module = Module::new(file, &text);
        for name in &module.declares {
            let path: Vec<String> = path.iter().chain([name]).cloned().collect();
            self.add(src, format!("{}.rs", path.join("/")), path);
        }
        self.0.insert(path, module);
    }

    /// The file that a path in a module leads into, if that is one of the crate.
    fn file(&self, of: &[String], module: &Module, path: &str) -> Option<&str> {
        let mut at = of.to_vec();
        let mut names = path.split("::").peekable();
        match names.peek().copied()? {
            "crate" => at.clear(),
            "self" | "super" => {}
            name if module.declares.iter().any(|it| it == name) => {}
            _ => return None,
        }
        names.next_if(|name| ["crate", "self"].contains(name));
        while names.next_if_eq(&"super").is_some() {
            at.pop();
        }
        for name in names {
            at.push(name.to_owned());
            if !self.0.contains_key(&at) {
                at.pop();
                break;
            }
        }
        Some(&self.0[&at].file)
    }
}

impl Module {
    fn new(file: String, text: &str) -> Module {
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let text = text.replace("(in crate::", "(in ");
        let lines = text.lines().map(str::trim).filter(|line| !line.starts_with("//"));
        let mut code: Vec<String> = Vec::new();
        let mut declares = Vec::new();
        let mut of_test = false;
        for line in lines {
            match without_visibility(line).strip_prefix("mod ").and_then(|it| it.strip_suffix(';'))
            {
                Some(name) if !of_test => declares.push(name.to_owned()),
                Some(_) => {}
                // What began on the line before.
                None if code.last().is_some_and(|last| is_use(last) && !last.ends_with(';')) => {
                    code.last_mut().unwrap().push_str(line);
                }
                None => code.push(line.to_owned()),
            }
            of_test = line == "#[cfg(test)]";
        }
        Module { file, code, declares }
    }

    /// All paths that it names, but those that it only passes on.
    fn paths(&self) -> impl Iterator<Item = String> {
        let (uses, rest): (Vec<&String>, Vec<&String>) =
            self.code.iter().partition(|line| is_use(line));
        let words: Vec<&str> = rest.iter().flat_map(|line| words(line)).collect();
        // With one colon behind it a name is a field's.
        let named: BTreeSet<&str> = words.iter().flat_map(|word| word.split("::")).collect();
        let mut paths: Vec<String> = Vec::new();
        for line in uses {
            let tree = without_visibility(line).trim_start_matches("use ").trim_end_matches(';');
            let is_private = without_visibility(line) == line.as_str();
            let all = leaves("", tree);
            paths.extend(all.into_iter().filter(|path| {
                let first = path.split("::").next();
                let is_own = self.declares.iter().any(|it| Some(it.as_str()) == first);
                let is_named = path.rsplit("::").next().is_some_and(|it| named.contains(it));
                is_private || !is_own || is_named
            }));
        }
        paths.extend(words.iter().filter(|word| word.contains("::")).map(|it| (*it).to_owned()));
        paths.into_iter()
    }
}

fn is_use(line: &str) -> bool {
    let rest = without_visibility(line).strip_prefix("use ");
    let first = rest.and_then(|it| it.split(' ').next());
    // A line of a text may begin with the word.
    first.is_some_and(|it| it.contains("::") || it.ends_with(';'))
}

fn without_visibility(line: &str) -> &str {
    let rest = match line.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ").map(|(_, rest)| rest),
        None => line.strip_prefix("pub "),
    };
    rest.unwrap_or(line)
}

/// `a::b` and `a::c` of `a::{b, c as d}`.
fn leaves(before: &str, tree: &str) -> Vec<String> {
    let mut depth = 0;
    let branches = tree.split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    let branches = branches.map(str::trim).filter(|branch| !branch.is_empty());
    let leaf = |branch: &str| match branch.split_once('{') {
        Some((stem, more)) => leaves(&format!("{before}{stem}"), more.strip_suffix('}').unwrap()),
        None => vec![format!("{before}{}", branch.split(" as ").next().unwrap())],
    };
    branches.flat_map(leaf).collect()
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).filter(|it| !it.is_empty())
}

#[test]
fn a_use_is_found_however_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    for (file, text) in [
        ("lib.rs", "mod a;\npub(crate) mod b;\nmod c;\npub use c::{Passed, on::Too};\n"),
        ("a.rs", "mod inner;\n#[cfg(test)]\nmod tests;\n\nfn f() -> inner::T {}\n"),
        ("a/inner.rs", "use crate::{\n    b::{self, x::Y},\n    c::Z as W,\n};\n"),
        ("a/tests.rs", "use super::*;\n"),
        ("b.rs", "// crate::a\npub(crate) mod x;\n\nfn f(y: super::c::Z) {}\n"),
        (
            "b/x.rs",
            "pub(in crate::b) struct Y;\n\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n",
        ),
        ("c.rs", "pub mod on;\npub use on::Too;\n\nimpl Too {}\n"),
        ("c/on.rs", "use super::super::c;\nuse crate::Nothing;\n"),
    ] {
        let path = dir.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let files = Files::of(dir.path());
    let found: Vec<(&str, Vec<&str>)> = files
        .0
        .iter()
        .map(|(file, used)| (file.as_str(), used.iter().map(String::as_str).collect()))
        .collect();
    assert_eq!(
        found,
        [
            ("a.rs", vec!["a/inner.rs"]),
            ("a/inner.rs", vec!["b.rs", "b/x.rs", "c.rs"]),
            ("b.rs", vec!["c.rs"]),
            ("b/x.rs", vec![]),
            ("c.rs", vec!["c/on.rs"]),
            ("c/on.rs", vec!["c.rs", "lib.rs"]),
            ("lib.rs", vec![]),
        ]
    );
    let circles: Vec<BTreeSet<String>> = files.circles().into_iter().collect();
    assert_eq!(circles, [["c.rs", "c/on.rs"].map(str::to_owned).into()]);
}
