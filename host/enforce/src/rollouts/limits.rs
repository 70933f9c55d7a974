//! How many nodes of a pool may be down, which come first, and when one may be begun, as its Rollout
//! says.

use crate::drain::length;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::time::Duration;
use tread_cluster::pools::Pool;
use tread_kube::api::rollout::{FirstNodes, Overrun, RolloutWindow};
use tread_kube::api::{Rollout, RolloutSpec};
use tread_model::rollout::{
    self as model, First, MaxUnavailable, Order, Retry, Window, WindowText,
};

/// How many nodes of a pool may be down, by its Rollout, or by the pool itself.
pub(crate) fn max_unavailable(rollout: Option<&Rollout>, pool: &Pool) -> MaxUnavailable {
    let own = rollout.and_then(|rollout| rollout.spec.max_unavailable.as_ref());
    let own = own.map(|own| match own {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(text) => text.clone(),
    });
    let text = own.or_else(|| pool.unavailable.0.clone());
    // What cannot be read is the least.
    text.and_then(|text| text.parse().ok()).unwrap_or(MaxUnavailable::Number(1))
}

/// Before a node is begun again for the first time, unless an admin says otherwise.
const FIRST_AFTER: Duration = Duration::from_secs(600);

/// How often nodes that failed are begun again by themselves; what cannot be read is never.
pub(crate) fn retry(spec: &RolloutSpec) -> Option<Retry> {
    let given = spec.retry.as_ref()?;
    let first_after = length("retry.firstAfter", given.first_after.as_deref()).ok()?;
    Some(Retry {
        attempts: u32::try_from(given.attempts).ok()?,
        first_after: first_after.unwrap_or(FIRST_AFTER),
    })
}

/// Which nodes come first.
pub(crate) fn order(spec: &RolloutSpec) -> Order {
    let Some(given) = &spec.order else { return Order::default() };
    let first = match given.first {
        FirstNodes::Oldest => First::Oldest,
        FirstNodes::Newest => First::Newest,
        FirstNodes::Name => First::Name,
    };
    Order { zones: given.zones.clone(), first }
}

/// When nodes may be begun.
pub(crate) fn windows(spec: &RolloutSpec) -> Result<Vec<Window>, String> {
    let text = |window: &RolloutWindow| WindowText {
        days: window.days.clone(),
        start: window.start.clone(),
        lasts: window.lasts.clone(),
        time_zone: window.time_zone.clone().unwrap_or_else(|| "UTC".to_owned()),
        last_start: window.last_start.clone(),
        overrun: match window.overrun {
            Overrun::Finish => model::Overrun::Finish,
            Overrun::TurnBack => model::Overrun::TurnBack,
        },
    };
    let read = |(at, window): (usize, _)| {
        Window::try_from(&text(window))
            .map_err(|error| format!("the Rollout's spec.windows[{at}] cannot be read: {error}"))
    };
    spec.windows.iter().enumerate().map(read).collect()
}
