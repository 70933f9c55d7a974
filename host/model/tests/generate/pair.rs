//! Two configs that have much in common.

use crate::generate::{Json, file, ignition, lists, machine_config, unit, written};
use proptest::prelude::*;

/// Two configs that have much in common; their entries are written alike.
pub(super) fn pair() -> BoxedStrategy<(String, String)> {
    (lists(file(), "path"), lists(unit(), "name"), any::<bool>(), any::<u64>())
        .prop_flat_map(|((old_files, new_files), (old_units, new_units), raw, style)| {
            // An entry is written once, so that both sides have the same text.
            let alike = |list: Json| {
                let Json::List(entries) = list else { panic!("{list:?} is no list") };
                let entries =
                    entries.iter().map(|entry| Json::Raw(written(entry, style).trim().to_owned()));
                Just(Json::List(entries.collect())).boxed()
            };
            let side = |files, units, name| {
                let config = ignition(alike(files), alike(units));
                let config = if raw { config } else { machine_config(name, config) };
                config.prop_map(move |json| written(&json, style))
            };
            (side(old_files, old_units, &["old"]), side(new_files, new_units, &["new"]))
        })
        .boxed()
}
