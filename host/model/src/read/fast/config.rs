//! A MachineConfig or an Ignition config, from its bytes.

use super::cursor::Cursor;
use super::entries::{self, Known};
use crate::config::{NodeConfig, Place};
use crate::read::document::Input;
use crate::read::makeup::{self, Makeup};
use crate::read::side::Side;
use crate::read::{ignition, machine_config, normal};
use std::borrow::Cow;

const POOL: &[u8] = makeup::POOL_KIND.as_bytes();

/// A document that was read.
pub(super) struct Document<'a> {
    /// Its lists are in the order in which they were written.
    pub(super) config: NodeConfig<'a>,
    /// As [`crate::config::Place::config`].
    pub(super) path: &'static str,
    pub(super) makeup: Makeup,
    /// OpenShift's operator made it.
    pub(super) is_generated: bool,
}

impl<'a> Document<'a> {
    /// All that a side is, whose one file this is.
    pub(super) fn into_side(self, input: &Input<'a>) -> Side<'a> {
        let place =
            Place { file: input.name.to_owned(), document: String::new(), config: self.path };
        let config = NodeConfig { places: vec![place], ..self.config };
        Side { config, mirrors: Vec::new(), makeup: self.makeup }
    }
}

/// Reads the only document of a file.
pub(super) fn read<'a>(input: &Input<'a>, known: &Known<'_, 'a>) -> Option<Document<'a>> {
    let mut config = NodeConfig::default();
    let mut cursor = Cursor::new(input.bytes);
    let (path, (makeup, is_generated)) = match object(&mut cursor, known, &mut config) {
        Some(said) => ("spec.config", said),
        None => {
            config = NodeConfig { name: Cow::Borrowed(input.name), ..NodeConfig::default() };
            cursor = Cursor::new(input.bytes);
            ignition_config(&mut cursor, known, &mut config)?;
            ("", (Makeup::Unknown, false))
        }
    };
    cursor.end()?;
    Some(Document { config, path, makeup, is_generated })
}

fn object<'a>(
    cursor: &mut Cursor<'a>,
    known: &Known<'_, 'a>,
    config: &mut NodeConfig<'a>,
) -> Option<(Makeup, bool)> {
    const FIELDS: [&str; 5] = ["apiVersion", "kind", "metadata", "spec", "status"];
    let (mut versioned, mut kind, mut makeup) = (false, false, None);
    cursor.object(&FIELDS, |cursor, field| {
        match field {
            0 => versioned = cursor.text()? == machine_config::MACHINE_CONFIG_API,
            1 => kind = cursor.text()? == "MachineConfig",
            2 => {
                let (name, of, is_generated) = metadata(cursor)?;
                (config.name, makeup) = (name, Some((of, is_generated)));
            }
            3 => spec(cursor, known, config)?,
            _ => _ = cursor.skip()?,
        }
        Some(())
    })?;
    makeup.filter(|_| versioned && kind && !config.name.is_empty())
}

/// The name, what it says of where the config belongs, and whether OpenShift's operator
/// made it.
fn metadata<'a>(cursor: &mut Cursor<'a>) -> Option<(Cow<'a, str>, Makeup, bool)> {
    let (mut name, mut role, mut owned, mut is_generated) = (None, None, false, false);
    cursor.any_object(|cursor, field| {
        match field {
            "name" => name = Some(cursor.text()?).filter(|name| !normal::is_odd(name)),
            "labels" if cursor.rest().first() == Some(&b'{') => {
                cursor.any_object(|cursor, label| {
                    let value = cursor.text()?;
                    if label == machine_config::ROLE_LABEL {
                        role = Some(value).filter(|role| !normal::is_odd(role));
                        role.as_ref()?;
                    }
                    Some(())
                })?;
            }
            "labels" => return None,
            "annotations" if cursor.rest().first() == Some(&b'{') => {
                cursor.any_object(|cursor, annotation| {
                    if annotation == machine_config::GENERATED_BY {
                        is_generated = !cursor.text()?.is_empty();
                    } else {
                        _ = cursor.skip()?;
                    }
                    Some(())
                })?;
            }
            "ownerReferences" => {
                let start = cursor.rest();
                cursor.skip()?;
                owned = memchr::memmem::find(cursor.since(start)?, POOL).is_some();
            }
            _ => _ = cursor.skip()?,
        }
        Some(())
    })?;
    let name = name?;
    let makeup = makeup::of_config(&name, None, role.as_deref());
    // Only the diagnosing reader finds out which owner it is.
    let doubtful = owned && !matches!(makeup, Makeup::Rendered(_));
    (!doubtful).then_some((name, makeup, is_generated))
}

fn spec<'a>(
    cursor: &mut Cursor<'a>,
    known: &Known<'_, 'a>,
    config: &mut NodeConfig<'a>,
) -> Option<()> {
    const FIELDS: [&str; 7] = [
        "config",
        "osImageURL",
        "kernelArguments",
        "kernelType",
        "extensions",
        "fips",
        "baseOSExtensionsContainerImage",
    ];
    cursor.object(&FIELDS, |cursor, field| {
        match field {
            0 => ignition_config(cursor, known, config)?,
            1 => config.os_image = cursor.text()?,
            2 => {
                for text in entries::texts(cursor)? {
                    kernel_argument(text, &mut config.kernel_arguments)?;
                }
            }
            3 => config.kernel_type = normal::kernel_type(&cursor.text()?)?,
            4 => config.extensions = entries::texts(cursor)?,
            5 => config.fips = cursor.boolean()?,
            _ => _ = cursor.text()?,
        }
        Some(())
    })
}

fn kernel_argument<'a>(text: Cow<'a, str>, tokens: &mut Vec<Cow<'a, str>>) -> Option<()> {
    match text {
        Cow::Borrowed(text) => normal::kernel_arguments(text, tokens),
        Cow::Owned(text) => {
            let mut own = Vec::new();
            normal::kernel_arguments(&text, &mut own)?;
            tokens.extend(own.into_iter().map(|token| Cow::Owned(token.into_owned())));
            Some(())
        }
    }
}

fn ignition_config<'a>(
    cursor: &mut Cursor<'a>,
    known: &Known<'_, 'a>,
    config: &mut NodeConfig<'a>,
) -> Option<()> {
    const FIELDS: [&str; 5] = ["ignition", "storage", "systemd", "passwd", "kernelArguments"];
    let mut versioned = false;
    cursor.object(&FIELDS, |cursor, field| {
        match field {
            0 => versioned = version(cursor)?,
            1 => storage(cursor, known, config)?,
            2 => cursor.object(&["units"], |cursor, _| {
                config.units = entries::list(cursor, known.units)?;
                Some(())
            })?,
            3 => cursor.object(&["users", "groups"], |cursor, field| {
                match field {
                    0 => config.users = entries::users(cursor)?,
                    _ => cursor.empty_list()?,
                }
                Some(())
            })?,
            _ => cursor.empty_object()?,
        }
        Some(())
    })?;
    versioned.then_some(())
}

fn version(cursor: &mut Cursor<'_>) -> Option<bool> {
    const FIELDS: [&str; 5] = ["version", "config", "proxy", "security", "timeouts"];
    let mut supported = false;
    cursor.object(&FIELDS, |cursor, field| {
        match field {
            0 => supported = ignition::is_supported(&cursor.text()?),
            _ => cursor.empty_object()?,
        }
        Some(())
    })?;
    Some(supported)
}

fn storage<'a>(
    cursor: &mut Cursor<'a>,
    known: &Known<'_, 'a>,
    config: &mut NodeConfig<'a>,
) -> Option<()> {
    const FIELDS: [&str; 7] =
        ["files", "directories", "disks", "filesystems", "links", "luks", "raid"];
    cursor.object(&FIELDS, |cursor, field| {
        match field {
            0 => config.files = entries::list(cursor, known.files)?,
            _ => cursor.empty_list()?,
        }
        Some(())
    })
}
