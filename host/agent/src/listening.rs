//! Hearing what is to be done: one question that waits at the service, again and again.

use crate::having::has;
use crate::kept::{Keeps, Kept};
use crate::service::{Service, Unheard};
use http::StatusCode;
use serde::Deserialize;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tread_kube::agents::{FORM, Instructions, WAIT, Wait};
use tread_kube::api::node_update::ConfigName;
use tread_kube::asking::Backoff;
use tread_node::tree::Tree;

/// The service gives up before.
const WITHIN: Duration = Duration::from_secs(330);
/// Before the service is asked again that did not answer.
const LEAST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(60);

/// What was heard last.
#[derive(Debug, Clone)]
pub(crate) enum Heard {
    /// Nothing yet.
    Nothing,
    /// What is to be done.
    Instructions(Arc<Instructions>),
    /// It is of a form that this agent does not know, and why.
    Unknown(String),
}

/// Whether the agent has not reported yet which config the node with this UID has.
fn says_nothing(kept: &Kept, uid: Option<&String>) -> bool {
    kept.current.is_none() || uid.is_some_and(|uid| kept.uid.as_ref() != Some(uid))
}

/// The config that is on the disk by the node's own record, if none was reported yet.
async fn found(tree: &Tree, keeps: &Keeps, uid: Option<&String>) -> Option<ConfigName> {
    if !says_nothing(&keeps.get(), uid) {
        return None;
    }
    let tree = tree.clone();
    tokio::task::spawn_blocking(move || has(&tree)).await.ok().flatten()
}

/// Listens for ever.
pub(crate) async fn listen(
    tree: Tree,
    keeps: Arc<Keeps>,
    service: Arc<Service>,
    heard: watch::Sender<Heard>,
) -> Infallible {
    let mut backoff = Backoff::new((LEAST, MOST));
    let mut seen: Option<String> = None;
    let mut has_warned = false;
    // Of which node it was told last.
    let mut uid: Option<String> = None;
    let mut is_understood = true;
    loop {
        let has = match is_understood {
            true => found(&tree, &keeps, uid.as_ref()).await,
            false => None,
        };
        let asked = Instant::now();
        let wait = Wait { seen: seen.clone(), form: FORM, has };
        let wait = match service.ask(WAIT, &wait, WITHIN).await {
            Ok(answer) => {
                if has_warned {
                    tracing::info!("the service answers again");
                }
                has_warned = false;
                match read(&answer) {
                    Ok((revision, is)) if seen.as_ref() != Some(&revision) => {
                        seen = Some(revision);
                        if let Heard::Instructions(instructions) = &is {
                            uid.clone_from(&instructions.uid);
                        }
                        heard.send_replace(is);
                        backoff.reset();
                        continue;
                    }
                    // The service has nothing new: ask again at once, unless it answered without
                    // waiting.
                    Ok(_) if asked.elapsed() >= LEAST => {
                        backoff.reset();
                        continue;
                    }
                    Ok(_) => backoff.next_wait(),
                    Err(error) => {
                        tracing::error!(error, "the service's answer cannot be read");
                        backoff.next_wait()
                    }
                }
            }
            // An older service refuses a question that says which config the disk has.
            Err(Unheard::Refused { status, .. })
                if status == StatusCode::BAD_REQUEST && wait.has.is_some() =>
            {
                is_understood = false;
                backoff.next_wait()
            }
            Err(error) => {
                // It may be a newer one by now.
                is_understood = true;
                if !has_warned {
                    tracing::warn!(%error, "no orders are heard; it is tried again");
                }
                has_warned = true;
                backoff.next_wait()
            }
        };
        sleep(wait).await;
    }
}

/// What an answer says, and by which name.
fn read(answer: &[u8]) -> Result<(String, Heard), String> {
    #[derive(Deserialize)]
    struct Head {
        revision: String,
        #[serde(default)]
        form: u32,
    }
    // A parser's own message quotes the text that it found, which may be a secret.
    let place =
        |error: serde_json::Error| format!("at line {}, column {}", error.line(), error.column());
    let head: Head = serde_json::from_slice(answer).map_err(place)?;
    let unknown = |why: String| (head.revision.clone(), Heard::Unknown(why));
    if head.form > FORM {
        return Ok(unknown(format!(
            "the order is of form {}, and this agent knows {FORM}: it waits until the agent is upgraded",
            head.form
        )));
    }
    Ok(match serde_json::from_slice::<Instructions>(answer) {
        Ok(instructions) => (head.revision, Heard::Instructions(Arc::new(instructions))),
        Err(error) => unknown(format!(
            "what the service tells cannot be read by this agent ({}): it waits until the agent is upgraded",
            place(error)
        )),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn what_the_disk_has_is_said_until_the_node_of_this_uid_has_said_what_it_has() {
        let current = Some(ConfigName::default());
        let kept = Kept { uid: Some("1".to_owned()), current, ..Kept::default() };
        let says_nothing =
            |kept: &Kept, uid: Option<&str>| says_nothing(kept, uid.map(str::to_owned).as_ref());
        assert!(!says_nothing(&kept, Some("1")) && !says_nothing(&kept, None));
        assert!(says_nothing(&kept, Some("2")), "it registered again");
        assert!(says_nothing(&Kept::default(), None));
    }

    #[test]
    fn what_is_of_a_newer_form_or_cannot_be_read_waits_and_shows_nothing_of_it() {
        let read = |text: &str| read(text.as_bytes());
        let (revision, heard) = read(r#"{"revision":"1","node":"worker-1"}"#).unwrap();
        assert!(revision == "1" && matches!(heard, Heard::Instructions(_)));
        for (text, says) in [
            (r#"{"revision":"2","form":3,"order":"SECRET"}"#, "form 3, and this agent knows 2"),
            (r#"{"revision":"2","node":"a","order":{"stage":"SECRET"}}"#, "cannot be read"),
            (r#"{"revision":"2","node":"a","config":"SECRET"}"#, "upgraded"),
        ] {
            let (revision, heard) = read(text).unwrap();
            let Heard::Unknown(why) = heard else { panic!("{text}") };
            assert!(revision == "2" && why.contains(says) && !why.contains("SECRET"), "{why}");
        }
        for text in ["", "SECRET", r#"{"node":"SECRET"}"#] {
            assert!(!read(text).unwrap_err().contains("SECRET"));
        }
    }
}
