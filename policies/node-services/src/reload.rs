//! What CRI-O reads again when it is reloaded, and which values it cannot use.
//!
//! For one of these it gives up the whole reload, so that the registries, which come later in it, are
//! not read again either. Only its log says so; and once it ends, it does not start again.

use crate::regex;
use tread_policy_formats::{Table, Value};

/// A key that a reload reads again: a string, of which CRI-O may not take all.
pub(crate) struct Setting {
    /// Its table, below `crio`.
    pub(crate) section: &'static str,
    pub(crate) key: &'static str,
    /// Why a value that is no string is refused.
    no_string: &'static str,
    usable: Usable,
}

/// Which strings are of use, as far as that can be told.
enum Usable {
    All,
    /// Why others are refused.
    Some(fn(&str) -> bool, &'static str),
}

macro_rules! refused {
    ($what:literal) => {
        concat!(
            $what,
            "; with it CRI-O would give up its whole reload, say so in its log only, and not start \
             later. Correct it"
        )
    };
}

const LOG_LEVEL: &str = refused!(
    "crio.runtime.log_level is none of trace, debug, info, warn, warning, error, fatal and panic"
);
const LOG_FILTER: &str = refused!(
    "crio.runtime.log_filter is no regular expression that CRI-O takes: look for a bracket without its \
     other half, for a * + or ? that repeats nothing, and for (?= (?! (?<= or (?<!"
);
const PAUSE_IMAGE: &str = refused!(
    "crio.image.pause_image is no name of an image, such as registry.example.com/pause:3.10"
);
const LEVEL_NO_STRING: &str = refused!("crio.runtime.log_level is no string in quotes");
const FILTER_NO_STRING: &str = refused!("crio.runtime.log_filter is no string in quotes");
const COMMAND_NO_STRING: &str = refused!("crio.image.pause_command is no string in quotes");
const IMAGE_NO_STRING: &str = refused!("crio.image.pause_image is no string in quotes");
const AUTH_NO_STRING: &str = refused!("crio.image.pause_image_auth_file is no string in quotes");

/// All that these are refused for. None quotes a value.
pub(crate) const REASONS: &[&str] = &[
    LOG_LEVEL,
    LOG_FILTER,
    PAUSE_IMAGE,
    LEVEL_NO_STRING,
    FILTER_NO_STRING,
    COMMAND_NO_STRING,
    IMAGE_NO_STRING,
    AUTH_NO_STRING,
];

/// Not here, though CRI-O's manual names it too: `default_runtime`. Once CRI-O starts again it asks the
/// default runtime of then for the containers of pods without a runtime class, and takes those for dead
/// that another runtime started.
pub(crate) const SETTINGS: [Setting; 5] = [
    Setting {
        section: "runtime",
        key: "log_level",
        no_string: LEVEL_NO_STRING,
        usable: Usable::Some(is_level, LOG_LEVEL),
    },
    Setting {
        section: "runtime",
        key: "log_filter",
        no_string: FILTER_NO_STRING,
        usable: Usable::Some(|text| !regex::is_broken(text), LOG_FILTER),
    },
    Setting {
        section: "image",
        key: "pause_image",
        no_string: IMAGE_NO_STRING,
        usable: Usable::Some(may_be_image, PAUSE_IMAGE),
    },
    // CRI-O asks for the file that this one names, which may be there by then.
    Setting {
        section: "image",
        key: "pause_image_auth_file",
        no_string: AUTH_NO_STRING,
        usable: Usable::All,
    },
    Setting {
        section: "image",
        key: "pause_command",
        no_string: COMMAND_NO_STRING,
        usable: Usable::All,
    },
];

/// Whether a key of this table is one of these.
pub(crate) fn is_one(section: &str, key: &str) -> bool {
    SETTINGS.iter().any(|it| it.section == section && it.key == key)
}

/// Why a file is refused: it comes with a value that CRI-O cannot use. `is_set_later` says of one of
/// the settings whether another file stands in for it.
pub(crate) fn fault(
    before: Option<&Table>,
    after: &Table,
    is_set_later: &dyn Fn(usize) -> bool,
) -> Option<&'static str> {
    for (number, setting) in SETTINGS.iter().enumerate() {
        let Some(value) = value(after, setting) else { continue };
        if before.and_then(|before| self::value(before, setting)) == Some(value) {
            continue;
        }
        let Some(text) = value.as_text() else { return Some(setting.no_string) };
        if let Usable::Some(is_usable, reason) = setting.usable
            && !is_usable(text)
            && !is_set_later(number)
        {
            return Some(reason);
        }
    }
    None
}

fn value<'a>(table: &'a Table, setting: &Setting) -> Option<&'a Value> {
    table.get("crio")?.as_table()?.get(setting.section)?.as_table()?.get(setting.key)
}

fn is_level(text: &str) -> bool {
    let levels = ["trace", "debug", "info", "warn", "warning", "error", "fatal", "panic"];
    levels.iter().any(|level| text.eq_ignore_ascii_case(level))
}

/// Whether nothing stands in a name that is in none.
fn may_be_image(text: &str) -> bool {
    let is_in_names = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@+[]".contains(&byte);
    !text.is_empty() && text.bytes().all(is_in_names)
}
