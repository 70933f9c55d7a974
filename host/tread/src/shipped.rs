//! The policies of the binary, as a cluster lists and loads them.

use anyhow::Result;
use tread_cluster::policies::load::{AllShipped, Shipped};
use tread_loading::builtins::{self, Digested};

pub(crate) fn shipped() -> Result<AllShipped> {
    let one = |(it, digest): Digested| Shipped { name: it.name, component: it.component, digest };
    let (builtins, rules) = builtins::all()?;
    Ok(AllShipped { builtins: builtins.into_iter().map(one).collect(), rules: one(rules) })
}
