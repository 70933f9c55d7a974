//! Names of systemd's units, as systemd takes them apart.

use tread_model::unit_name::{LONGEST, is_of_names, kind_of_unit};

/// A name that a unit can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitName<'n> {
    whole: &'n str,
    /// Before `@`, or before the type.
    prefix: &'n str,
    /// Between `@` and the type.
    instance: Option<&'n str>,
    kind: &'n str,
}

/// Whether a name stands for one unit or for many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `crio.service`
    Plain,
    /// `getty@.service`
    Template,
    /// `getty@tty1.service`
    Instance,
}

impl<'n> UnitName<'n> {
    /// Takes a name apart; nothing if no unit can have it.
    pub fn of(name: &'n str) -> Option<UnitName<'n>> {
        let kind = kind_of_unit(name)?;
        let (before, _) = name.rsplit_once('.')?;
        if name.len() > LONGEST || before.is_empty() || !before.bytes().all(is_of_names) {
            return None;
        }
        let (prefix, instance) = match before.split_once('@') {
            Some((prefix, instance)) => (prefix, Some(instance)),
            None => (before, None),
        };
        (!prefix.is_empty()).then_some(UnitName { whole: name, prefix, instance, kind })
    }

    /// The name itself.
    pub fn as_str(self) -> &'n str {
        self.whole
    }

    /// Before `@`, or before the type.
    pub fn prefix(self) -> &'n str {
        self.prefix
    }

    /// Between `@` and the type: empty for a template.
    pub fn instance(self) -> Option<&'n str> {
        self.instance
    }

    /// `service`, `socket`, …
    pub fn kind(self) -> &'n str {
        self.kind
    }

    /// Whether it stands for one unit or for many.
    pub fn form(self) -> Form {
        match self.instance {
            None => Form::Plain,
            Some("") => Form::Template,
            Some(_) => Form::Instance,
        }
    }

    /// All before the type.
    pub fn without_kind(self) -> &'n str {
        let end = self.whole.len().saturating_sub(self.kind.len() + 1);
        self.whole.get(..end).unwrap_or_default()
    }

    /// The name of the template that it is an instance of, or is; nothing for a plain
    /// name.
    pub fn template(self) -> Option<String> {
        self.instance.map(|_| format!("{}@.{}", self.prefix, self.kind))
    }

    /// The name with another instance; nothing for a plain name, and if no unit can
    /// have the new one.
    pub fn with_instance(self, instance: &str) -> Option<String> {
        self.instance?;
        let name = format!("{}@{instance}.{}", self.prefix, self.kind);
        (!instance.is_empty() && UnitName::of(&name).is_some()).then_some(name)
    }

    /// Whether other names may stand for such a unit.
    pub fn may_have_aliases(self) -> bool {
        matches!(self.kind, "service" | "socket" | "target" | "device" | "timer" | "path")
    }

    /// Whether there are templates of such units.
    pub fn may_be_template(self) -> bool {
        matches!(self.kind, "service" | "socket" | "target" | "timer" | "path")
    }
}

#[cfg(test)]
mod tests {
    use super::{Form, UnitName};

    #[test]
    fn names_are_taken_apart_as_systemd_does() {
        let cases = [
            ("crio.service", Some(("crio", None, "service", Form::Plain))),
            ("getty@.service", Some(("getty", Some(""), "service", Form::Template))),
            ("getty@tty1.service", Some(("getty", Some("tty1"), "service", Form::Instance))),
            ("a@b@c.d.timer", Some(("a", Some("b@c.d"), "timer", Form::Instance))),
            (
                "var-lib-foo\\x2dbar.mount",
                Some(("var-lib-foo\\x2dbar", None, "mount", Form::Plain)),
            ),
            ("a.b.path", Some(("a.b", None, "path", Form::Plain))),
            ("@a.service", None),
            (".service", None),
            ("a", None),
            ("a.conf", None),
            ("a.snapshot", None),
            ("a/b.service", None),
            ("a b.service", None),
            ("ä.service", None),
            ("", None),
        ];
        for (name, expected) in cases {
            let found = UnitName::of(name);
            let found = found.map(|it| (it.prefix(), it.instance(), it.kind(), it.form()));
            assert_eq!(found, expected, "{name}");
        }
        let long = format!("{}.service", "a".repeat(247));
        assert!(UnitName::of(&long).is_some());
        assert!(UnitName::of(&format!("a{long}")).is_none());
    }

    #[test]
    fn an_instance_is_made_of_a_template_and_leads_back_to_it() {
        let name = UnitName::of("getty@.service").unwrap();
        assert_eq!(name.with_instance("tty1").as_deref(), Some("getty@tty1.service"));
        assert_eq!(name.with_instance("../a"), None);
        assert_eq!(name.with_instance(""), None);
        let instance = UnitName::of("getty@tty1.service").unwrap();
        assert_eq!(instance.template().as_deref(), Some("getty@.service"));
        assert_eq!(instance.without_kind(), "getty@tty1");
        assert_eq!(UnitName::of("crio.service").unwrap().template(), None);
    }
}
