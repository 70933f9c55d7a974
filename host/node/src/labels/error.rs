//! Why a label cannot be said.

use crate::tree::PathError;

/// Why a label cannot be said.
#[derive(Debug, thiserror::Error)]
pub enum LabelError {
    /// A file of the host cannot be read.
    #[error("the SELinux policy of the host cannot be read: {0}")]
    Unreadable(#[from] PathError),
    /// A file of the host does not say what it should.
    #[error(
        "{file}: line {line} {what}; correct it (`semanage fcontext`), `restorecon` fails as well"
    )]
    Line {
        /// The file.
        file: String,
        /// Its line.
        line: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// An expression that meets a path cannot be used.
    #[error(
        "{path}: its SELinux label cannot be said, since `{expression}` in {file} is no expression that tread can use: {why}; write it without look-around and back-references"
    )]
    Expression {
        /// The path.
        path: String,
        /// The file of the expression.
        file: String,
        /// The expression.
        expression: String,
        /// What is wrong with it.
        why: String,
    },
    /// `/etc/selinux/config` names no policy that could be there.
    #[error("/etc/selinux/config: SELINUXTYPE=`{0}` is no name of a policy; correct it")]
    Policy(String),
}
