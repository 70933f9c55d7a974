//! What the directives of a unit make of other units.

use super::lines::Setting;
use super::names::{MOST_NAMED, Named, mounts_of, named, of_quadlet, resolved};
use std::borrow::Cow;

/// What happens to one unit when another one is touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Does {
    /// It is the same unit.
    Be,
    /// It starts, if it does not run.
    Start,
    /// It stops, and nothing starts it again.
    Stop,
    /// It stops, and starts again where it ran.
    Restart,
    /// It is reloaded.
    Reload,
}

impl Does {
    /// What happens to a third unit: `self` is what a directive says of it, and `first` is what has
    /// happened to the unit in between.
    pub(super) fn after(self, first: Does) -> Option<Does> {
        use Does::{Be, Reload, Restart, Start, Stop};
        match (first, self) {
            (first, Be) => Some(first),
            (Stop, Restart) => Some(Stop),
            (Be | Restart | Stop, then) | (Start, then @ (Start | Stop)) => Some(then),
            (Reload, Reload) => Some(Reload),
            (Start | Reload, _) => None,
        }
    }
}

/// What a directive says of the units that it names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Relation {
    /// What comes of those when this unit is touched.
    pub(super) to: Option<Does>,
    /// What comes of this unit when those are touched.
    pub(super) from: Option<Does>,
}

const fn relation(to: Option<Does>, from: Option<Does>) -> Option<Relation> {
    Some(Relation { to, from })
}

/// What a directive says of the units that it names; None: it names none.
pub(super) fn of_key(key: &str) -> Option<Relation> {
    use Does::{Be, Reload, Restart, Start, Stop};
    match key {
        "Requires" | "BindsTo" | "BindTo" | "RequiresOverridable" => {
            relation(Some(Start), Some(Restart))
        }
        // Of paths, timers, sockets and services; and of whatever stands in a slice.
        "Wants" | "Upholds" | "OnSuccess" | "OnFailure" | "Unit" | "Service" | "Sockets"
        | "Slice" => relation(Some(Start), None),
        "Requisite" | "RequisiteOverridable" | "PartOf" | "StopPropagatedFrom" => {
            relation(None, Some(Restart))
        }
        "PropagatesStopTo" => relation(Some(Stop), None),
        "Conflicts" => relation(Some(Stop), Some(Stop)),
        "PropagatesReloadTo" | "PropagateReloadTo" => relation(Some(Reload), None),
        "ReloadPropagatedFrom" | "PropagateReloadFrom" => relation(None, Some(Reload)),
        "WantedBy" | "UpheldBy" => relation(None, Some(Start)),
        "RequiredBy" => relation(Some(Restart), Some(Start)),
        "Alias" => relation(Some(Be), Some(Be)),
        _ => None,
    }
}

/// The units that one directive names, with what it says of them.
pub(super) struct Relations<'t> {
    pub(super) relation: Relation,
    pub(super) named: Named<'t>,
}

/// Whether a line that begins so could name units: most lines do not, and are not read for it.
pub(super) fn may_name(section: &str, first: u8) -> bool {
    matches!(first, b'A' | b'B' | b'C' | b'L' | b'O' | b'P' | b'R' | b'S' | b'U' | b'W')
        || is_quadlets(section)
}

/// What a directive in the text of the unit `name` says of others.
pub(super) fn of<'t>(setting: &Setting<'t>, name: &str) -> Option<Relations<'t>> {
    let (section, key) = (&*setting.section, &*setting.key);
    match &setting.value {
        Cow::Borrowed(value) => of_value(section, key, value, name),
        Cow::Owned(value) => {
            let Relations { relation, named } = of_value(section, key, value, name)?;
            Some(Relations { relation, named: named.into_owned() })
        }
    }
}

fn of_value<'v>(section: &str, key: &str, value: &'v str, name: &str) -> Option<Relations<'v>> {
    let with = |to, from, named| Some(Relations { relation: Relation { to, from }, named });
    // A bare name is Quadlet's: that of a service.
    if key == "ServiceName" {
        let mut named = named(value, name);
        named.units.iter_mut().for_each(|unit| unit.to_mut().push_str(".service"));
        return with(Some(Does::Be), Some(Does::Be), named);
    }
    if is_quadlets(section) {
        let parts = value.split([':', ',', '=', ' ']).take(MOST_NAMED);
        let units = parts.filter(|part| part.contains('.') && of_quadlet(part) != **part);
        let named = Named { units: units.map(of_quadlet).collect(), ..Named::default() };
        // A pod starts its containers.
        let from = if key == "Pod" { Does::Start } else { Does::Restart };
        return with(Some(Does::Start), Some(from), named);
    }
    match key {
        "RequiresMountsFor" | "WantsMountsFor" => {
            let from = (key == "RequiresMountsFor").then_some(Does::Restart);
            with(Some(Does::Start), from, mounts("", value, name))
        }
        "WorkingDirectory" | "RootDirectory" | "RootImage" | "Where" => {
            with(Some(Does::Start), Some(Does::Restart), mounts("", value, name))
        }
        "StateDirectory" | "CacheDirectory" | "LogsDirectory" => {
            let directory = match key {
                "StateDirectory" => "/var/lib/",
                "CacheDirectory" => "/var/cache/",
                _ => "/var/log/",
            };
            with(Some(Does::Start), Some(Does::Restart), mounts(directory, value, name))
        }
        "LogNamespace" => {
            let Some(name) = resolved(value, name) else {
                return with(Some(Does::Start), Some(Does::Restart), Named::beyond());
            };
            let sockets = ["journald@", "journald-varlink@"];
            let units = sockets.map(|it| format!("systemd-{it}{name}.socket").into()).to_vec();
            with(Some(Does::Start), Some(Does::Restart), Named { units, ..Named::default() })
        }
        key => {
            let relation = of_key(key)?;
            Some(Relations { relation, named: named(value, name) })
        }
    }
}

/// The mounts that the paths of a value lie in.
fn mounts(directory: &str, value: &str, name: &str) -> Named<'static> {
    let Some(value) = resolved(value, name) else { return Named::beyond() };
    let value = value.replace(['"', '\''], "");
    let mut named = Named::default();
    for (at, path) in value.split_whitespace().enumerate() {
        if at == MOST_NAMED {
            named.too_many = true;
            break;
        }
        // As in `-/path`, and in `directory:link`.
        let path = path.trim_start_matches('-').split(':').next().unwrap_or(path);
        if directory.is_empty() && !path.starts_with('/') {
            continue;
        }
        // A mount lies in those above it.
        let mounts = mounts_of(&format!("{directory}{path}")).into_iter();
        named.units.extend(mounts.filter(|mount| mount != name).map(Cow::Owned));
    }
    named
}

fn is_quadlets(section: &str) -> bool {
    matches!(section, "Container" | "Pod" | "Kube" | "Network" | "Volume" | "Image" | "Build")
}

/// The units that start with a unit by its name alone.
pub(super) fn begun_by_name(name: &str) -> Vec<String> {
    let Some((stem, kind)) = name.rsplit_once('.') else { return Vec::new() };
    let mut started = Vec::new();
    match kind {
        "path" | "timer" => started.push(format!("{stem}.service")),
        // Of one that accepts, an instance for each connection.
        "socket" => {
            started.push(format!("{stem}.service"));
            started.push(format!("{stem}@.service"));
        }
        "automount" => started.push(format!("{stem}.mount")),
        "slice" => {
            started.extend(stem.rsplit_once('-').map(|(above, _)| format!("{above}.slice")));
        }
        _ => {}
    }
    // Instances stand in a slice of their own.
    if let Some((prefix, _)) = stem.split_once('@')
        && matches!(kind, "service" | "socket" | "mount" | "swap")
    {
        started.push(format!("system-{}.slice", prefix.replace('-', "\\x2d")));
    }
    started
}
