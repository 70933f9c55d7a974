//! The entries for units, and the one for keys and password.

use super::answer::Place;
use super::defaults;
use super::entry::Act;
use super::exporting::{Exporting, USER};
use super::object::{KeyEntry, UnitEntry};
use crate::claim::{Kind, Shape};
use crate::openshift::api::{MOST_ENTRIES, check_service};
use crate::operator::DEFAULT_UNIT;
use crate::unit_name::is_unit_name;
use std::collections::BTreeSet;

impl Exporting<'_> {
    pub(super) fn units(&mut self) -> Vec<UnitEntry> {
        let mut names: BTreeSet<String> = self
            .patterns()
            .filter(|(_, _, pattern)| pattern.kind() == Kind::Unit)
            .flat_map(|(_, _, pattern)| pattern.shapes())
            .filter_map(|shape| match shape {
                Shape::Exact(name) => Some(name),
                Shape::Below(_) | Shape::Glob { .. } => None,
            })
            .collect();
        names.remove(DEFAULT_UNIT);
        let mut entries: Vec<UnitEntry> = self.default_unit().into_iter().collect();
        for name in names {
            let full = entries.len() >= MOST_ENTRIES;
            let found = self.listed(Place::Id(&format!("unit:{name}")), true);
            let found = found.and_then(|list| match list {
                Some(list) if list != [Act::Reboot] => {
                    check_service(&name, is_unit_name)?;
                    if full {
                        return Err(format!("OpenShift takes {MOST_ENTRIES} units at most"));
                    }
                    Ok(Some(list))
                }
                list => Ok(list),
            });
            match found {
                Ok(Some(list)) if list == [Act::Reboot] => self.needless = true,
                Ok(Some(actions)) => entries.push(UnitEntry { name, actions }),
                Ok(None) => {}
                Err(reason) => {
                    self.reasons.insert((Kind::Unit, Shape::Exact(name)), reason);
                }
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        entries
    }

    /// The unit that is not rebooted for where it has no entry.
    fn default_unit(&mut self) -> Option<UnitEntry> {
        let name = DEFAULT_UNIT.to_owned();
        let id = format!("unit:{name}");
        let actions = match self.listed(Place::Id(&id), true) {
            Ok(list) => list?,
            Err(reason) => {
                self.reasons.insert((Kind::Unit, Shape::Exact(name.clone())), reason);
                let less = defaults::do_less(self.voices, Place::Id(&id), &id);
                less.then(|| vec![Act::Reboot])?
            }
        };
        Some(UnitEntry { name, actions })
    }

    /// OpenShift has one answer for the keys and the password of its one user.
    pub(super) fn keys(&mut self) -> Option<KeyEntry> {
        let of = |kind: Kind| self.listed(Place::Id(&format!("{}:{USER}", kind.as_str())), false);
        let (keys, password) = (of(Kind::SshKeys), of(Kind::Password));
        let reason = match (keys, password) {
            (Ok(None), Ok(None)) => return None,
            (Ok(keys), Ok(password)) => {
                // Nobody's answer is a reboot.
                let or_reboot = |list: Option<Vec<Act>>| list.unwrap_or_else(|| vec![Act::Reboot]);
                let (actions, password) = (or_reboot(keys), or_reboot(password));
                if actions == password {
                    return Some(KeyEntry { actions });
                }
                "the answers for keys and for the password differ, and OpenShift's sshkey is for \
                 both"
                    .to_owned()
            }
            (Err(reason), _) | (_, Err(reason)) => reason,
        };
        for kind in [Kind::SshKeys, Kind::Password] {
            for shape in [Shape::Exact(USER.to_owned()), Shape::Below(String::new())] {
                self.reasons.insert((kind, shape), reason.clone());
            }
        }
        // By default OpenShift does nothing for them.
        let less = |kind: Kind| {
            let id = format!("{}:{USER}", kind.as_str());
            defaults::do_less(self.voices, Place::Id(&id), &id)
        };
        let less = [Kind::SshKeys, Kind::Password].into_iter().any(less);
        less.then(|| KeyEntry { actions: vec![Act::Reboot] })
    }
}
