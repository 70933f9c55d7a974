//! Permits between a unit of the host, which asks, and an agent, which answers: by two files
//! in a folder of root's. Whoever of them dies and comes again finds the question, or the
//! answer, where it was.

use super::{Act, NoPermit, Permit, Permits};
use crate::clock::since_boot;
use crate::notices::Notices;
use crate::tree::{Folder, Owner, Tree};
use futures::future::LocalBoxFuture;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::io;
use std::time::Duration;

/// Where both files are.
const FOLDER: &str = "/var/lib/tread/permits";
const QUESTION: &str = "question";
const ANSWER: &str = "answer";
const MOST: u64 = 1 << 16;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// No two questions of a boot have the same.
    pub id: String,
    /// The operation that asks.
    pub operation: String,
    /// What it would do.
    pub act: Act,
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The question.
    pub id: String,
    /// Until when, in milliseconds since the boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// Why it may not be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Whether that is for ever.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends: bool,
}

/// The folder with both files, which is made if it is not there.
fn folder(tree: &Tree) -> io::Result<Folder> {
    tree.private_folder(FOLDER).map_err(io::Error::other)
}

/// Asks by a file, and waits for the answer in another one.
pub struct ByFile {
    tree: Tree,
    operation: String,
    asked: Cell<u64>,
}

impl ByFile {
    /// For an operation.
    pub fn new(tree: &Tree, operation: &str) -> ByFile {
        ByFile { tree: tree.clone(), operation: operation.to_owned(), asked: Cell::new(0) }
    }

    async fn answered(&self, act: Act) -> io::Result<Result<Permit, NoPermit>> {
        self.asked.set(self.asked.get() + 1);
        let (process, now) = (std::process::id(), since_boot().as_nanos());
        let id = format!("{}-{process}-{now}-{}", self.operation, self.asked.get());
        let question = Question { id, operation: self.operation.clone(), act };
        folder(&self.tree)?.remove_own(ANSWER)?;
        let _open = Open { tree: &self.tree, question: &question };
        loop {
            // Somebody may have removed the folder, and the question with it.
            let folder = folder(&self.tree)?;
            let mut notices = Notices::of(&[&folder])?;
            match look::<Answer>(&folder, ANSWER)? {
                Some(answer) if answer.id == question.id => {
                    folder.remove_own(QUESTION)?;
                    folder.remove_own(ANSWER)?;
                    return Ok(permit(answer));
                }
                _ if look::<Question>(&folder, QUESTION)?.as_ref() != Some(&question) => {
                    match put(&folder, QUESTION, &question) {
                        // It was removed in this moment.
                        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                        put => put?,
                    }
                }
                _ => {
                    // The removal of the folder is noticed only once nobody has it open.
                    drop(folder);
                    notices.next().await?;
                }
            }
        }
    }
}

/// A question that stands until it is dropped: whoever asked needs no answer any more then.
struct Open<'o> {
    tree: &'o Tree,
    question: &'o Question,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let taken_back = folder(self.tree).and_then(|folder| {
            match look::<Question>(&folder, QUESTION)?.as_ref() == Some(self.question) {
                true => folder.remove_own(QUESTION),
                false => Ok(()),
            }
        });
        if let Err(error) = taken_back {
            tracing::warn!(%error, "a question that nobody asks any more could not be removed");
        }
    }
}

fn permit(answer: Answer) -> Result<Permit, NoPermit> {
    match answer {
        Answer { refused: Some(why), ends: true, .. } => Err(NoPermit::Never(why)),
        Answer { refused: Some(why), .. } => Err(NoPermit::NotNow(why)),
        Answer { until: Some(until), .. } => Ok(Permit::until(Duration::from_millis(until))),
        // Who is asked says until when.
        Answer { until: None, .. } => {
            Err(NoPermit::NotNow("the permit does not say when it ends".to_owned()))
        }
    }
}

impl Permits for ByFile {
    fn ask(&self, act: Act) -> LocalBoxFuture<'_, Result<Permit, NoPermit>> {
        Box::pin(async {
            let unheard =
                |error| NoPermit::NotNow(format!("nobody could be asked, by {FOLDER}: {error}"));
            self.answered(act).await.map_err(unheard)?
        })
    }
}

/// The other side: questions, and their answers. Somebody may remove the folder at any time:
/// it is made again.
pub struct Questions {
    tree: Tree,
}

impl Questions {
    /// Of this node.
    pub fn of(tree: &Tree) -> Questions {
        Questions { tree: tree.clone() }
    }

    /// What changes about them from now on.
    pub fn notices(&self) -> io::Result<Notices> {
        Notices::of(&[&folder(&self.tree)?])
    }

    /// The question that waits for an answer.
    pub fn open(&self) -> io::Result<Option<Question>> {
        let folder = folder(&self.tree)?;
        let Some(question) = look::<Question>(&folder, QUESTION)? else { return Ok(None) };
        let answer = look::<Answer>(&folder, ANSWER)?;
        Ok(Some(question).filter(|it| answer.is_none_or(|answer| answer.id != it.id)))
    }

    /// Answers it.
    pub fn answer(&self, answer: &Answer) -> io::Result<()> {
        put(&folder(&self.tree)?, ANSWER, answer)
    }

    /// Nobody asks any more.
    pub fn forget(&self) -> io::Result<()> {
        let folder = folder(&self.tree)?;
        folder.remove_own(QUESTION)?;
        folder.remove_own(ANSWER)
    }
}

/// What a file says; nothing if it is not there, or says something else.
fn look<T: DeserializeOwned>(folder: &Folder, name: &str) -> io::Result<Option<T>> {
    // A FIFO, a folder or half a file says nothing either.
    let bytes = folder.read(name, MOST).unwrap_or_default();
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

/// The name has all of it at once.
fn put(folder: &Folder, name: &str, value: &impl Serialize) -> io::Result<()> {
    let next = format!("{name}.next");
    let owner = Owner { mode: 0o600, ..folder.own_stat()?.owner };
    folder.remove_own(&next)?;
    folder.create(&next, &serde_json::to_vec(value)?, owner, &[])?;
    folder.replace_own(&next, name)
}

#[cfg(test)]
mod tests;
