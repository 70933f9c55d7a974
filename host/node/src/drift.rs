//! Whether the disk is as a config wants it.

use crate::desired::Desired;
use crate::shadow;
use crate::tree::{Folders, Found, Owner, PathError, Tree};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// One path that is not as the config wants it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift {
    /// The path.
    pub path: String,
    /// What it is a part of.
    pub of: String,
    /// What stands there.
    pub there: Found,
    /// What differs, for a program.
    pub kinds: Vec<Kind>,
    /// What differs, in a sentence without contents.
    pub differs: String,
}

/// What differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// It is not there.
    Missing,
    /// It should not be there.
    Unwanted,
    /// It is something else than a file, or than a link.
    Type,
    /// What it holds.
    Contents,
    /// Its permissions.
    Mode,
    /// The user that it belongs to.
    User,
    /// The group that it belongs to.
    Group,
    /// Where the link leads.
    Target,
    /// The password.
    Password,
    /// Something stands on the way to it.
    Way,
    /// The system does not let it be looked at.
    Unreadable,
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Kind::Missing => "it is missing",
            Kind::Unwanted => "it should not be there",
            Kind::Type => "it is something else",
            Kind::Contents => "its contents differ",
            Kind::Mode => "its mode differs",
            Kind::User => "its user differs",
            Kind::Group => "its group differs",
            Kind::Target => "it leads elsewhere",
            Kind::Password => "the password differs",
            Kind::Way => "there is no way to it",
            Kind::Unreadable => "it cannot be looked at",
        })
    }
}

/// Differences that an admin accepted: by path, what stands there.
pub type Accepted = BTreeMap<String, Found>;

/// What others write too, as OpenShift's operator has it: certificates and pull secrets that
/// it brings up to date by itself. That they differ is noted, and stops nothing.
const OF_OTHERS: [&str; 3] = [
    "/etc/kubernetes/kubelet-ca.crt",
    "/etc/kubernetes/static-pod-resources/configmaps/cloud-config/ca-bundle.pem",
    "/etc/mco/internal-registry-pull-secret.json",
];

/// Whether others own what stands under a path.
pub fn is_of_others(path: &str) -> bool {
    OF_OTHERS.contains(&path)
}

/// What a config wants under a path, without what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The path.
    pub path: String,
    /// What it is a part of.
    pub of: String,
    /// How it is to look; None: something is to be there, and no more is known.
    pub seen: Option<Found>,
}

/// All that a config wants.
pub fn expected(desired: &Desired<'_>) -> impl Iterator<Item = Expected> {
    desired.pieces.iter().map(|(path, piece)| Expected {
        path: path.clone(),
        of: piece.of.clone(),
        seen: piece.wanted.as_ref().map(crate::prepare::Wanted::seen),
    })
}

/// Every path of a config that is not as it is wanted, but for what was accepted, and for
/// what others own.
pub fn drift(
    tree: &Tree,
    desired: &Desired<'_>,
    accepted: &Accepted,
) -> Result<Vec<Drift>, PathError> {
    let all = expected(desired).filter(|it| !is_of_others(&it.path));
    let folders = Folders::new(tree);
    all.filter_map(|it| look(&folders, &it, accepted).transpose()).collect()
}

/// As [`drift`], of what others own.
pub fn noted(tree: &Tree, desired: &Desired<'_>) -> Result<Vec<Drift>, PathError> {
    let all = expected(desired).filter(|it| is_of_others(&it.path));
    let folders = Folders::new(tree);
    all.filter_map(|it| look(&folders, &it, &Accepted::new()).transpose()).collect()
}

/// Holds what stands under one path against what is wanted there.
pub fn look(
    folders: &Folders<'_>,
    expected: &Expected,
    accepted: &Accepted,
) -> Result<Option<Drift>, PathError> {
    let path = &expected.path;
    let (there, differs) = match seen(folders, path) {
        Ok(there) => (there, None),
        Err(PathError::NoWay { at, what, .. }) => {
            (Found::Other, Some((vec![Kind::Way], format!("{at} is {what}"))))
        }
        Err(error) => return Err(error),
    };
    let differs = differs.or_else(|| match &expected.seen {
        Some(wanted) => difference(wanted, &there),
        // What it holds is known to nobody: it has to be there.
        None if there == Found::Absent => Some((vec![Kind::Missing], "it is missing".to_owned())),
        None => None,
    });
    let differs = differs.filter(|_| accepted.get(path) != Some(&there));
    Ok(differs.map(|(kinds, differs)| {
        let (path, of) = (path.clone(), expected.of.clone());
        Drift { path, of, there, kinds, differs }
    }))
}

/// What stands under a path.
pub fn see(tree: &Tree, path: &str) -> Result<Found, PathError> {
    seen(&Folders::new(tree), path)
}

fn seen(folders: &Folders<'_>, path: &str) -> Result<Found, PathError> {
    let user = shadow::user_of(path);
    let file = if user.is_some() { shadow::FILE } else { path };
    let Some((folder, name)) = folders.place(file)? else { return Ok(Found::Absent) };
    let seen = match user {
        Some(user) => shadow::see(&folder, name, user),
        None => folder.see(name),
    };
    seen.map_err(|error| PathError::io(path, error))
}

/// What differs; nothing if both are the same.
fn difference(wanted: &Found, there: &Found) -> Option<(Vec<Kind>, String)> {
    if wanted == there {
        return None;
    }
    let one = |kind, text: String| (vec![kind], text);
    Some(match (wanted, there) {
        (Found::File { digest, owner }, Found::File { digest: other, owner: has }) => {
            let contents =
                (digest != other).then(|| (Kind::Contents, "its contents differ".to_owned()));
            let all = contents.into_iter().chain(owners(*owner, *has));
            let (kinds, texts): (Vec<Kind>, Vec<String>) = all.unzip();
            (kinds, texts.join(", "))
        }
        (Found::Field { .. }, Found::Field { .. }) => {
            one(Kind::Password, "the password differs".to_owned())
        }
        (Found::Field { .. }, Found::Absent) => {
            one(Kind::Missing, format!("{} has no such user", shadow::FILE))
        }
        (Found::Field { .. }, _) => one(
            Kind::Type,
            format!("{} is no file, or the user's line in it is not as it has to be", shadow::FILE),
        ),
        (Found::Absent, _) => one(Kind::Unwanted, "it should not be there".to_owned()),
        (_, Found::Absent) => one(Kind::Missing, "it is missing".to_owned()),
        (Found::Link { target }, Found::Link { target: other }) => {
            let fit = tread_model::text::one_line;
            let text = format!("it leads to {}, and should lead to {}", fit(other), fit(target));
            one(Kind::Target, text)
        }
        (Found::Link { .. }, _) => one(Kind::Type, "it is no link".to_owned()),
        (_, Found::Link { .. }) => one(Kind::Type, "it is a link".to_owned()),
        _ => one(Kind::Type, "it is no file".to_owned()),
    })
}

fn owners(wanted: Owner, there: Owner) -> impl Iterator<Item = (Kind, String)> {
    let differs = |kind, what: &str, wanted: String, there: String| {
        let text = || (kind, format!("its {what} is {there}, and should be {wanted}"));
        (wanted != there).then(text)
    };
    let octal = |mode: u32| format!("{mode:04o}");
    [
        differs(Kind::Mode, "mode", octal(wanted.mode), octal(there.mode)),
        differs(Kind::User, "user", wanted.uid.to_string(), there.uid.to_string()),
        differs(Kind::Group, "group", wanted.gid.to_string(), there.gid.to_string()),
    ]
    .into_iter()
    .flatten()
}
