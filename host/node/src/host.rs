//! The host that a config is applied to: its users, its units, its labels, by its own files.

use crate::desired::{Desired, Enabling, Host, Keys, LeftOpen, MASK, UNITS, Why};
use crate::install::{self, Facts, InstallError};
use crate::labels::{LabelError, Labels};
use crate::owners::table::Account;
use crate::owners::{OwnerError, Owners};
use crate::prepare::{Target, Wanted};
use crate::presets::Presets;
use crate::tree::{Attribute, Folders, Kind, Owner, PathError, Tree};
use crate::unit_name::UnitName;
use crate::view::{Entry, Overlay, View, real, split};
use std::collections::BTreeMap;
use tread_model::canonical;
use tread_model::config::NodeConfig;

/// Who reads a user's keys from a folder of fragments, where that is there.
const FRAGMENTS: &str = "/usr/libexec/ssh-key-dir";

/// Whether systemd reads units or presets below a path, or may find a unit there by a link.
fn is_of_systemd(path: &str) -> bool {
    path.split('/').any(|name| name == "systemd") || UnitName::of(split(path).1).is_some()
}

/// The host that a config is applied to.
pub struct ThisHost {
    tree: Tree,
    owners: Owners,
    facts: Facts,
    /// Nothing where the host has no labels. A policy that cannot be read matters only where
    /// something new gets its label: a way back, and what corrects the policy, need none.
    labels: Result<Option<Labels>, LabelError>,
}

/// Why a host is not known well enough.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Its users are not.
    #[error(transparent)]
    Owners(#[from] OwnerError),
    /// A path leads nowhere.
    #[error(transparent)]
    Path(#[from] PathError),
}

impl ThisHost {
    /// Reads what its files say; with `runs`, also what the kernel says of it.
    pub fn read(tree: &Tree, runs: bool) -> Result<ThisHost, HostError> {
        let facts = Facts::of_files(tree)?;
        Ok(ThisHost {
            tree: tree.clone(),
            owners: Owners::read(tree)?,
            facts: if runs { facts.with_kernel() } else { facts },
            labels: Labels::of_host(tree).map(Result::ok),
        })
    }

    /// The label of something new, where the host has labels.
    pub fn label(&self, path: &str, kind: Kind) -> Result<Option<Attribute>, String> {
        match &self.labels {
            Ok(Some(labels)) => labels.attribute(path, kind).map_err(|error| error.to_string()),
            Ok(None) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The host as it is once what goes of another config has gone, and all else of this one is in its
    /// place.
    fn as_it_will_be<'v>(
        folders: &'v Folders<'_>,
        all_else: &Desired<'_>,
        gone: &[Target<'_>],
    ) -> Overlay<'v> {
        let mut view = Overlay::new(folders);
        put(&mut view, gone.iter().map(|it| (&it.path, Some(&it.wanted))));
        put(&mut view, all_else.pieces.iter().map(|(path, it)| (path, it.wanted.as_ref())));
        view
    }
}

impl ThisHost {
    fn account(&self, user: &str, with: &str, which: &str) -> Result<&Account, String> {
        self.owners.account(user).ok_or_else(|| {
            format!(
                "the host has no user `{user}` (/etc/passwd, /usr/lib/passwd), so nobody could \
                 log in with {with}; add the user, or remove {which}"
            )
        })
    }
}

/// Puts what is wanted under paths into a view, where systemd reads it.
fn put<'w>(
    view: &mut Overlay<'_>,
    all: impl Iterator<Item = (&'w String, Option<&'w Wanted<'w>>)>,
) {
    for (path, wanted) in all.filter(|(path, _)| is_of_systemd(path)) {
        if let Some(entry) = wanted.and_then(entry_of) {
            set(view, path, &entry);
        }
    }
}

/// Sets an entry at its path, where systemd lists it, and at the path that this leads to, where it
/// is read.
fn set(view: &mut Overlay<'_>, path: &str, entry: &Entry) {
    if let Ok(Some(real)) = real(view, path, false)
        && real != path
    {
        view.set(&real, entry.clone());
    }
    view.set(path, entry.clone());
}

/// What stands under a path once a target is written.
fn entry_of(wanted: &Wanted<'_>) -> Option<Entry> {
    match wanted {
        Wanted::File { bytes, .. } => {
            Some(Entry::File(std::str::from_utf8(bytes).ok().map(str::to_owned)))
        }
        Wanted::Link { target } => Some(Entry::Link(target.clone())),
        Wanted::Absent => Some(Entry::Absent),
        Wanted::Password { .. } => None,
    }
}

/// The masks that go, by the unit of a config that is not to be masked. They are gone from the view
/// afterwards.
fn unmasked(view: &mut Overlay<'_>, config: &NodeConfig<'_>) -> BTreeMap<String, Enabling> {
    let mut masks = BTreeMap::new();
    for unit in config.units.iter().filter(|unit| canonical::mask(unit) == Some(false)) {
        let path = format!("{UNITS}/{}", unit.name);
        if matches!(view.entry(&path), Ok(Entry::Link(target)) if target == MASK) {
            view.set(&path, Entry::Absent);
            masks.insert(unit.name.to_string(), Enabling { path, target: None });
        }
    }
    masks
}

fn absent(paths: Vec<String>) -> Vec<Enabling> {
    paths.into_iter().map(|path| Enabling { path, target: None }).collect()
}

impl ThisHost {
    fn left_open_one(
        &self,
        (before, after): (&dyn View, &dyn View),
        presets: &Presets,
        LeftOpen { unit, why }: &LeftOpen,
    ) -> Result<Vec<Enabling>, InstallError> {
        let is_missing = |view: &dyn View| {
            matches!(
                install::state(view, &self.facts, unit),
                Err(InstallError::Missing(_) | InstallError::Dangling { .. })
            )
        };
        match why {
            Why::New if !is_missing(before) => return Ok(Vec::new()),
            Why::Lost | Why::Gone if is_missing(after) => {
                return Ok(absent(install::disable(before, &self.facts, unit)?));
            }
            Why::Gone => return Ok(Vec::new()),
            Why::New | Why::Lost => {}
        }
        let install::PresetLinks { removed, links } =
            install::preset(after, &self.facts, presets, unit)?;
        let mut all = absent(removed);
        all.extend(links.into_iter().map(|it| Enabling { path: it.path, target: Some(it.target) }));
        Ok(all)
    }
}

impl Host for ThisHost {
    fn user(&self, path: &str, name: &str) -> Result<u32, String> {
        self.owners.uid(path, name).map_err(|error| error.to_string())
    }

    fn group(&self, path: &str, name: &str) -> Result<u32, String> {
        self.owners.gid(path, name).map_err(|error| error.to_string())
    }

    fn enablement(
        &self,
        config: &NodeConfig<'_>,
        all_else: &Desired<'_>,
        gone: &[Target<'_>],
    ) -> BTreeMap<String, Result<Vec<Enabling>, String>> {
        let folders = Folders::new(&self.tree);
        let mut view = ThisHost::as_it_will_be(&folders, all_else, gone);
        let mut masks = unmasked(&mut view, config);
        let links = |view: &Overlay<'_>, name: &str, enabled: bool| match enabled {
            true => {
                let links = install::enable(view, &self.facts, name)?;
                let there =
                    |link: install::Link| Enabling { path: link.path, target: Some(link.target) };
                Ok(links.into_iter().map(there).collect())
            }
            false => match install::disable(view, &self.facts, name) {
                // What is not there is not enabled.
                Err(InstallError::Missing { .. }) => Ok(Vec::new()),
                removed => Ok(absent(removed?)),
            },
        };
        let mut all = BTreeMap::new();
        for unit in &config.units {
            let name: &str = &unit.name;
            let mask = masks.remove(name);
            let Some(enabled) = canonical::enabled(unit) else {
                if let Some(mask) = mask {
                    all.insert(name.to_owned(), Ok(vec![mask]));
                }
                continue;
            };
            let links: Result<Vec<Enabling>, InstallError> = links(&view, name, enabled);
            // The next unit sees them.
            for Enabling { path, target } in links.iter().flatten() {
                view.set(path, target.clone().map_or(Entry::Absent, Entry::Link));
            }
            let links = links.map(|links| mask.into_iter().chain(links).collect());
            all.insert(name.to_owned(), links.map_err(|error| error.to_string()));
        }
        all
    }

    fn left_open(&self, after: &[Target<'_>], units: &[LeftOpen]) -> Vec<(String, Enabling)> {
        let folders = Folders::new(&self.tree);
        let mut view = Overlay::new(&folders);
        put(&mut view, after.iter().map(|it| (&it.path, Some(&it.wanted))));
        let Ok(presets) = Presets::read(&view) else { return Vec::new() };
        let mut all = Vec::new();
        for unit in units {
            let links = self.left_open_one((&folders, &view), &presets, unit).unwrap_or_default();
            // The next unit sees them.
            for Enabling { path, target } in &links {
                view.set(path, target.clone().map_or(Entry::Absent, Entry::Link));
            }
            all.extend(links.into_iter().map(|link| (unit.unit.clone(), link)));
        }
        all
    }

    fn is_empty(&self, path: &str) -> bool {
        matches!(self.tree.entry(path), Ok(Entry::File(Some(text))) if text.is_empty())
    }

    fn keys(&self, user: &str) -> Result<Keys, String> {
        let account = self.account(user, "these keys", "the keys")?;
        let home = account.home.trim_end_matches('/');
        let fragments = crate::drift::see(&self.tree, FRAGMENTS).map_err(|it| it.to_string())?;
        let file = match fragments {
            crate::tree::Found::Absent => "authorized_keys",
            _ => "authorized_keys.d/ignition",
        };
        let owner = Owner { uid: account.uid, gid: account.gid, mode: 0 };
        Ok(Keys { path: format!("{home}/.ssh/{file}"), owner })
    }

    fn password(&self, user: &str) -> Result<(), String> {
        let account = self.account(user, "this password", "its passwordHash")?;
        match account.shadowed {
            true => Ok(()),
            false => Err(format!(
                "the password of `{user}` is not in /etc/shadow: its second field in /etc/passwd \
                 is not `x`; run pwconv, or remove its passwordHash"
            )),
        }
    }
}
