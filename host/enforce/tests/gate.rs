//! Before the writes of one object, and after what they are based on was read.

use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// It ends a test that would hang.
const LONG: Duration = Duration::from_secs(600);

/// Each write of one object by this verb waits here for its turn.
pub(crate) struct Gate {
    turns: mpsc::Receiver<oneshot::Sender<()>>,
    answers: Arc<Mutex<Vec<Option<u16>>>>,
}

impl Gate {
    /// What asks as `client` does, but for the writes of the object with this path.
    pub(crate) fn before(client: &Client, verb: Method, path: String) -> (Gate, Client) {
        let (waits, turns) = mpsc::channel(16);
        let answers: Arc<Mutex<Vec<Option<u16>>>> = Arc::default();
        let (to, codes) = (client.clone(), Arc::clone(&answers));
        let service = tower::service_fn(move |request: Request<Body>| {
            let is_it = request.method() == verb && request.uri().path() == path;
            let (to, waits, codes) = (to.clone(), waits.clone(), Arc::clone(&codes));
            async move {
                if !is_it {
                    return to.send(request).await;
                }
                let (turn, comes) = oneshot::channel();
                // Where nobody looks any more, nobody is to be waited for.
                if waits.send(turn).await.is_ok() {
                    let _ = comes.await;
                }
                let answer = to.send(request).await;
                let code = answer.as_ref().ok().map(|answer| answer.status().as_u16());
                codes.lock().unwrap().push(code);
                answer
            }
        });
        (Gate { turns, answers }, Client::new(service, client.default_namespace()))
    }

    /// A write that has come, and goes on when the answer is dropped.
    pub(crate) async fn waits(&mut self) -> oneshot::Sender<()> {
        let turn = tokio::time::timeout(LONG, self.turns.recv()).await;
        turn.unwrap().unwrap()
    }

    /// What so many were answered that went on, once they are; none: there was no answer.
    pub(crate) async fn answered(&self, count: usize) -> Vec<Option<u16>> {
        tread_test_bed::eventually("it is answered", async || {
            Some(self.answers.lock().unwrap().clone()).filter(|answers| answers.len() >= count)
        })
        .await
    }

    /// Nobody waits any more.
    pub(crate) fn open(self) -> Arc<Mutex<Vec<Option<u16>>>> {
        self.answers
    }
}
