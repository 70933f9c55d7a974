//! What a side is made of: the one config that OpenShift's operator rendered for
//! a pool, or the single ones that it would render it from.

/// What a config, or a side, is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Makeup {
    /// It says nothing of where it belongs, as an Ignition config.
    #[default]
    Unknown,
    /// MachineConfigs as people write them, for this pool if they name one.
    Single(Option<String>),
    /// All that a node of this pool has, as the operator rendered it.
    Rendered(String),
}

impl Makeup {
    /// The pool that it is of, where it says so.
    pub fn pool(&self) -> Option<&str> {
        match self {
            Makeup::Rendered(pool) | Makeup::Single(Some(pool)) => Some(pool),
            Makeup::Single(None) | Makeup::Unknown => None,
        }
    }
}

/// The kind of objects that own rendered configs.
pub const POOL_KIND: &str = "MachineConfigPool";

/// The role whose configs are merged first.
const WORKER: &str = "worker";

/// Whether a role is of a pool that others build upon.
pub(super) fn is_base(role: &str) -> bool {
    matches!(role, WORKER | "master")
}

/// By what the configs of a pool are sorted before they are merged, as OpenShift's operator
/// does it: those of the role `worker` by name, then all others by name, whether they have
/// another role or none.
pub(crate) fn merge_order<'n>(role: Option<&str>, name: &'n str) -> (bool, &'n str) {
    (role != Some(WORKER), name)
}

/// Of a config by its name; `owner` is the pool that owns it. One with a role is one that
/// pools select, whatever owns it: a rendered one has none.
pub(super) fn of_config(name: &str, owner: Option<&str>, role: Option<&str>) -> Makeup {
    if let Some(role) = role.filter(|role| !role.is_empty()) {
        return Makeup::Single(Some(role.to_owned()));
    }
    let by_name = name.strip_prefix("rendered-").and_then(|rest| rest.rsplit_once('-'));
    match owner.or(by_name.map(|(pool, _)| pool)).filter(|pool| !pool.is_empty()) {
        Some(pool) => Makeup::Rendered(pool.to_owned()),
        None => Makeup::Single(None),
    }
}
