//! The MachineConfigs of a cluster, without what they hold.

use super::config::ConfigMeta;
use super::pool::Pool;
use crate::labels::Labels;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

/// The MachineConfigs, by name, without what they hold. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Configs(Arc<Known>);

#[derive(Debug, Clone, Default)]
struct Known {
    by_name: BTreeMap<Arc<str>, Arc<ConfigMeta>>,
    /// Their names, by what pools select them by. Many have the same labels, and there are
    /// many pools.
    by_labels: BTreeMap<Arc<Labels>, Arc<BTreeSet<Arc<str>>>>,
}

impl Deref for Configs {
    type Target = BTreeMap<Arc<str>, Arc<ConfigMeta>>;

    fn deref(&self) -> &Self::Target {
        &self.0.by_name
    }
}

impl FromIterator<(String, Arc<ConfigMeta>)> for Configs {
    fn from_iter<I: IntoIterator<Item = (String, Arc<ConfigMeta>)>>(all: I) -> Configs {
        let mut configs = Configs::default();
        for (name, config) in all {
            configs.insert(name, config);
        }
        configs
    }
}

impl Configs {
    /// The one of a name.
    pub fn get(&self, name: &str) -> Option<&Arc<ConfigMeta>> {
        self.0.by_name.get(name)
    }

    /// The name and the `resourceVersion` of the one of a name.
    pub fn key(&self, name: &str) -> Option<(Arc<str>, Arc<str>)> {
        let (name, config) = self.0.by_name.get_key_value(name)?;
        Some((Arc::clone(name), Arc::clone(&config.version)))
    }

    /// Whether there is one of a name.
    pub fn contains_key(&self, name: &str) -> bool {
        self.0.by_name.contains_key(name)
    }

    /// Notes one that is new or says something else; what it was before.
    pub fn insert(
        &mut self,
        name: impl Into<Arc<str>>,
        config: Arc<ConfigMeta>,
    ) -> Option<Arc<ConfigMeta>> {
        let known = Arc::make_mut(&mut self.0);
        let name = name.into();
        let before = known.by_name.insert(Arc::clone(&name), Arc::clone(&config));
        if let Some(before) = &before {
            known.deselect(&name, before);
        }
        let labels = match known.by_labels.get_key_value(&config.labels) {
            Some((labels, _)) => Arc::clone(labels),
            None => Arc::new(config.labels.clone()),
        };
        Arc::make_mut(known.by_labels.entry(labels).or_default()).insert(name);
        before
    }

    /// Forgets one; what it was.
    pub fn remove(&mut self, name: &str) -> Option<Arc<ConfigMeta>> {
        if !self.contains_key(name) {
            return None;
        }
        let known = Arc::make_mut(&mut self.0);
        let before = known.by_name.remove(name)?;
        known.deselect(name, &before);
        Some(before)
    }

    /// The names of those that a pool selects, with their labels.
    pub(super) fn selected_by(&self, pool: &Pool) -> impl Iterator<Item = (&Labels, &str)> {
        let selected = move |labels: &Labels| pool.configs.matches(labels);
        let groups = self.0.by_labels.iter().filter(move |(labels, _)| selected(labels));
        groups.flat_map(|(labels, names)| names.iter().map(move |name| (&**labels, &**name)))
    }
}

impl Known {
    fn deselect(&mut self, name: &str, config: &ConfigMeta) {
        let Some(names) = self.by_labels.get_mut(&config.labels) else { return };
        Arc::make_mut(names).remove(name);
        if names.is_empty() {
            self.by_labels.remove(&config.labels);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(label: &str) -> Arc<ConfigMeta> {
        let labels = [("role".to_owned(), label.to_owned())].into();
        Arc::new(ConfigMeta { labels, ..ConfigMeta::default() })
    }

    /// The names with a label, by what pools can select.
    fn with(configs: &Configs, label: &str) -> Vec<String> {
        let labels: Labels = [("role".to_owned(), label.to_owned())].into();
        configs
            .0
            .by_labels
            .get(&labels)
            .into_iter()
            .flat_map(|it| it.iter().map(ToString::to_string))
            .collect()
    }

    #[test]
    fn what_pools_can_select_follows_every_change_of_labels() {
        let mut configs = Configs::default();
        configs.insert("a", config("worker"));
        configs.insert("b", config("worker"));
        assert_eq!(with(&configs, "worker"), ["a", "b"]);
        let earlier = configs.clone();
        configs.insert("a", config("gpu"));
        assert_eq!(
            (with(&configs, "worker"), with(&configs, "gpu")),
            (vec!["b".to_owned()], vec!["a".to_owned()])
        );
        assert!(configs.remove("b").is_some());
        assert_eq!(with(&configs, "worker"), [""; 0]);
        assert!(configs.remove("a").is_some() && configs.remove("a").is_none());
        assert!(configs.0.by_labels.is_empty() && configs.is_empty());
        assert_eq!(with(&earlier, "worker"), ["a", "b"]);
    }
}
