//! Specifiers such as `%i` in an `[Install]` section.

use crate::tree::PathError;
use crate::unit_name::{Form, UnitName};
use crate::view::{Entry, View, real};
use std::collections::BTreeMap;

/// The longest text that specifiers may make, as systemd has it for names.
const MOST: usize = 255;

/// What specifiers stand for that no unit's name says: `H` for the host's name, `m` for
/// the machine's id, `v` for the kernel's release, …
#[derive(Debug, Clone, Default)]
pub struct Facts(BTreeMap<char, String>);

impl Facts {
    /// What the files of a system say: its machine's id, the fields of os-release, and
    /// that its manager runs as root.
    pub fn of_files(view: &dyn View) -> Result<Facts, PathError> {
        let mut facts = Facts::default();
        for (letter, value) in [('u', "root"), ('U', "0"), ('g', "root"), ('G', "0")] {
            facts.set(letter, value);
        }
        if let Some(id) = text(view, "/etc/machine-id")? {
            facts.set('m', id.trim());
        }
        let mut release = text(view, "/etc/os-release")?;
        if release.is_none() {
            release = text(view, "/usr/lib/os-release")?;
        }
        if let Some(release) = release {
            let fields = [
                ('o', "ID"),
                ('w', "VERSION_ID"),
                ('W', "VARIANT_ID"),
                ('B', "BUILD_ID"),
                ('M', "IMAGE_ID"),
                ('A', "IMAGE_VERSION"),
            ];
            for (letter, name) in fields {
                facts.set(letter, field(&release, name));
            }
        }
        Ok(facts)
    }

    /// Adds what the kernel that runs says: the host's name and its own release.
    pub fn with_kernel(mut self) -> Facts {
        let kernel = rustix::system::uname();
        let name = kernel.nodename().to_string_lossy();
        self.set('H', &name);
        self.set('l', name.split('.').next().unwrap_or_default());
        self.set('v', &kernel.release().to_string_lossy());
        let machine = kernel.machine().to_string_lossy();
        let known = [
            ("x86_64", "x86-64"),
            ("aarch64", "arm64"),
            ("ppc64le", "ppc64-le"),
            ("s390x", "s390x"),
        ];
        if let Some((_, architecture)) = known.iter().find(|(machine_of, _)| *machine_of == machine)
        {
            self.set('a', architecture);
        }
        self
    }

    /// Sets what a specifier stands for.
    pub fn set(&mut self, letter: char, value: &str) {
        self.0.insert(letter, value.to_owned());
    }
}

/// What a file holds, or the one that a link leads to.
fn text(view: &dyn View, path: &str) -> Result<Option<String>, PathError> {
    let Some(path) = real(view, path, true)? else { return Ok(None) };
    Ok(match view.entry(&path)? {
        Entry::File(text) => text,
        _ => None,
    })
}

/// A field of os-release: empty if it is not there.
fn field<'t>(release: &'t str, name: &str) -> &'t str {
    let mut lines = release.lines().rev();
    let value = lines.find_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='));
    value.unwrap_or_default().trim_matches(['"', '\''])
}

/// Why specifiers stand for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unresolved {
    /// Nobody knows what it stands for.
    Unknown(char),
    /// What they stand for is longer than a name can be.
    TooLong,
}

impl Unresolved {
    /// To follow what it stands in, in a sentence.
    pub(super) fn to_phrase(self) -> String {
        match self {
            Unresolved::Unknown(letter) => {
                format!("has the specifier `%{letter}`, and nobody here knows what it stands for")
            }
            Unresolved::TooLong => format!("is longer than {MOST} letters with its specifiers"),
        }
    }
}

/// A text with its specifiers replaced, as they are in the file of a unit.
pub(super) fn resolved(
    text: &str,
    unit: UnitName<'_>,
    default_instance: Option<&str>,
    facts: &Facts,
) -> Result<String, Unresolved> {
    let mut made = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            made.push(letter);
        } else {
            match letters.next() {
                None | Some('%') => made.push('%'),
                Some(letter) if letter.is_ascii_alphanumeric() => {
                    let value = value(letter, unit, default_instance, facts);
                    made.push_str(&value.ok_or(Unresolved::Unknown(letter))?);
                }
                Some(letter) => made.extend(['%', letter]),
            }
        }
        if made.len() > MOST {
            return Err(Unresolved::TooLong);
        }
    }
    Ok(made)
}

fn value(
    letter: char,
    unit: UnitName<'_>,
    default_instance: Option<&str>,
    facts: &Facts,
) -> Option<String> {
    let default = default_instance.unwrap_or_default();
    let is_template = unit.form() == Form::Template;
    Some(match letter {
        'i' => match unit.instance() {
            Some("") | None => default.to_owned(),
            Some(instance) => instance.to_owned(),
        },
        'j' => match unit.prefix().rsplit_once('-') {
            Some((_, last)) => last.to_owned(),
            None => unit.prefix().to_owned(),
        },
        'n' if is_template && !default.is_empty() => {
            format!("{}@{default}.{}", unit.prefix(), unit.kind())
        }
        'n' => unit.as_str().to_owned(),
        'N' if is_template => format!("{}{default}", unit.without_kind()),
        'N' => unit.without_kind().to_owned(),
        'p' => unit.prefix().to_owned(),
        letter => facts.0.get(&letter)?.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::{Facts, Unresolved, resolved};
    use crate::tree::Tree;
    use crate::unit_name::UnitName;

    #[test]
    fn specifiers_stand_for_what_they_do_in_systemd() {
        let mut facts = Facts::default();
        facts.set('H', "node-1.example");
        facts.set('q', "");
        let cases = [
            ("a-b@c-d.service", None, "%i %j %n %N %p", "c-d b a-b@c-d.service a-b@c-d a-b"),
            ("a-b@.service", Some("x"), "%i %j %n %N %p", "x b a-b@x.service a-b@x a-b"),
            ("a-b@.service", None, "<%i> %j %n %N %p", "<> b a-b@.service a-b@ a-b"),
            ("ab.timer", None, "<%i> %j %n %N %p", "<> ab ab.timer ab ab"),
            ("a.service", None, "%%i %- 5% %H%q", "%i %- 5% node-1.example"),
        ];
        for (unit, default, text, expected) in cases {
            let unit = UnitName::of(unit).unwrap();
            let made = resolved(text, unit, default, &facts);
            assert_eq!(made.as_deref(), Ok(expected), "{unit:?}");
        }
        let unit = UnitName::of("a.service").unwrap();
        assert_eq!(resolved("%m", unit, None, &facts), Err(Unresolved::Unknown('m')));
        assert_eq!(resolved(&"%n".repeat(40), unit, None, &facts), Err(Unresolved::TooLong));
    }

    #[test]
    fn the_files_of_a_system_say_what_it_is() {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["etc", "usr/lib"] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        std::fs::write(dir.path().join("etc/machine-id"), "0123abc\n").unwrap();
        let release = "NAME=x\nID=\"rhcos\"\nVERSION_ID='4.19'\n";
        std::fs::write(dir.path().join("usr/lib/os-release"), release).unwrap();
        let target = "../usr/lib/os-release";
        std::os::unix::fs::symlink(target, dir.path().join("etc/os-release")).unwrap();
        let facts = Facts::of_files(&Tree::open(dir.path()).unwrap()).unwrap();
        let unit = UnitName::of("a.service").unwrap();
        let made = resolved("%m %o %w <%W> %u %U", unit, None, &facts);
        assert_eq!(made.as_deref(), Ok("0123abc rhcos 4.19 <> root 0"));
        let kernel = resolved("%v", unit, None, &facts.with_kernel()).unwrap();
        assert!(!kernel.is_empty());
    }
}
