//! Asking the API server. Every call has a deadline, is counted where it fails, and
//! its outcome says what to do next.

use crate::errors::in_words;
use crate::metrics::{ApiError, Metrics};
use futures::FutureExt as _;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::runtime::watcher;
use kube::{Api, Client};
use std::cell::Cell;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout_at};

/// A call is given up after this long. The client itself would wait for minutes.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The same where somebody waits for the answer, or the leader may lose its Lease.
pub const SHORT_PATIENCE: Duration = Duration::from_secs(5);

tokio::task_local! {
    /// How much time the call that is under way has, for the client that makes it.
    static TIME: Time;
}

struct Time {
    deadline: Instant,
    /// Until when the API server wants to be left alone, if that is after the deadline.
    busy_until: Cell<Option<Instant>>,
}

/// Whether the call that is under way has time until then, when the API server wants to be asked
/// again. If not, whoever called does not ask again before that.
pub(crate) fn has_time_until(until: Instant) -> bool {
    let has_time = |time: &Time| {
        let has_time = until < time.deadline;
        if !has_time {
            time.busy_until.set(Some(until));
        }
        has_time
    };
    // Nobody waits for what has no deadline, such as a watch.
    TIME.try_with(has_time).unwrap_or(true)
}

/// What is asked of the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    verb: &'static str,
    kind: &'static str,
    subresource: Option<&'static str>,
    namespace: Option<String>,
}

/// Why a call came to nothing, by what is to be done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOutcome {
    /// Whoever asks may not: the same call fails until somebody grants it.
    Forbidden,
    /// The API server does not know who asks: another token may be known.
    Unauthenticated,
    /// The API server does not want this: the same call fails again.
    Refused,
    /// Somebody was faster, or it is there already: read it again.
    Conflict,
    /// It is not there.
    Gone,
    /// No answer came, or the API server has too much to do: ask again later.
    Unanswered,
    /// What came cannot be read: until somebody changes the object, it is the same.
    Unreadable,
}

/// A call that came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// What is to be done next.
    pub outcome: CallOutcome,
    /// The HTTP status, or 0 if no answer came.
    pub code: u16,
    /// The API server's own words, or what kept the call from it.
    pub why: String,
    of: Box<Of>,
}

/// What a call that failed was for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Of {
    call: Call,
    /// The kind and its group, as the API server names them.
    resource: Option<(String, String)>,
    /// Whether a PodDisruptionBudget is why.
    by_budget: bool,
    /// Until when the API server wants to be left alone, where that was not waited for.
    busy_until: Option<Instant>,
}

/// As a cause of an eviction's answer: a budget does not allow it.
const DISRUPTION_BUDGET: &str = "DisruptionBudget";

impl Call {
    /// A verb of the API server's, and the plural of a kind.
    pub const fn new(verb: &'static str, kind: &'static str) -> Call {
        Call { verb, kind, subresource: None, namespace: None }
    }

    /// Of the status alone.
    #[must_use]
    pub fn of_status(self) -> Call {
        Call { subresource: Some("status"), ..self }
    }

    /// In a namespace.
    #[must_use]
    pub fn within(self, namespace: &str) -> Call {
        Call { namespace: Some(namespace.to_owned()), ..self }
    }

    /// That it came to nothing for a reason that is not the API server's.
    pub fn refused(self, why: String) -> Failed {
        self.ended(CallOutcome::Refused, 0, why)
    }

    /// That somebody was faster.
    pub fn overtaken(self, why: String) -> Failed {
        self.ended(CallOutcome::Conflict, 409, why)
    }

    /// What came of it: this error.
    pub fn failed(self, error: &kube::Error) -> Failed {
        let (code, details) = match error {
            kube::Error::Api(status) => (status.code, status.details.as_ref()),
            _ => (0, None),
        };
        let outcome = match code {
            _ if matches!(error, kube::Error::SerdeError(_)) => CallOutcome::Unreadable,
            401 => CallOutcome::Unauthenticated,
            403 => CallOutcome::Forbidden,
            404 => CallOutcome::Gone,
            409 => CallOutcome::Conflict,
            429 => CallOutcome::Unanswered,
            400..500 => CallOutcome::Refused,
            _ => CallOutcome::Unanswered,
        };
        let resource = details.filter(|it| !it.kind.is_empty());
        let resource = resource.map(|it| (it.kind.clone(), it.group.clone()));
        let causes = details.map(|it| it.causes.as_slice()).unwrap_or_default();
        let by_budget = causes.iter().any(|cause| cause.reason == DISRUPTION_BUDGET);
        let of = Box::new(Of { call: self, resource, by_budget, busy_until: None });
        Failed { outcome, code, why: in_words(error), of }
    }

    fn unanswered(self) -> Failed {
        let why = "the API server does not answer".to_owned();
        self.ended(CallOutcome::Unanswered, 0, why)
    }

    fn ended(self, outcome: CallOutcome, code: u16, why: String) -> Failed {
        Failed {
            outcome,
            code,
            why,
            of: Box::new(Of { call: self, resource: None, by_budget: false, busy_until: None }),
        }
    }
}

impl Failed {
    /// A watch that failed.
    pub fn watch(error: &watcher::Error, kind: &'static str) -> Failed {
        use watcher::Error;
        let call = |verb| Call::new(verb, kind);
        match error {
            Error::InitialListFailed(error) => call("list").failed(error),
            Error::WatchStartFailed(error) | Error::WatchFailed(error) => {
                call("watch").failed(error)
            }
            Error::WatchError(status) => call("watch").failed(&kube::Error::Api(status.clone())),
            Error::NoResourceVersion => {
                call("watch").ended(CallOutcome::Unanswered, 0, error.to_string())
            }
        }
    }

    /// The verb that was asked for.
    pub fn verb(&self) -> &'static str {
        self.of.call.verb
    }

    /// Whether a PodDisruptionBudget does not allow it: an API server that has too much to do
    /// answers with the same code.
    pub fn is_by_budget(&self) -> bool {
        self.of.by_budget
    }

    /// The question to kubectl whether it is allowed by now, if it was forbidden.
    pub fn can_i(&self) -> Option<String> {
        if self.outcome != CallOutcome::Forbidden {
            return None;
        }
        let (kind, group) = self.of.resource.as_ref()?;
        let mut asked = format!("kubectl auth can-i {} {kind}", self.of.call.verb);
        if !group.is_empty() {
            asked.push_str(&format!(".{group}"));
        }
        if let Some(part) = self.of.call.subresource {
            asked.push_str(&format!(" --subresource={part}"));
        }
        if let Some(namespace) = &self.of.call.namespace {
            asked.push_str(&format!(" -n {namespace}"));
        }
        Some(asked)
    }

    /// Counts it.
    #[must_use]
    pub fn counted(self, metrics: &Metrics) -> Failed {
        let Call { verb, kind, .. } = self.of.call;
        metrics.api_errors.get_or_create(&ApiError { verb, kind, code: self.code }).inc();
        self
    }

    /// Counts it, but for what is not there, and what a PodDisruptionBudget does not allow.
    #[must_use]
    pub fn counted_unless_answer(self, metrics: &Metrics) -> Failed {
        // A drain asks again and again, for as long as a budget holds its pods.
        let is_answer = self.outcome == CallOutcome::Gone || self.is_by_budget();
        if is_answer { self } else { self.counted(metrics) }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for Failed {}

/// The answer to a call. All that comes to nothing is counted, but for what is not
/// there, and what a PodDisruptionBudget does not allow: these are answers too.
pub async fn ask<T>(
    metrics: &Metrics,
    call: Call,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, Failed> {
    ask_before(Instant::now() + PATIENCE, metrics, call, request).await
}

/// The same with another deadline.
pub fn ask_before<T>(
    deadline: Instant,
    metrics: &Metrics,
    call: Call,
    request: impl Future<Output = kube::Result<T>>,
) -> impl Future<Output = Result<T, Failed>> {
    let counted = |failed: Failed| failed.counted_unless_answer(metrics);
    // As an async function it would hold the request twice.
    ask_uncounted(deadline, call, request).map(move |asked| asked.map_err(counted))
}

/// The same, and nothing is counted: for those who know only later whether it is an answer that it
/// came to nothing.
pub async fn ask_uncounted<T>(
    deadline: Instant,
    call: Call,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, Failed> {
    let time = Time { deadline, busy_until: Cell::default() };
    let mut asked = pin!(TIME.scope(time, request));
    let mut failed = match timeout_at(deadline, asked.as_mut()).await {
        Ok(Ok(answer)) => return Ok(answer),
        Ok(Err(error)) => call.failed(&error),
        Err(_) => call.unanswered(),
    };
    failed.of.busy_until = asked.take_value().and_then(|time| time.busy_until.get());
    Err(failed)
}

/// As [`ask`], again for as long as `is_worth_it` says so of what failed, and the
/// patience is not over.
pub async fn ask_again<T, F: Future<Output = kube::Result<T>>>(
    patience: Duration,
    metrics: &Metrics,
    call: Call,
    request: impl Fn() -> F,
    is_worth_it: impl Fn(&Failed) -> bool,
) -> Result<T, Failed> {
    let mut backoff = Backoff::new(BUSY_WAITS);
    let deadline = Instant::now() + patience;
    ask_again_before(deadline, &mut backoff, metrics, call, request, is_worth_it).await
}

async fn ask_again_before<T, F: Future<Output = kube::Result<T>>>(
    deadline: Instant,
    backoff: &mut Backoff,
    metrics: &Metrics,
    call: Call,
    request: impl Fn() -> F,
    is_worth_it: impl Fn(&Failed) -> bool,
) -> Result<T, Failed> {
    loop {
        let answer = ask_before(deadline, metrics, call.clone(), request()).await;
        let Err(failed) = &answer else { return answer };
        let next = Instant::now() + backoff.next_wait();
        let next = failed.of.busy_until.map_or(next, |until| until.max(next));
        if !is_worth_it(failed) || next >= deadline {
            return answer;
        }
        sleep_until(next).await;
    }
}

/// Whether the API server has too much to do: it says so itself.
pub fn is_busy(failed: &Failed) -> bool {
    matches!(failed.code, 429 | 503)
}

const BUSY_WAITS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// Whether a call failed because its own roles do not allow it. What forbids a
/// single object, such as a quota or an admission policy, answers alike.
pub async fn lacks_rights(client: &Client, metrics: &Metrics, failed: &Failed) -> bool {
    if failed.outcome != CallOutcome::Forbidden {
        return false;
    }
    let Call { verb, kind, subresource, namespace } = &failed.of.call;
    let (kind, group) = match &failed.of.resource {
        Some((kind, group)) => (kind.as_str(), group.as_str()),
        None => (*kind, ""),
    };
    let attributes = ResourceAttributes {
        verb: Some((*verb).to_owned()),
        group: Some(group.to_owned()),
        resource: Some(kind.to_owned()),
        subresource: subresource.map(str::to_owned),
        namespace: namespace.clone(),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec {
        resource_attributes: Some(attributes),
        ..SelfSubjectAccessReviewSpec::default()
    };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let params = PostParams::default();
    let asked = reviews.create(&params, &review);
    let call = Call::new("create", "selfsubjectaccessreviews");
    let answer = ask_before(Instant::now() + SHORT_PATIENCE, metrics, call, asked).await;
    answer.is_ok_and(|review| review.status.is_some_and(|status| !status.allowed))
}

/// Waits that become longer: twice as long each time, up to the longest.
#[derive(Debug, Clone)]
pub struct Backoff {
    waits: (Duration, Duration),
    failures: u32,
}

impl Backoff {
    /// The first wait, and the longest.
    pub const fn new(waits: (Duration, Duration)) -> Backoff {
        Backoff { waits, failures: 0 }
    }

    /// How long to wait now.
    pub fn next_wait(&mut self) -> Duration {
        let wait = pause(self.waits, self.failures);
        self.failures = self.failures.saturating_add(1);
        wait
    }

    /// Waits.
    pub async fn wait(&mut self) {
        sleep_until(Instant::now() + self.next_wait()).await;
    }

    /// It went well: the next wait is the first one again.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

/// How long to wait after so many failures: somewhere in the upper half of the full
/// time, so that not all come back at once.
pub fn pause((first, most): (Duration, Duration), failures: u32) -> Duration {
    let full = first.saturating_mul(2_u32.saturating_pow(failures.min(16))).min(most);
    let half = full / 2;
    half + half.mul_f64(noise())
}

/// A wait that differs from that of others, by up to a half.
pub fn jittered(wait: Duration) -> Duration {
    wait + wait.mul_f64(noise() / 2.0)
}

/// From 0 to 1.
fn noise() -> f64 {
    let random = RandomState::new().hash_one(0_u8) % 1000;
    f64::from(u32::try_from(random).unwrap_or_default()) / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tread_test_bed::refusal;

    fn error(code: u16, details: Option<(&str, &str)>) -> kube::Error {
        let details = details.map(|(kind, group)| json!({"kind": kind, "group": group}));
        refusal(json!({"code": code, "message": "why", "reason": "Reason", "details": details}))
    }

    #[test]
    fn the_status_of_an_answer_says_what_to_do_next() {
        for (code, outcome) in [
            (400, CallOutcome::Refused),
            (401, CallOutcome::Unauthenticated),
            (403, CallOutcome::Forbidden),
            (404, CallOutcome::Gone),
            (409, CallOutcome::Conflict),
            (410, CallOutcome::Refused),
            (422, CallOutcome::Refused),
            (429, CallOutcome::Unanswered),
            (500, CallOutcome::Unanswered),
            (503, CallOutcome::Unanswered),
        ] {
            let failed = Call::new("get", "nodes").failed(&error(code, None));
            assert_eq!((failed.outcome, failed.code), (outcome, code));
            assert_eq!(failed.to_string(), "why");
        }
        let refused = kube::Error::ReadEvents(std::io::Error::other("connection refused"));
        let failed = Call::new("get", "nodes").failed(&refused);
        assert_eq!((failed.outcome, failed.code), (CallOutcome::Unanswered, 0));
        let odd = serde_json::from_str::<u8>("{}").unwrap_err();
        let failed = Call::new("get", "nodes").failed(&kube::Error::SerdeError(odd));
        assert_eq!((failed.outcome, failed.code), (CallOutcome::Unreadable, 0));
    }

    #[test]
    fn what_is_forbidden_comes_with_the_question_whether_it_is_allowed_by_now() {
        let of = |call: Call, details| call.failed(&error(403, details)).can_i();
        let get = Call::new("get", "configmaps");
        assert_eq!(
            of(get.clone().within("time"), Some(("configmaps", ""))).as_deref(),
            Some("kubectl auth can-i get configmaps -n time")
        );
        let group = "machineconfiguration.openshift.io";
        assert_eq!(
            of(Call::new("list", "configs to plan"), Some(("machineconfigs", group))).as_deref(),
            Some("kubectl auth can-i list machineconfigs.machineconfiguration.openshift.io")
        );
        assert_eq!(
            of(Call::new("patch", "plans").of_status(), Some(("plans", "tread.dev"))).as_deref(),
            Some("kubectl auth can-i patch plans.tread.dev --subresource=status")
        );
        assert_eq!(of(get.clone(), None), None, "by whom is not known");
        assert_eq!(get.failed(&error(404, Some(("configmaps", "")))).can_i(), None);
    }

    #[test]
    fn a_budget_is_why_only_where_the_answer_says_so() {
        let cause = |reason: &str| json!({"causes": [{"reason": reason, "message": "m"}]});
        for (details, is_budgets) in [
            (cause("DisruptionBudget"), true),
            (cause("FieldValueInvalid"), false),
            (json!({"retryAfterSeconds": 1}), false),
            (json!(null), false),
        ] {
            let answer = refusal(json!({"code": 429, "message": "m", "details": details}));
            let failed = Call::new("create", "evictions").failed(&answer);
            assert_eq!(failed.is_by_budget(), is_budgets, "{details}");
            assert_eq!(failed.outcome, CallOutcome::Unanswered);
        }
        let silent = Call::new("create", "evictions").unanswered();
        assert!(!silent.is_by_budget());
    }

    #[tokio::test]
    async fn a_pod_that_a_budget_holds_is_no_error_of_the_api_server() {
        let metrics = Metrics::new();
        let asked = async |details: serde_json::Value| {
            let answer = refusal(json!({"code": 429, "message": "m", "details": details}));
            let call = Call::new("create", "evictions");
            ask(&metrics, call, std::future::ready(Err::<(), _>(answer))).await.unwrap_err()
        };
        let held = asked(json!({"causes": [{"reason": "DisruptionBudget"}]})).await;
        assert!(held.is_by_budget() && held.code == 429);
        assert!(!metrics.text().unwrap().contains("kind=\"evictions\""));
        // One that has too much to do answers with the same code.
        asked(json!({"retryAfterSeconds": 1})).await;
        let counted = "tread_api_errors_total{verb=\"create\",kind=\"evictions\",code=\"429\"} 1";
        assert!(metrics.text().unwrap().contains(counted));
    }

    #[tokio::test]
    async fn a_call_that_nobody_answers_ends_and_is_counted() {
        let metrics = Metrics::new();
        let silent = std::future::pending::<kube::Result<()>>();
        let deadline = Instant::now() + Duration::from_millis(1);
        let call = Call::new("get", "nodes");
        let failed = ask_before(deadline, &metrics, call, silent).await.unwrap_err();
        assert_eq!(failed.outcome, CallOutcome::Unanswered);
        assert_eq!(failed.why, "the API server does not answer");
        let counted = "tread_api_errors_total{verb=\"get\",kind=\"nodes\",code=\"0\"} 1";
        assert!(metrics.text().unwrap().contains(counted));
    }

    #[tokio::test]
    async fn one_that_is_busy_is_asked_again_until_it_answers_or_the_deadline_is_over() {
        let metrics = Metrics::new();
        let tries = std::cell::Cell::new(0);
        let asked = async |last: u32, code: u16, patience: Duration| {
            tries.set(0);
            let request = || {
                tries.set(tries.get() + 1);
                let done = tries.get() >= last;
                async move { if done { Ok(1) } else { Err(error(code, None)) } }
            };
            let (deadline, call) = (Instant::now() + patience, Call::new("list", "nodes"));
            let mut backoff = Backoff::new((Duration::from_millis(1), Duration::from_millis(2)));
            let asked =
                ask_again_before(deadline, &mut backoff, &metrics, call, request, is_busy).await;
            (asked.map_err(|failed| failed.code), tries.get())
        };
        let long = Duration::from_secs(600);
        assert_eq!(asked(4, 429, long).await, (Ok(1), 4));
        assert_eq!(asked(4, 422, long).await, (Err(422), 1));
        let (answer, tries) = asked(u32::MAX, 429, Duration::from_millis(20)).await;
        assert!(answer == Err(429) && tries < 100, "{answer:?} {tries}");
    }

    #[test]
    fn a_pause_doubles_up_to_the_longest_and_is_not_the_same_for_all() {
        let waits = (Duration::from_secs(1), Duration::from_secs(60));
        for (failures, full) in [(0, 1), (1, 2), (5, 32), (6, 60), (u32::MAX, 60)] {
            let full = Duration::from_secs(full);
            assert!((full / 2..=full).contains(&pause(waits, failures)), "{failures}");
        }
        let all: std::collections::BTreeSet<_> = (0..50).map(|_| pause(waits, 6)).collect();
        assert!(all.len() > 10, "{all:?}");
    }
}
