//! Why a unit can be neither enabled nor disabled.

use crate::tree::PathError;

/// Why a unit can be neither enabled nor disabled. systemctl fails in the same cases.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// A file of a unit cannot be read.
    #[error("the units of the host cannot be read: {0}")]
    Unreadable(#[from] PathError),
    /// No unit can have the name.
    #[error("`{0}` is no name that a unit can have; correct the config")]
    Name(String),
    /// There is no such unit.
    #[error(
        "{0}: there is no such unit, neither on the host nor in the config; add its file, or leave the unit out"
    )]
    Missing(String),
    /// A link leads to a unit that is not there.
    #[error(
        "{unit}: its link leads to {target}, and no such unit is there; remove the link, or add the unit"
    )]
    Dangling {
        /// The unit.
        unit: String,
        /// Where the link leads.
        target: String,
    },
    /// The unit is masked.
    #[error("{unit}: {path} masks it; unmask it first")]
    Masked {
        /// The unit.
        unit: String,
        /// What masks it.
        path: String,
    },
    /// The unit comes and goes with what made it.
    #[error(
        "{unit}: {path} was made by a generator or a program that runs; configure what makes it"
    )]
    Made {
        /// The unit.
        unit: String,
        /// Its file.
        path: String,
    },
    /// It is another name of a unit.
    #[error("{unit}: {path} is a link, another name of a unit; name the unit itself")]
    Link {
        /// The name.
        unit: String,
        /// The link.
        path: String,
    },
    /// Something that is no unit file stands in its place.
    #[error("{unit}: {path} is no unit file; put a file or a link in its place")]
    NoFile {
        /// The unit.
        unit: String,
        /// What is no file.
        path: String,
    },
    /// There are no templates of such units.
    #[error("{0}: there are no templates of units of this type; name one unit")]
    NoTemplate(String),
    /// systemd refuses the file.
    #[error("{path}: line {line} {what}; systemd refuses the file: correct it")]
    Text {
        /// The unit file or drop-in.
        path: String,
        /// Its line.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// A specifier stands for nothing.
    #[error("{unit}: `{text}` in its [Install] section {what}; write what it stands for")]
    Specifier {
        /// The unit.
        unit: String,
        /// What it stands in.
        text: String,
        /// What is wrong with it.
        what: String,
    },
    /// The unit cannot have the other name.
    #[error(
        "{unit}: it cannot have the other name `{alias}` (Alias= in its [Install] section): the type and the instance have to be the same; correct it"
    )]
    Alias {
        /// The unit.
        unit: String,
        /// The other name.
        alias: String,
    },
    /// No unit can want it that has the name.
    #[error("{unit}: `{target}` in its [Install] section is no name of a unit; correct it")]
    Target {
        /// The unit.
        unit: String,
        /// The name.
        target: String,
    },
    /// A template is wanted by one unit.
    #[error(
        "{unit}: it is a template, and {target} cannot want all of its instances; name an instance, or set DefaultInstance= in its [Install] section"
    )]
    NoInstance {
        /// The template.
        unit: String,
        /// Who wants it.
        target: String,
    },
    /// Something else stands where a link would be.
    #[error(
        "{unit}: {path} is there already and is not its link; remove it, or leave the unit as it is"
    )]
    Taken {
        /// The unit.
        unit: String,
        /// Where the link would be.
        path: String,
    },
}
