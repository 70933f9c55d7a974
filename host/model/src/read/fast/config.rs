//! A MachineConfig or an Ignition config, from its bytes.

use super::cursor::Cursor;
use super::entries::{self, Known};
use crate::config::NodeConfig;
use crate::read::{Input, ignition, machine_config, normal};
use std::borrow::Cow;

/// A document that was read.
pub(super) struct Document<'a> {
    /// Its lists are in the order in which they were written.
    pub(super) config: NodeConfig<'a>,
    /// As [`crate::config::Place::config`].
    pub(super) path: &'static str,
}

/// Reads the only document of a file.
pub(super) fn read<'a>(input: &Input<'a>, known: &Known<'_, 'a>) -> Option<Document<'a>> {
    let mut config = NodeConfig::default();
    let mut cursor = Cursor::new(input.bytes);
    let path = match object(&mut cursor, known, &mut config) {
        Some(()) => "spec.config",
        None => {
            config = NodeConfig { name: Cow::Borrowed(input.name), ..NodeConfig::default() };
            cursor = Cursor::new(input.bytes);
            ignition_config(&mut cursor, known, &mut config)?;
            ""
        }
    };
    cursor.end()?;
    Some(Document { config, path })
}

fn object<'a>(
    cursor: &mut Cursor<'a>,
    known: &Known<'_, 'a>,
    config: &mut NodeConfig<'a>,
) -> Option<()> {
    const FIELDS: [&str; 5] = ["apiVersion", "kind", "metadata", "spec", "status"];
    let (mut versioned, mut kind) = (false, false);
    cursor.object(&FIELDS, |cursor, field| {
        match field {
            0 => versioned = cursor.text()? == machine_config::API_VERSION,
            1 => kind = cursor.text()? == "MachineConfig",
            2 => config.name = name(cursor)?,
            3 => spec(cursor, known, config)?,
            _ => _ = cursor.skip()?,
        }
        Some(())
    })?;
    (versioned && kind && !config.name.is_empty()).then_some(())
}

fn name<'a>(cursor: &mut Cursor<'a>) -> Option<Cow<'a, str>> {
    let mut name = None;
    cursor.any_object(|cursor, field| {
        match field {
            "name" => name = Some(cursor.text()?),
            "labels" if cursor.rest().first() == Some(&b'{') => {
                cursor.any_object(|cursor, _| cursor.text().map(|_| ()))?;
            }
            "labels" => return None,
            _ => _ = cursor.skip()?,
        }
        Some(())
    })?;
    name
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
