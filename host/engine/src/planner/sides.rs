//! What a plan is made of.

use tread_model::config::NodeConfig;
use tread_model::config_digest::Digests;
use tread_model::digest::Digest;

/// The two configs of a plan.
#[derive(Debug)]
pub struct Sides<'c, 'a> {
    /// What nodes have.
    pub old: &'c NodeConfig<'a>,
    /// What they are to get.
    pub new: &'c NodeConfig<'a>,
    /// What tells their entries apart, where that is known already: as
    /// [`tread_model::config_digest::differences_of_pair`] gives it.
    pub differences: Option<(Digests, Digests)>,
    /// A digest for each config: configs with equal digests say the same of units. None: not known.
    pub units: Option<[Digest; 2]>,
}

impl<'c, 'a> From<(&'c NodeConfig<'a>, &'c NodeConfig<'a>)> for Sides<'c, 'a> {
    fn from((old, new): (&'c NodeConfig<'a>, &'c NodeConfig<'a>)) -> Sides<'c, 'a> {
        Sides { old, new, differences: None, units: None }
    }
}
