//! Whether a file can be read as a component at all.

use crate::failure::failure;
use crate::limits::Limits;
use tread_model::verdict::{Failure, FailureKind};

/// Whether it is no larger than a component may be.
pub(crate) fn check_size(bytes: &[u8], limits: &Limits) -> Result<(), Failure> {
    if bytes.len() <= limits.module_bytes {
        return Ok(());
    }
    let message = format!("it has {} bytes, and {} are allowed", bytes.len(), limits.module_bytes);
    Err(failure(FailureKind::TooLarge, message))
}

/// Something that cannot be read as WebAssembly.
pub(super) fn unreadable(bytes: &[u8], error: &wasmparser::BinaryReaderError) -> Failure {
    let message = match bytes {
        [] => "the file is empty".to_owned(),
        bytes if wasmparser::Parser::is_core_wasm(bytes) => core_module(),
        bytes if bytes.starts_with(b"\0asm") => {
            format!("it is broken: {error}")
        }
        _ => "it is no WebAssembly: expected a component".to_owned(),
    };
    failure(FailureKind::NotAComponent, message)
}

pub(super) fn core_module() -> String {
    "it is a core module: expected a component, which `tread policy build` makes of it".to_owned()
}
