//! What the image of a machine is held against that boots for the first time.

use super::super::settings::FirstBoots;
use serde_json::Value;
use tread_cluster::boot_images::first_boots::asked;
use tread_model::joining::Unserved;
use tread_model::joining::first_boot::{self, FirstBoot, ReportsTo};

/// Why nobody can say yet what it is held against.
pub(super) const NOT_YET: &str = "the limits of boot images are not known yet";

/// What a machine of a pool is held against that shows this token, by which it reports then. None:
/// nobody can say yet; nothing in that: nothing.
pub(super) fn first_boot(
    settings: Option<&FirstBoots>,
    pool: &str,
    token: &str,
) -> Option<Option<FirstBoot>> {
    let Some(settings) = settings else { return Some(None) };
    // A machine that asks in the first second of a service is held against them too.
    let known = settings.images.now().filter(|known| known.0.limits_known)?;
    let Some((limits, passing)) = asked(&known.0, &known.1, pool) else { return Some(None) };
    let authority = settings.authority.borrow().clone();
    let can_report = !authority.is_empty() && !token.is_empty();
    let reports_to = can_report.then(|| ReportsTo {
        address: settings.address.clone(),
        authority,
        token: token.to_owned(),
    });
    Some(Some(FirstBoot { limits, passing, pool: pool.to_owned(), reports_to }))
}

/// Adds that to a spec.
pub(super) fn add(
    spec: &mut Value,
    config: &str,
    first_boot: Option<&FirstBoot>,
) -> Result<(), Unserved> {
    let Some(first_boot) = first_boot else { return Ok(()) };
    first_boot::add(spec, first_boot).map_err(|path| Unserved::Taken {
        pool: first_boot.pool.clone(),
        config: config.to_owned(),
        path,
    })
}
