//! Names of systemd units, and which of them a policy may have reloaded or
//! restarted. tread itself is built from this file too, so that what passes in a
//! policy's tests passes there.

use std::collections::BTreeSet;
use std::sync::LazyLock;

const TYPES: [&str; 11] = [
    "service",
    "socket",
    "device",
    "mount",
    "automount",
    "swap",
    "target",
    "path",
    "timer",
    "slice",
    "scope",
];

const GENTLE: [&str; 5] = ["service", "socket", "path", "timer", "mount"];

/// The units that carry plans out on a node.
const OWN: [&str; 5] = [
    "tread-boot.service",
    "tread-operation.service",
    "tread-resume.service",
    "tread-settle.service",
    "tread-watch.service",
];

/// How touching a unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// A service, socket, path, timer or mount: any policy may name it.
    Gentle,
    /// It takes others with it: only an admin's rules may name it.
    Wide,
}

/// How touching the unit of this name is; or why nobody may name it, as the rest
/// of a sentence that begins with the name.
///
/// # Errors
/// It is none that could be touched, or it ends the system.
pub fn touch(name: &str) -> Result<Touch, &'static str> {
    let kind = kind_of_unit(name).filter(|_| is_unit_name(name));
    let Some(kind) = kind else {
        return Err("is no complete unit name such as crio.service");
    };
    if is_template(name) {
        return Err("is a template, which never runs: name an instance, such as app@blue.service");
    }
    if name.starts_with('-') {
        return Err("begins with -, as an option does and the root of all mounts");
    }
    if ends_the_system(name) {
        return Err(
            "ends or isolates the system, or is an alias of what does: what a change needs is a \
             reboot, which is an action of its own",
        );
    }
    if OWN.contains(&name) {
        return Err("is tread's own, and carries plans out: one that touched it would never end");
    }
    let is_wide = !GENTLE.contains(&kind) || LISTS.wide.has(name);
    Ok(if is_wide { Touch::Wide } else { Touch::Gentle })
}

/// Whether a policy that is no admin's rules may name it.
///
/// # Errors
/// Why not, as the rest of a sentence that begins with the name.
pub fn touch_gently(name: &str) -> Result<(), &'static str> {
    match touch(name)? {
        Touch::Gentle => Ok(()),
        Touch::Wide if LISTS.wide.has(name) => {
            Err("takes much of a node with it, so that a policy cannot touch it")
        }
        Touch::Wide => Err(
            "is none of services, sockets, paths, timers and mounts, which are all that a policy \
             can touch",
        ),
    }
}

/// Whether touching the unit of this name ends or isolates the system.
pub fn ends_the_system(name: &str) -> bool {
    LISTS.ends.has(name)
}

/// Whether systemd takes this for the name of a unit: `crio.service`, an
/// instance `app@blue.service`, or a template `app@.service`.
///
/// Names that begin with a dot are left out, though systemd knows them: it
/// never finds them in its directories.
pub fn is_unit_name(name: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.\\@".contains(&byte);
    name.len() <= 255
        && !name.starts_with(['.', '@'])
        && name.bytes().all(fine)
        && kind_of_unit(name).is_some()
}

/// The type of unit that a name ends in, as in `service`.
pub fn kind_of_unit(name: &str) -> Option<&str> {
    name.rsplit_once('.').map(|(_, kind)| kind).filter(|kind| TYPES.contains(kind))
}

/// Whether it is a template without an instance, such as `app@.service`. It
/// stands for no unit that could run, be reloaded or restarted.
pub fn is_template(name: &str) -> bool {
    // The instance is what stands behind the first `@`.
    let stem = name.rsplit_once('.').map(|(stem, _)| stem);
    stem.and_then(|stem| stem.split_once('@')).is_some_and(|(_, instance)| instance.is_empty())
}

/// What `system-units.txt` says.
#[derive(Default)]
struct Lists {
    ends: List,
    wide: List,
}

#[derive(Default)]
struct List {
    /// In any type, and as any instance.
    stems: BTreeSet<&'static str>,
    /// With their type.
    names: BTreeSet<&'static str>,
    /// How the names of mounts begin.
    mounts: Vec<&'static str>,
}

static LISTS: LazyLock<Lists> = LazyLock::new(|| {
    let mut lists = Lists::default();
    let mut list = &mut lists.ends;
    for line in include_str!("system-units.txt").lines() {
        match line {
            "" => {}
            "[wide]" => list = &mut lists.wide,
            line if line.starts_with('#') => {}
            line => list.add(line),
        }
    }
    lists
});

impl List {
    fn add(&mut self, line: &'static str) {
        match line.strip_suffix("*.mount") {
            Some(begin) => self.mounts.push(begin),
            None if line.contains('.') => drop(self.names.insert(line)),
            None => drop(self.stems.insert(line)),
        }
    }

    fn has(&self, name: &str) -> bool {
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let prefix = stem.split_once('@').map_or(stem, |(prefix, _)| prefix);
        let is_mount = name.ends_with(".mount");
        self.stems.contains(stem)
            || self.stems.contains(prefix)
            || self.names.contains(name)
            || is_mount && self.mounts.iter().any(|begin| name.starts_with(begin))
    }
}
