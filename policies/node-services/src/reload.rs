//! What CRI-O reads again when it is reloaded, and which values it cannot use.
//!
//! For one of these it gives up the whole reload, so that the registries, which come later in it, are
//! not read again either. Only its log says so; and once it ends, it does not start again.

use crate::regex;
use crate::says::{Says, says};
use tread_policy_formats::Table;

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

/// Why a change of a file is refused: it comes with a value that CRI-O cannot use, or lets one of another
/// file count. `None` could not be read. `new_text` says of one of the settings which string counts now,
/// and in which file.
pub(crate) fn fault<'f>(
    path: &str,
    before: Option<&Table>,
    after: &Table,
    new_text: &dyn Fn(usize) -> Option<(&'f str, &'f str)>,
) -> Option<String> {
    SETTINGS.iter().enumerate().find_map(|(number, setting)| {
        let key = [setting.section, setting.key];
        let (was, is) = (says(before, key), says(Some(after), key));
        if was == is {
            return None;
        }
        if let Says::Value(value) = &is {
            match (value.as_text(), &setting.usable) {
                // Whichever file counts: CRI-O reads none that holds such a value.
                (None, _) => return Some(setting.no_string.to_string()),
                // It lets no value of another file count.
                (Some(text), Usable::Some(is_usable, _)) if is_usable(text) => return None,
                _ => {}
            }
        }
        let Usable::Some(is_usable, reason) = setting.usable else { return None };
        let (file, text) = new_text(number)?;
        if is_usable(text) {
            None
        } else if file == path {
            Some(reason.to_string())
        } else {
            Some([file, " counts then in place of this file: ", reason].concat())
        }
    })
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
