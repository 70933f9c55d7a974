//! What happens to a node that booted into one pool, gets the config of another pool, and goes back
//! to the first one.

use super::foretold::Foretold;
use crate::plans::Previewer;
use tread_kube::api::conditions::cut;

/// How long is said what happens one way.
const LONGEST: usize = 100;

/// What each machine will go through, by the operator's own rules there and back; empty: it
/// goes nowhere.
pub(super) async fn ways(previewer: &Previewer, foretold: &Foretold) -> String {
    let Some(counts) = foretold.counts.pool() else { return String::new() };
    let Some(gets) = &foretold.gets else { return String::new() };
    let pools = previewer.snapshot().pools;
    let target = pools.get(counts).and_then(|pool| pool.target.clone());
    let Some(there_has) = target else { return String::new() };
    let there = previewer.forecast(gets, counts).await;
    let back = previewer.forecast(&there_has.name, &foretold.boots).await;
    match (there, back) {
        (Ok(there), Ok(back)) => {
            let reboots = u8::from(there.reboot) + u8::from(back.reboot);
            let reboots = match reboots {
                0 => "no reboot".to_owned(),
                1 => "1 reboot".to_owned(),
                more => format!("{more} reboots"),
            };
            let (there, back) = (cut(there.summary, LONGEST), cut(back.summary, LONGEST));
            match there == back {
                true => format!("{reboots} ({there}, there and back)"),
                false => format!("{reboots} (there: {there}; back: {back})"),
            }
        }
        (Err(why), _) | (_, Err(why)) => format!("what that takes is not known: {why}"),
    }
}
