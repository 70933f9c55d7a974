//! The words of `tread:policy@1` as they cross the border of the sandbox.
//!
//! Written by hand and not generated, so that what a policy is offered is
//! borrowed from the configs all the way: contents are copied once, into the
//! guest. wasmtime compares these types with the component's at load.

use crate::function::Signature;
use wasmtime::component::{ComponentType, Lift, Lower};

/// The versions that these words fit.
pub(crate) const VERSIONS: &str = "^1.0";

/// What a policy exports; wasmtime finds any 1.x by this name.
pub(crate) const CLASSIFIER: &str = "tread:policy/classifier@1.0.0";

/// What a policy may export beside it.
pub(crate) const DECLARATIONS: &str = "tread:policy/declarations@1.1.0";

/// What a policy may import.
pub(crate) const HOST: &str = "tread:policy/host@1.0.0";

/// What a policy may import in its place.
pub(crate) const CHARACTERS: &str = "tread:policy/characters@1.2.0";

/// The parameters of `classify`.
pub(crate) type ClassifyParams<'a> = (&'a str, &'a [Change<'a>], &'a [Entry<'a>]);

/// `classify`
pub(crate) enum Classify {}

impl Signature for Classify {
    type Params<'a> = ClassifyParams<'a>;
    type Value = Vec<Verdict>;
}

/// `describe`
pub(crate) enum Describe {}

impl Signature for Describe {
    type Params<'a> = ();
    type Value = Description;
}

/// `check-settings`
pub(crate) enum CheckSettings {}

impl Signature for CheckSettings {
    type Params<'a> = (&'a str,);
    type Value = Result<(), Vec<String>>;
}

/// `declare`
pub(crate) enum Declare {}

impl Signature for Declare {
    type Params<'a> = ();
    type Value = Declared;
}

/// `content`
#[derive(Debug, ComponentType, Lower)]
#[component(variant)]
pub(crate) enum Content<'a> {
    #[component(name = "absent")]
    Absent,
    #[component(name = "bytes")]
    Bytes(&'a [u8]),
    #[component(name = "digest")]
    Digest(String),
}

/// `file`
#[derive(Debug, ComponentType, Lower)]
#[component(record)]
pub(crate) struct File<'a> {
    pub(crate) content: Content<'a>,
    pub(crate) mode: u32,
    pub(crate) user: &'a str,
    pub(crate) group: &'a str,
}

/// `dropin`
#[derive(Debug, ComponentType, Lower)]
#[component(record)]
pub(crate) struct Dropin<'a> {
    pub(crate) name: &'a str,
    pub(crate) contents: Content<'a>,
}

/// `unit`
#[derive(Debug, ComponentType, Lower)]
#[component(record)]
pub(crate) struct Unit<'a> {
    pub(crate) contents: Content<'a>,
    pub(crate) enabled: Option<bool>,
    pub(crate) masked: bool,
    pub(crate) dropins: Vec<Dropin<'a>>,
}

/// `state`
#[derive(Debug, ComponentType, Lower)]
#[component(variant)]
pub(crate) enum State<'a> {
    #[component(name = "absent")]
    Absent,
    #[component(name = "file")]
    File(File<'a>),
    #[component(name = "unit")]
    Unit(Unit<'a>),
    #[component(name = "list")]
    List(Vec<&'a str>),
    #[component(name = "text")]
    Text(&'a str),
    #[component(name = "digest")]
    Digest(String),
}

/// `change`
#[derive(Debug, ComponentType, Lower)]
#[component(record)]
pub(crate) struct Change<'a> {
    pub(crate) id: &'a str,
    pub(crate) before: State<'a>,
    pub(crate) after: State<'a>,
}

/// `entry`
#[derive(Debug, ComponentType, Lower)]
#[component(record)]
pub(crate) struct Entry<'a> {
    pub(crate) id: &'a str,
    pub(crate) state: State<'a>,
}

/// `effect`
#[derive(Debug, Clone, Copy, ComponentType, Lift)]
#[expect(dead_code, reason = "wasmtime makes them from the number that the guest gives")]
#[component(enum)]
#[repr(u8)]
pub(crate) enum Effect {
    #[component(name = "none")]
    None,
    #[component(name = "reload")]
    Reload,
    #[component(name = "restart")]
    Restart,
    #[component(name = "drain")]
    Drain,
    #[component(name = "reboot")]
    Reboot,
    #[component(name = "refuse")]
    Refuse,
}

/// `claim`
#[derive(Debug, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Claim {
    pub(crate) changes: String,
    pub(crate) least: Effect,
    pub(crate) most: Effect,
    #[component(name = "with-unchanged")]
    pub(crate) with_unchanged: bool,
}

/// `settings-description`
#[derive(Debug, ComponentType, Lift)]
#[component(record)]
pub(crate) struct SettingsDescription {
    pub(crate) defaults: String,
    pub(crate) schema: String,
}

/// `description`
#[derive(Debug, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Description {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) summary: String,
    pub(crate) claims: Vec<Claim>,
    pub(crate) settings: Option<SettingsDescription>,
}

/// `declared`
#[derive(Debug, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Declared {
    #[component(name = "needs-secrets")]
    pub(crate) needs_secrets: bool,
    pub(crate) reasons: Vec<String>,
}

/// `action`
#[derive(Debug, ComponentType, Lift)]
#[component(variant)]
pub(crate) enum Action {
    #[component(name = "reload")]
    Reload(String),
    #[component(name = "restart")]
    Restart(String),
    #[component(name = "daemon-reload")]
    DaemonReload,
    #[component(name = "drain")]
    Drain,
    #[component(name = "reboot")]
    Reboot,
    #[component(name = "reboot-undrained")]
    RebootUndrained,
}

/// `answer`
#[derive(Debug, ComponentType, Lift)]
#[component(variant)]
pub(crate) enum Answer {
    #[component(name = "abstain")]
    Abstain,
    #[component(name = "act")]
    Act(Vec<Action>),
    #[component(name = "refuse")]
    Refuse,
}

/// `verdict`
#[derive(Debug, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Verdict {
    pub(crate) change: u32,
    pub(crate) answer: Answer,
    pub(crate) reason: String,
}
