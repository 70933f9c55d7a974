//! Which config each node has, where tread rolls out: by what its agent says in its NodeUpdate.
//! What annotations of the node say proves nothing there, unless OpenShift's daemon came: it writes
//! them, and agents do nothing then.

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
    /// By the node's name: the rendered config, by its annotations.
    annotated: BTreeMap<String, String>,
    /// Whether OpenShift's daemon is there; None: that is not known yet.
    has_operators_daemon: Option<bool>,
}

impl Updates {
    /// Whether all were listed once.
    pub(super) fn is_synced(&self) -> bool {
        self.fold.is_synced() && self.has_operators_daemon.is_some()
    }

    /// Notes whether OpenShift's daemon is there; says whether that is something else than was known.
    pub(super) fn note_operators_daemon(&mut self, is_there: bool) -> bool {
        self.has_operators_daemon.replace(is_there) != Some(is_there)
    }

    /// Notes what the annotations of a node say; None: nothing, or the node is gone.
    pub(super) fn note(&mut self, name: &str, annotated: Option<String>) {
        match annotated {
            Some(config) => drop(self.annotated.insert(name.to_owned(), config)),
            None => drop(self.annotated.remove(name)),
        }
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
        if self.has_operators_daemon == Some(true) {
            return self.annotated.get(name).cloned();
        }
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

    #[test]
    fn while_openshifts_daemon_is_there_a_node_has_what_its_annotations_say() {
        let mut updates = Updates::default();
        let has = |updates: &Updates| updates.current("n", "1");
        updates.take(Event::Apply(update("1", "rendered-a")));
        updates.note("n", Some("rendered-b".to_owned()));
        assert_eq!(has(&updates).as_deref(), Some("rendered-a"));
        for (is_there, is_news, expected) in [
            (false, true, "rendered-a"),
            (false, false, "rendered-a"),
            (true, true, "rendered-b"),
            (false, true, "rendered-a"),
        ] {
            assert_eq!(updates.note_operators_daemon(is_there), is_news);
            assert_eq!(has(&updates).as_deref(), Some(expected));
        }
        updates.note_operators_daemon(true);
        updates.note("n", None);
        assert_eq!(has(&updates), None);
    }
}
