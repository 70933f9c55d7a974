//! What a node's disk has, by its own record.

use tread_kube::api::node_update::ConfigName;
use tread_node::applied::Applied;
use tread_node::booted::booted;
use tread_node::documents::digest;
use tread_node::tree::Tree;

/// The config that was applied last, or that its machine booted with where none was applied. None:
/// nobody knows, or it was given by hand, under no name of a config.
pub(crate) fn has(tree: &Tree) -> Option<ConfigName> {
    let Some(applied) = Applied::read(tree).ok()? else {
        let booted = booted(tree).ok()??;
        return Some(ConfigName { name: booted.config, digest: booted.digest.to_string() });
    };
    let name = applied.documents.given_as()?.to_owned();
    let digest = applied.documents.config().and_then(|config| digest(&config)).ok()?;
    Some(ConfigName { name, digest: digest.to_string() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

    use super::*;
    use std::collections::BTreeMap;
    use tread_model::joining::{BOOTED, Booted};
    use tread_node::documents::{Document, Documents};
    use tread_node::prepare::Wanted;

    #[test]
    fn a_disk_has_what_was_applied_last_and_before_that_what_its_machine_booted_with() {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::open(dir.path()).unwrap();
        let put = |path: &str, bytes: &[u8]| {
            let path = dir.path().join(path.trim_start_matches('/'));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        };
        assert_eq!(has(&tree), None);
        let text = r#"{"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "metadata": {"name": "a"}, "spec": {"config": {"ignition": {"version": "3.4.0"}}}}"#;
        let documents =
            |name: &str| Documents(vec![Document { name: name.to_owned(), text: text.to_owned() }]);
        let digest = digest(&documents("a").config().unwrap()).unwrap();
        let named = |name: &str| ConfigName { name: name.to_owned(), digest: digest.to_string() };
        let booted = Booted::with("infra", "rendered-infra-1", digest);
        put(BOOTED, &serde_json::to_vec(&booted).unwrap());
        assert_eq!(has(&tree), Some(named("rendered-infra-1")));
        for (name, expected) in
            [("rendered-infra-2.json", Some(named("rendered-infra-2"))), ("config.yaml", None)]
        {
            let applied = Applied::new(documents(name), BTreeMap::new(), BTreeMap::new());
            let target = applied.target();
            let Wanted::File { bytes, .. } = &target.wanted else { panic!("it is a file") };
            put(&target.path, bytes);
            assert_eq!(has(&tree), expected, "{name}");
        }
        // What nobody can read says nothing.
        put(&Applied::new(documents("a"), BTreeMap::new(), BTreeMap::new()).target().path, b"{");
        assert_eq!(has(&tree), None);
    }
}
