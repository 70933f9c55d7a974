//! Waits until the cluster has said all that a preview needs. Whoever waits is
//! told for what, and nobody waits for what will never come.

use super::connect::{INSTALLS, in_words};
use crate::shipped::shipped;
use anyhow::{Result, bail};
use kube::Client;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};
use tread_cluster::listed;
use tread_cluster::plans::Previewer;
use tread_cluster::policies::current::Published;
use tread_console::print::warn;
use tread_kube::asking::{CallOutcome, Failed};
use tread_kube::watching::Watches;

/// When somebody who waits is shown for what, and how long after that again, if
/// it is something else by then.
const SHOWN: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(15));
/// What is forbidden is told together, unless the rest takes longer than this.
const TOGETHER: Duration = Duration::from_secs(2);
/// How long anything may fail before it is given up, and how often it is looked whether tread runs.
const GIVE_UP: Duration = Duration::from_secs(18);
/// How many questions to kubectl are written out.
const MOST_ASKED: usize = 3;
/// How long nothing at all may become of it.
const NO_NEWS: Duration = Duration::from_secs(60);

/// Waits until a preview can be made.
pub(super) async fn until_ready(
    previewer: &Previewer,
    policies: &Published,
    watches: &Watches,
    client: &Client,
) -> Result<()> {
    let ready = previewer.ready();
    tokio::pin!(ready);
    let (mut watched, mut policies) = (watches.subscribe(), policies.clone());
    let begun = Instant::now();
    let (mut shown, mut show_at) = (Vec::new(), begun + SHOWN.0);
    let (mut waiting, mut changed_at) = (Vec::new(), begun);
    let mut give_up_at = begun + GIVE_UP;
    loop {
        let read = watches.reads_changed();
        is_installed(watches)?;
        is_allowed(watches, begun + TOGETHER)?;
        let now = Instant::now();
        let before = std::mem::replace(&mut waiting, waiting_for(watches, &policies));
        if before != waiting {
            changed_at = now;
        }
        if now >= show_at && shown != waiting {
            warn(&format!("waiting for the cluster:\n  {}", waiting.join("\n  ")));
            shown.clone_from(&waiting);
            show_at = now + SHOWN.1;
        }
        if now >= give_up_at {
            give_up_at = now + GIVE_UP;
            // Without tread nothing will come, whatever else fails for a moment.
            is_served(client).await?;
            let all = watches.subscribe().borrow().clone();
            let failing = all.values().any(|it| it.error.is_some() && !it.synced);
            if failing || !watches.read_errors().is_empty() {
                bail!("the cluster does not say what is needed:\n  {}", waiting.join("\n  "));
            }
        }
        if now >= changed_at + NO_NEWS {
            bail!(
                "nothing came of it for {} seconds; see whether the cluster answers at all \
                 (`kubectl get --raw /readyz`):\n  {}",
                NO_NEWS.as_secs(),
                waiting.join("\n  ")
            );
        }
        let show_at = (shown != waiting).then_some(show_at);
        let next = [show_at, Some(give_up_at), Some(begun + TOGETHER), Some(changed_at + NO_NEWS)];
        let next = next.into_iter().flatten().filter(|at| *at > now).min();
        tokio::select! {
            () = &mut ready => return Ok(()),
            Ok(()) = watched.changed() => {}
            Ok(()) = policies.changed() => {}
            () = read => {}
            () = sleep_until(next.unwrap_or(now + SHOWN.0)) => {}
        }
    }
}

/// What is not known yet, in words.
fn waiting_for(watches: &Watches, policies: &Published) -> Vec<String> {
    let said = [watches.waiting(), watches.reads()].concat();
    match (said.is_empty(), policies.borrow().settled) {
        (false, _) => said,
        (true, false) => vec!["policies: some are still being loaded".to_owned()],
        (true, true) => vec!["plans: what is pending there is not planned yet".to_owned()],
    }
}

/// Without tread nobody says who decides, and waiting for it would have no end.
fn is_installed(watches: &Watches) -> Result<()> {
    let all = watches.subscribe().borrow().clone();
    if all.get("disruptionpolicies").is_some_and(|it| it.not_installed) {
        bail!(
            "tread is not installed in this cluster, so it is not known who decides there: \
             {INSTALLS} says how to install it, and `tread plan OLD NEW` plans without a cluster"
        );
    }
    Ok(())
}

/// What is forbidden stays so, however long one waits.
fn is_allowed(watches: &Watches, wait_until: Instant) -> Result<()> {
    let all = watches.subscribe().borrow().clone();
    let of_watches =
        all.iter().filter_map(|(name, it)| Some(((*name).to_owned(), it.error.clone()?)));
    let mut forbidden: Vec<(String, Failed)> = of_watches.chain(watches.read_errors()).collect();
    let is_unknown =
        |(_, failed): &&(String, Failed)| failed.outcome == CallOutcome::Unauthenticated;
    if let Some((_, failed)) = forbidden.iter().find(is_unknown) {
        bail!("{}", in_words(failed));
    }
    forbidden.retain(|(_, failed)| failed.outcome == CallOutcome::Forbidden);
    let forbidden: Vec<(String, Failed)> =
        forbidden.into_iter().map(|(what, failed)| (format!("{what}: {failed}"), failed)).collect();
    let all_answered = all.values().all(|it| it.synced || it.error.is_some());
    if forbidden.is_empty() || !all_answered && Instant::now() < wait_until {
        return Ok(());
    }
    bail!("{}", may_not_read(&forbidden));
}

/// What to do where the API server forbids it: what is said of each, and the call.
pub(super) fn may_not_read(forbidden: &[(String, Failed)]) -> String {
    let said: Vec<&str> = forbidden.iter().map(|(said, _)| said.as_str()).collect();
    let mut text = format!(
        "you may not read what tread reads, which `tread plan -f` plans with: an admin can bind \
         tread's ClusterRole tread-read.NAMESPACE to you, which only reads; `tread plans` and warnings need no \
         such rights:\n  {}",
        said.join("\n  ")
    );
    let mut ask: Vec<String> = forbidden.iter().filter_map(|(_, failed)| failed.can_i()).collect();
    ask.dedup();
    let more = ask.len() > MOST_ASKED;
    ask.truncate(MOST_ASKED);
    if !ask.is_empty() {
        text.push_str(&format!("\nto see when you may:\n  {}", ask.join("\n  ")));
    }
    if more {
        text.push_str("\nand so for the others");
    }
    text
}

/// Whether the policies that come with tread are listed, which is what
/// `tread serve` does first.
async fn is_served(client: &Client) -> Result<()> {
    // Whatever is wrong with that, the watches say.
    let there = timeout(SHOWN.0, listed::policies(client.clone())).await;
    let Ok(Ok(there)) = there else { return Ok(()) };
    let sources = there.iter().filter_map(|it| it.object.spec.source.as_ref()?.builtin.as_deref());
    let sources: Vec<&str> = sources.collect();
    let shipped = shipped()?.builtins;
    match shipped.iter().find(|it| !sources.contains(&it.name)) {
        None => Ok(()),
        Some(missing) => bail!(
            "the cluster lists no policy {}, which comes with tread, so it is not known who decides \
             there: `tread serve` lists it, so see whether that runs, and is as new as this program",
            missing.name
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tread_kube::asking::{Call, ask};
    use tread_kube::metrics::Metrics;
    use tread_test_bed::refusal;

    #[tokio::test]
    async fn what_is_forbidden_comes_with_the_question_whether_it_is_allowed_by_now() {
        let failed = async |call: Call, kind: &str, group: &str| {
            let details = json!({"kind": kind, "group": group});
            let no = refusal(json!({"code": 403, "message": "no", "details": details}));
            let answer = std::future::ready(Err::<(), _>(no));
            let failed = ask(&Metrics::new(), call, answer).await.unwrap_err();
            (format!("{kind}: {failed}"), failed)
        };
        let get = Call::new("get", "configmaps").within("time");
        let one = failed(get, "configmaps", "").await;
        let list = || Call::new("list", "machineconfigs");
        let all = failed(list(), "machineconfigs", "machineconfiguration.openshift.io").await;
        let text = may_not_read(&[one, all]);
        for line in [
            "  configmaps: no",
            "  kubectl auth can-i get configmaps -n time",
            "  kubectl auth can-i list machineconfigs.machineconfiguration.openshift.io",
        ] {
            assert!(text.lines().any(|it| it == line), "{text}");
        }
        let mut many = Vec::new();
        for number in 0..5 {
            many.push(failed(list(), &format!("kind{number}"), "example.com").await);
        }
        let text = may_not_read(&many);
        assert_eq!(text.matches("kubectl auth can-i").count(), MOST_ASKED, "{text}");
        assert!(text.ends_with("and so for the others"), "{text}");
    }
}
