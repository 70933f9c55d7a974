//! How several configs become one node config.

use super::layer::{Layer, LayerFile, LayerOwner, LayerUnit, LayerUser, Part};
use super::nodes::OneAtEachPath;
use super::normal;
use crate::config::{Dropin, Fault, File, Fixed, KernelType, NodeConfig, Unit, User};
use crate::contents::{DecodeError, Decoder};
use crate::ignition::{Shape, merge as merge_values, shape_at};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The name of what configs of these names are merged to.
pub(super) fn joined<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let mut all = String::new();
    for name in names {
        if !all.is_empty() {
            all.push('+');
        }
        all.push_str(name);
    }
    all
}

/// One node config out of all, the later ones on top of the earlier ones.
pub(super) fn merge(layers: Vec<Layer>) -> NodeConfig<'static> {
    let name = joined(layers.iter().map(|layer| layer.name.as_str()));
    let mut files = BTreeMap::new();
    let mut units = BTreeMap::new();
    let mut users = BTreeMap::new();
    let mut fixed = BTreeMap::new();
    let mut node = NodeConfig::default();
    let nodes = OneAtEachPath::of(&layers);
    // What the operator's templates say of the image counts where no admin says anything.
    let mut image = None;
    for (number, layer) in layers.into_iter().enumerate() {
        nodes.displaced(&layer).iter().for_each(|path| drop(files.remove(path.as_str())));
        put(&mut files, layer.files, |file| &file.file.path, put_file);
        put(&mut units, layer.units, |unit| &unit.unit.name, put_unit);
        put(&mut users, layer.users, |user| &user.user.name, put_user);
        node.kernel_arguments.extend(layer.kernel_arguments);
        node.extensions.extend(layer.extensions);
        // Once a config sets another kernel, `default` in a later one does not take it back.
        if let Some(other) = layer.kernel_type.filter(|it| *it != KernelType::Default) {
            node.kernel_type = other;
        }
        if layer.is_generated {
            node.os_image = layer.os_image.map_or(node.os_image, Cow::Owned);
        } else {
            replace(&mut image, layer.os_image);
        }
        node.fips |= layer.fips;
        // Ignition parses each config by itself, so that a fault counts even where a
        // later config replaces the entry.
        node.faults.extend(layer.faults);
        node.notes.extend(layer.notes.iter().map(|note| format!("{}, {note}", layer.name)));
        for (part, value) in layer.fixed {
            fixed.entry(part).or_insert_with(Vec::new).push((number, value));
        }
    }
    node.os_image = image.map_or(node.os_image, Cow::Owned);
    normal::sort(&mut node.extensions);
    node.name = Cow::Owned(name);
    let mut decoder = Decoder::default();
    node.files = files
        .into_values()
        .map(|file| finished_file(file, &mut decoder, &mut node.faults))
        .collect();
    node.units = units.into_values().map(finished_unit).collect();
    node.users = users.into_values().map(finished_user).collect();
    let fixed = fixed.into_iter().filter_map(|(part, values)| {
        let stay = |(number, value)| nodes.staying(part, number, value);
        finished_part(part, merge_values(values.into_iter().map(stay).collect(), part.shape()))
    });
    node.fixed = fixed.collect();
    node.fixed.sort_unstable_by(|a, b| a.field.cmp(&b.field));
    node
}

fn put<T>(
    merged: &mut BTreeMap<Cow<'static, str>, T>,
    entries: Vec<T>,
    key: impl Fn(&T) -> &Cow<'static, str>,
    overlay: impl Fn(&mut T, T),
) {
    for entry in entries {
        match merged.get_mut(key(&entry)) {
            Some(below) => overlay(below, entry),
            None => _ = merged.insert(key(&entry).clone(), entry),
        }
    }
}

/// Puts what `above` sets in the place of what was there.
fn replace<T>(below: &mut Option<T>, above: Option<T>) {
    if above.is_some() {
        *below = above;
    }
}

/// Field by field, as Ignition does: what a config below says of contents and
/// owners stays where the one above says nothing of it.
fn put_file(below: &mut LayerFile, above: LayerFile) {
    below.merged = true;
    below.gzip_below =
        above.gzip.is_none() && (below.gzip_below || below.gzip == Some(true)) || above.gzip_below;
    replace(&mut below.gzip, above.gzip);
    replace(&mut below.hash, above.hash);
    replace(&mut below.overwrite, above.overwrite);
    below.has_source |= above.has_source;
    for (below, above) in [(&mut below.user, above.user), (&mut below.group, above.group)] {
        replace(&mut below.id, above.id);
        replace(&mut below.name, above.name);
    }
    let (there, file) = (&mut below.file, above.file);
    replace(&mut there.contents.url, file.contents.url);
    replace(&mut there.mode, file.mode);
    there.appends |= file.appends;
    there.origin = file.origin;
}

fn put_unit(below: &mut LayerUnit, above: LayerUnit) {
    replace(&mut below.mask, above.mask);
    replace(&mut below.unit.contents, above.unit.contents);
    replace(&mut below.unit.enabled, above.unit.enabled);
    // They are sorted once, when everything is merged; of equal names the later one
    // stands behind the earlier one.
    below.unit.dropins.extend(above.unit.dropins);
    below.unit.origin = above.unit.origin;
}

fn put_user(below: &mut LayerUser, above: LayerUser) {
    below.user.ssh_keys.extend(above.user.ssh_keys);
    replace(&mut below.user.password_hash, above.user.password_hash);
    below.rest.extend(above.rest);
    below.user.origin = above.user.origin;
}

/// The end of the field of a fault that follows from several configs.
pub const TOGETHER: &str = "of several configs together";

const GZIP_BELOW: &str = "A config below says gzip of the same file, and the one above says nothing of it. \
                          Releases of OpenShift before 2025 take these contents for gzip, and later ones \
                          do not. Write `compression` in both.";

const NOT_GZIP: &str = "One config says gzip of the same file, and the contents that another one sets \
                        are not gzip. Write contents and `compression` in one of both.";

const OWNER_TWICE: &str = "One config sets it by name and another one by number, and Ignition takes \
                           only one of both. Write the same of both in each.";

/// Whether a file does not say what it has to of its contents; one that says `overwrite`
/// is judged by that.
pub(super) fn needs_source(has_source: bool, overwrite: Option<bool>) -> bool {
    !has_source && overwrite.is_none()
}

fn finished_file(
    file: LayerFile,
    decoder: &mut Decoder,
    node_faults: &mut Vec<Fault>,
) -> File<'static> {
    let LayerFile { mut file, gzip, gzip_below, hash, has_source, overwrite, user, group, merged } =
        file;
    let mut faults = Vec::new();
    let mut owned_by = |field, owner: LayerOwner| {
        let name = owner.name.filter(|name| !name.is_empty());
        if owner.id.is_some() && name.is_some() {
            faults.push((field, OWNER_TWICE.to_owned()));
        }
        owner.id.or(name).unwrap_or(Cow::Borrowed("root"))
    };
    file.user = owned_by("user", user);
    file.group = owned_by("group", group);
    file.contents.url = file.contents.url.filter(|url| !url.is_empty());
    file.contents.gzip = gzip == Some(true);
    if merged {
        if gzip_below {
            faults.push(("contents.compression", GZIP_BELOW.to_owned()));
        }
        match (decoder.decode(&file.contents), &hash) {
            (Err(DecodeError::NotGzip), _) => {
                if !gzip_below {
                    faults.push(("contents.compression", NOT_GZIP.to_owned()));
                }
                // Compared as what it is.
                file.contents.gzip = false;
            }
            (decoded, Some(hash)) => {
                let fault = crate::ignition::hash_fault(hash, decoded.ok().flatten());
                faults.extend(fault.map(|why| ("contents.verification.hash", why)));
            }
            _ => {}
        }
    }
    for (field, reason) in faults {
        let field = format!("storage.files ({}).{field}, {TOGETHER}", file.path);
        let by_parser = reason != GZIP_BELOW;
        node_faults.push(Fault { id: format!("file:{}", file.path), field, reason, by_parser });
    }
    file.contents.gzip &= file.contents.url.is_some();
    // A hash of nothing is rejected for that.
    file.needs_source = hash.is_none() && needs_source(has_source, overwrite);
    file.mode = normal::mode_if_special(file.mode);
    file
}

fn finished_unit(LayerUnit { mut unit, mask }: LayerUnit) -> Unit<'static> {
    unit.mask = mask;
    unit.contents = unit.contents.filter(|text| !text.is_empty());
    // The sort keeps the order of drop-ins of one name.
    unit.dropins.sort_by(|a, b| a.name.cmp(&b.name));
    unit.dropins.dedup_by(|later, earlier| {
        let same = later.name == earlier.name;
        if same {
            replace(&mut earlier.contents, later.contents.take());
        }
        same
    });
    for Dropin { contents, .. } in &mut unit.dropins {
        *contents = contents.take().filter(|text| !text.is_empty());
    }
    unit
}

fn shape_of_a_user() -> Shape {
    match shape_at("passwd.users") {
        Shape::List(of) => Shape::Object(of.fields),
        other => other,
    }
}

fn finished_user(LayerUser { mut user, rest }: LayerUser) -> User<'static> {
    normal::ssh_keys(&mut user.ssh_keys);
    let is_default = |name: &str, value: &Value| match name {
        "noCreateHome" | "noLogInit" | "noUserGroup" | "system" => *value == Value::Bool(false),
        "shouldExist" => *value == Value::Bool(true),
        _ => false,
    };
    let Value::Object(mut rest) = merge_values(rest, shape_of_a_user()) else { return user };
    rest.retain(|name, value| !is_default(name, value));
    let rest = normal::prune(&Value::Object(rest));
    user.rest = rest.map_or_else(String::new, |rest| normal::canonical(&rest));
    user
}

fn finished_part(part: Part, value: Value) -> Option<Fixed> {
    let (id, field, keys) = part.names();
    let mut value = normal::prune(&value)?;
    if let (Value::Array(entries), Some(_)) = (&mut value, keys) {
        // Their order means nothing. What has no key is told apart by all that it says.
        let mut by_key: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for entry in entries.drain(..) {
            let key = part
                .key(|name| entry.get(name))
                .map_or_else(|| normal::canonical(&entry), str::to_owned);
            let same = by_key.entry(key).or_default();
            if same.last() != Some(&entry) {
                same.push(entry);
            }
        }
        entries.extend(by_key.into_values().flatten());
    }
    let value = normal::canonical(&value);
    Some(Fixed { id: id.to_owned(), field: field.to_owned(), value })
}
