//! Orders that root puts into a folder, one file each.

use super::Orders;
use crate::notices::Notices;
use crate::orders::Given;
use crate::progress::Progress;
use crate::tree::{Folder, PathError, Tree};
use futures::future::LocalBoxFuture;
use std::cell::Cell;
use std::io;
use tread_model::digest::Digest;

/// Where they are.
pub(super) const FOLDER: &str = "/var/lib/tread/orders";
const SUFFIX: &str = ".json";
/// What is added to the name of a file that is no order.
const REFUSED: &str = ".refused";
/// More than any order has.
const MOST: u64 = 32 << 20;

/// A folder of root's, with an order in each file: `NAME.json`. They are taken by name, and
/// removed when they have ended.
pub struct Inbox {
    tree: Tree,
    /// The order that was taken last, and the digest of its file.
    taken: Cell<Option<(String, Digest)>>,
}

impl Inbox {
    /// Of this node; the folder is made if it is not there.
    pub fn of(tree: &Tree) -> Result<Inbox, PathError> {
        drop(tree.private_folder(FOLDER)?);
        Ok(Inbox { tree: tree.clone(), taken: Cell::default() })
    }

    fn folder(&self) -> io::Result<Folder> {
        self.tree.private_folder(FOLDER).map_err(io::Error::other)
    }

    /// The first order that is one. What is none is given another name.
    fn first(folder: &Folder) -> io::Result<Option<(Given, Digest)>> {
        let mut names = folder.names()?;
        names.sort();
        for name in names.iter().filter(|name| name.ends_with(SUFFIX)) {
            let bytes = match folder.read(name, MOST) {
                Ok(Some(bytes)) => bytes,
                Ok(None) => continue,
                // A FIFO, a folder, or more than any order has.
                Err(error) => {
                    refuse(folder, name, &error.to_string());
                    continue;
                }
            };
            match Given::read(&bytes) {
                Ok(given) if *name == format!("{}{SUFFIX}", given.id) => {
                    return Ok(Some((given, Digest::of(&bytes))));
                }
                Ok(given) => refuse(folder, name, &format!("its id is {}", given.id)),
                Err(error) => refuse(folder, name, &error.to_string()),
            }
        }
        Ok(None)
    }
}

/// One that keeps its name keeps no order waiting.
fn refuse(folder: &Folder, name: &str, why: &str) {
    tracing::warn!(file = name, why, "this is no order");
    if let Err(error) = folder.replace_own(name, &format!("{name}{REFUSED}")) {
        tracing::warn!(file = name, %error, "it is left as it is; remove it");
    }
}

impl Orders for Inbox {
    fn next(&self) -> LocalBoxFuture<'_, io::Result<Given>> {
        Box::pin(async {
            loop {
                // Somebody may have removed the folder, and made another one.
                let folder = self.folder()?;
                let mut notices = Notices::of(&[&folder])?;
                if let Some((given, digest)) = Inbox::first(&folder)? {
                    self.taken.set(Some((given.id.clone(), digest)));
                    return Ok(given);
                }
                // That a folder is removed is told once nobody has it open.
                drop(folder);
                notices.next().await?;
            }
        })
    }

    fn ended<'o>(
        &'o self,
        id: &'o str,
        _: Option<&'o Progress>,
    ) -> LocalBoxFuture<'o, io::Result<()>> {
        Box::pin(async move {
            let (folder, name) = (self.folder()?, format!("{id}{SUFFIX}"));
            let taken = self.taken.take().filter(|(taken, _)| taken == id);
            let is_another = match taken {
                Some((_, taken)) => {
                    folder.read(&name, MOST)?.is_some_and(|now| Digest::of(&now) != taken)
                }
                None => false,
            };
            match is_another {
                // The file was replaced and never read: it must not look as if it had been carried
                // out.
                true => {
                    refuse(&folder, &name, "an order that has ended has this id; give it another")
                }
                false => folder.remove(&name)?,
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::orders::Does;

    fn text(id: &str) -> Vec<u8> {
        serde_json::to_vec(&Given::new(id, Does::Resume)).unwrap()
    }

    #[tokio::test]
    async fn orders_are_taken_by_name_and_again_until_they_have_ended() {
        let dir = tempfile::tempdir().unwrap();
        let inbox = Inbox::of(&Tree::open(dir.path()).unwrap()).unwrap();
        let at = dir.path().join(FOLDER.trim_start_matches('/'));
        let waits = inbox.next();
        tokio::pin!(waits);
        assert!(futures::future::poll_immediate(&mut waits).await.is_none());
        // Half a file, and one that is complete.
        std::fs::write(at.join("2.next"), "{").unwrap();
        std::fs::write(at.join("2.next"), text("2")).unwrap();
        std::fs::rename(at.join("2.next"), at.join("2.json")).unwrap();
        assert_eq!(waits.await.unwrap().id, "2");
        std::fs::write(at.join("1.json"), text("1")).unwrap();
        assert_eq!(inbox.next().await.unwrap().id, "1");
        assert_eq!(inbox.next().await.unwrap().id, "1");
        inbox.ended("1", None).await.unwrap();
        assert_eq!(inbox.next().await.unwrap().id, "2");
    }

    #[tokio::test]
    async fn an_order_that_is_put_in_the_place_of_one_that_is_carried_out_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let inbox = Inbox::of(&Tree::open(dir.path()).unwrap()).unwrap();
        let at = dir.path().join(FOLDER.trim_start_matches('/'));
        std::fs::write(at.join("1.json"), text("1")).unwrap();
        assert_eq!(inbox.next().await.unwrap().id, "1");
        std::fs::write(at.join("1.json"), [text("1"), b"\n".to_vec()].concat()).unwrap();
        inbox.ended("1", None).await.unwrap();
        assert!(!at.join("1.json").exists() && at.join("1.json.refused").exists());
    }

    #[tokio::test]
    async fn a_folder_that_somebody_removes_is_there_again_and_its_orders_are_taken() {
        let dir = tempfile::tempdir().unwrap();
        let inbox = Inbox::of(&Tree::open(dir.path()).unwrap()).unwrap();
        let at = dir.path().join(FOLDER.trim_start_matches('/'));
        let waits = inbox.next();
        tokio::pin!(waits);
        for _ in 0..2 {
            assert!(futures::future::poll_immediate(&mut waits).await.is_none());
            std::fs::remove_dir_all(&at).unwrap();
            let made = tokio::time::timeout(std::time::Duration::from_secs(60), async {
                while !at.is_dir() {
                    let soon = std::time::Duration::from_millis(10);
                    assert!(tokio::time::timeout(soon, &mut waits).await.is_err());
                }
            });
            made.await.unwrap();
        }
        std::fs::write(at.join("next"), text("1")).unwrap();
        std::fs::rename(at.join("next"), at.join("1.json")).unwrap();
        assert_eq!(waits.await.unwrap().id, "1");
        // It has ended also where the folder is gone by then.
        std::fs::remove_dir_all(&at).unwrap();
        inbox.ended("1", None).await.unwrap();
    }

    #[tokio::test]
    async fn what_is_no_order_is_put_aside_and_the_next_one_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let inbox = Inbox::of(&Tree::open(dir.path()).unwrap()).unwrap();
        let at = dir.path().join(FOLDER.trim_start_matches('/'));
        std::fs::write(at.join("1.json"), "order").unwrap();
        std::fs::write(at.join("2.json"), text("other")).unwrap();
        std::fs::create_dir(at.join("0.json")).unwrap();
        std::fs::write(at.join("3.json"), text("3")).unwrap();
        assert_eq!(inbox.next().await.unwrap().id, "3");
        assert!(at.join("0.json.refused").is_dir());
        assert!(at.join("1.json.refused").exists() && at.join("2.json.refused").exists());
    }

    #[tokio::test]
    async fn what_cannot_be_given_another_name_keeps_no_order_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let inbox = Inbox::of(&Tree::open(dir.path()).unwrap()).unwrap();
        let at = dir.path().join(FOLDER.trim_start_matches('/'));
        // With `.refused` it would be longer than a name may be.
        let long = format!("{}{SUFFIX}", "0".repeat(250));
        std::fs::write(at.join(&long), "order").unwrap();
        std::fs::write(at.join("1.json"), text("1")).unwrap();
        assert_eq!(inbox.next().await.unwrap().id, "1");
        assert!(at.join(&long).exists());
    }
}
