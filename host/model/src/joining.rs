//! How a machine that boots for the first time becomes a node of its pool: what it is served,
//! the claim that its node registers with, and what becomes of that.

mod accept;
mod beyond;
mod booted;
mod claim;
mod file;
pub mod first_boot;
mod flags;
mod key;
mod kubelet;
mod labels;
mod served;
mod settle;
mod stub;
mod tokens;
mod version;

pub use accept::{Asked, NEWEST, asked};
pub use beyond::needs_agent;
pub use booted::{BOOTED, Booted};
pub use claim::{Claim, Id, Invalid, Mark};
pub use key::Key;
pub use kubelet::{KUBELET, NoRoom, claim_in, with_claim, without_claim};
pub use labels::{Ambiguous, Determined, Labels, Requirement, determined};
pub use served::{BOOTSTRAP, Boots, Served, Unserved, served};
pub use settle::{Facts, Held, Joins, Known, PoolFacts, SKEW, Settled, Shown, claim_of, settle};
pub use stub::stub;
pub use tokens::Tokens;
pub use version::{Lacks, in_version};

/// The taint with which a machine registers that tread served: its value is its claim.
pub const TAINT: &str = "tread.dev/joining";

/// The Secret, in tread's namespace, with the keys that claims are signed with.
pub const KEYS_SECRET: &str = "tread-joining-keys";
/// The Secret, in tread's namespace, with the tokens of pools.
pub const TOKENS_SECRET: &str = "tread-joining-tokens";
/// The only key of both, with JSON in it.
pub const SECRETS_KEY: &str = "joining.json";
/// The Secret, in tread's namespace, in which an admin gives the kubeconfig by which kubelets
/// register.
pub const BOOTSTRAP_SECRET: &str = "tread-bootstrap";

/// What follows a pool's name in that of the Secret with the user data that `tread pools stub` prints.
pub const USER_DATA: &str = "-user-data-tread";

/// The condition of a NodeUpdate that says whether its node has joined, or why it is held.
pub const JOINED: &str = "Joined";

/// How an agent's word begins that could not bring what Ignition cannot.
pub const GAVE_UP: &str = "it joins no pool, since it could not be brought to its config";

/// The effect of that taint: no pod comes before the node has joined.
pub const EFFECT: &str = "NoSchedule";
