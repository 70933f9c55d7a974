//! What systemd says of a unit.

use std::collections::HashMap;
use zbus::{OwnedVariant, Variant};

/// Whether systemd has read the unit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Load {
    /// It has.
    Loaded,
    /// There is no file of it.
    #[default]
    NotFound,
    /// It is masked.
    Masked,
    /// Its file cannot be used: what systemd calls that.
    Unusable(String),
}

/// Whether it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Active {
    /// It does.
    Active,
    /// It does, and is re-reading its configuration.
    Reloading,
    /// It does not.
    #[default]
    Inactive,
    /// It does not, since it failed.
    Failed,
    /// It is being started, or waits to be started again.
    Activating,
    /// It is being stopped.
    Deactivating,
    /// What a newer systemd calls a state in between.
    Other(String),
}

/// What systemd says of a unit, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnitFacts {
    /// Its own name, where it was asked for by an alias.
    pub id: String,
    /// Whether systemd has read it.
    pub load: Load,
    /// Whether it runs.
    pub active: Active,
    /// The same in the words of its kind: `running`, `exited`, `auto-restart`.
    pub sub: String,
    /// How it ended, or `success`.
    pub result: String,
    /// The type of a service: `oneshot`, `notify`; empty for other kinds of units.
    pub kind: String,
    /// Whether it counts as active after its processes ended.
    pub remains: bool,
    /// Whether it can re-read its configuration.
    pub can_reload: bool,
    /// Whether it can be started by hand.
    pub can_start: bool,
    /// `enabled`, `disabled`, `static`, …
    pub file_state: String,
    /// How often systemd restarted it by itself.
    pub restarts: u32,
    /// What this start of it is called in the journal; empty where it never ran.
    pub invocation: String,
    /// When it was last begun to start it, in microseconds of the node's clock; 0 where it
    /// never was. Its first process may be older than the end of its being inactive.
    pub since: u64,
    /// The main process of its newest run, also when that ended; 0 where it never had one.
    pub main: u32,
    /// Its job, where it has one.
    pub job: Option<u32>,
    /// Whether its last start was left out by a condition.
    pub unmet: bool,
    /// Whether others start it when it is needed: a socket, a timer, a name on the bus.
    pub triggered: bool,
    /// How its main process ended: as `SIGCHLD` says it, and the exit status or signal.
    pub ended: Option<(i32, i32)>,
}

impl UnitFacts {
    /// A service that runs a command each time it is started, and is inactive after that.
    pub fn runs_once(&self) -> bool {
        self.kind == "oneshot" && !self.remains
    }

    /// Whether systemd is going to start it again by itself.
    pub fn restarts_by_itself(&self) -> bool {
        self.active == Active::Activating && self.sub.starts_with("auto-restart")
    }

    /// Whether it is neither here nor there, and soon will be.
    pub fn changes(&self) -> bool {
        match self.active {
            Active::Activating => !self.restarts_by_itself(),
            Active::Reloading | Active::Deactivating | Active::Other(_) => true,
            Active::Active | Active::Inactive | Active::Failed => false,
        }
    }

    /// From all properties of the unit.
    pub(crate) fn read(all: &HashMap<String, OwnedVariant>) -> UnitFacts {
        let has = Properties(all);
        let condition_read = has.number("ConditionTimestampMonotonic") > 0;
        UnitFacts {
            id: has.text("Id"),
            load: match has.text("LoadState").as_str() {
                "loaded" => Load::Loaded,
                "not-found" => Load::NotFound,
                "masked" => Load::Masked,
                other => Load::Unusable(other.to_owned()),
            },
            active: match has.text("ActiveState").as_str() {
                "active" => Active::Active,
                "reloading" => Active::Reloading,
                "inactive" => Active::Inactive,
                "failed" => Active::Failed,
                "activating" => Active::Activating,
                "deactivating" => Active::Deactivating,
                other => Active::Other(other.to_owned()),
            },
            sub: has.text("SubState"),
            result: has.text("Result"),
            kind: has.text("Type"),
            remains: has.flag("RemainAfterExit"),
            can_reload: has.flag("CanReload"),
            can_start: has.flag("CanStart"),
            file_state: has.text("UnitFileState"),
            restarts: u32::try_from(has.number("NRestarts")).unwrap_or(u32::MAX),
            invocation: has.bytes("InvocationID"),
            since: has.number("ConditionTimestamp"),
            main: u32::try_from(has.number("ExecMainPID")).unwrap_or(0),
            job: has.job(),
            unmet: condition_read && !has.flag("ConditionResult"),
            triggered: has.is_list_with_some("TriggeredBy") || !has.text("BusName").is_empty(),
            ended: has.ended(),
        }
    }
}

struct Properties<'p>(&'p HashMap<String, OwnedVariant>);

impl Properties<'_> {
    fn get(&self, name: &str) -> Option<&Variant<'_>> {
        self.0.get(name).map(|value| &**value)
    }

    fn text(&self, name: &str) -> String {
        match self.get(name) {
            Some(Variant::Str(text)) => text.as_str().to_owned(),
            _ => String::new(),
        }
    }

    fn flag(&self, name: &str) -> bool {
        matches!(self.get(name), Some(Variant::Bool(true)))
    }

    fn number(&self, name: &str) -> u64 {
        match self.get(name) {
            Some(Variant::U32(number)) => u64::from(*number),
            Some(Variant::U64(number)) => *number,
            _ => 0,
        }
    }

    fn signed(&self, name: &str) -> i32 {
        match self.get(name) {
            Some(Variant::I32(number)) => *number,
            _ => 0,
        }
    }

    fn bytes(&self, name: &str) -> String {
        let Some(Variant::Array(bytes)) = self.get(name) else { return String::new() };
        let byte = |value: &Variant<'_>| match value {
            Variant::U8(byte) => format!("{byte:02x}"),
            _ => String::new(),
        };
        bytes.iter().map(byte).collect()
    }

    fn is_list_with_some(&self, name: &str) -> bool {
        matches!(self.get(name), Some(Variant::Array(list)) if !list.is_empty())
    }

    fn job(&self) -> Option<u32> {
        let Some(Variant::Structure(job)) = self.get("Job") else { return None };
        match job.fields().first() {
            Some(Variant::U32(id)) if *id != 0 => Some(*id),
            _ => None,
        }
    }

    fn ended(&self) -> Option<(i32, i32)> {
        let ended = self.number("ExecMainExitTimestampMonotonic") > 0;
        ended.then(|| (self.signed("ExecMainCode"), self.signed("ExecMainStatus")))
    }
}
