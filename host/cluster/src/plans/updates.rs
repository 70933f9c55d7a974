//! Which config each node has, where tread rolls out: by what its agent says in its NodeUpdate.
//! What annotations of the node say proves nothing there.

use crate::updates::{current, node_of};
use kube::ResourceExt as _;
use kube::runtime::watcher::Event;
use std::collections::BTreeMap;
use tread_kube::api::NodeUpdate;
use tread_kube::watching::fold::{Fold, Folded};

/// What NodeUpdates say that nodes have.
#[derive(Debug, Default)]
pub(super) struct Updates {
    fold: Fold<String>,
    /// By the node's name: its UID, and the rendered config.
    current: BTreeMap<String, (String, String)>,
}

impl Updates {
    /// Whether all were listed once.
    pub(super) fn is_synced(&self) -> bool {
        self.fold.is_synced()
    }

    /// Takes an event in; the nodes of which it may say something else.
    pub(super) fn take(&mut self, event: Event<NodeUpdate>) -> Vec<String> {
        match self.fold.take(event, |it| it.name_any()) {
            Folded::There(name, update) => {
                match node_of(&update).zip(current(&update)) {
                    Some((uid, has)) => self.current.insert(name.clone(), (uid.to_owned(), has)),
                    None => self.current.remove(&name),
                };
                vec![name]
            }
            Folded::Gone(name) => {
                self.current.remove(&name);
                vec![name]
            }
            Folded::Listed(gone) => {
                gone.iter().for_each(|name| drop(self.current.remove(name)));
                gone
            }
            Folded::Nothing => Vec::new(),
        }
    }

    /// The rendered config of the node of this name and UID.
    pub(super) fn current(&self, name: &str, uid: &str) -> Option<String> {
        let (of, config) = self.current.get(name)?;
        (of == uid).then(|| config.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn update(uid: &str, config: &str) -> NodeUpdate {
        let object = json!({
            "apiVersion": "tread.dev/v1alpha1", "kind": "NodeUpdate",
            "metadata": {"name": "n", "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": uid}]},
            "spec": {"pool": "worker"},
            "status": {"current": {"name": config, "digest": "d"}},
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_node_has_what_the_update_of_its_own_uid_says() {
        let mut updates = Updates::default();
        let has = |updates: &Updates, uid: &str| updates.current("n", uid);
        assert_eq!(updates.take(Event::Apply(update("1", "rendered-a"))), ["n"]);
        assert_eq!(has(&updates, "1").as_deref(), Some("rendered-a"));
        assert_eq!(has(&updates, "2"), None, "another node of its name");
        updates.take(Event::Apply(update("1", "../x")));
        assert_eq!(has(&updates, "1"), None, "no name of a config");
        updates.take(Event::Apply(update("1", "rendered-b")));
        updates.take(Event::Delete(update("1", "rendered-b")));
        assert_eq!(has(&updates, "1"), None);
    }
}
