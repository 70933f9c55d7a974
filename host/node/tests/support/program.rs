//! The static executable that runs on hosts, built once for all tests of a run.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// Where it is. `TREAD_NODE_PROGRAM` names one that is built already.
pub(crate) fn program() -> &'static PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| match std::env::var_os("TREAD_NODE_PROGRAM") {
        Some(path) => path.into(),
        None => build(),
    })
}

fn build() -> PathBuf {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let mut cargo = Command::new(env!("CARGO"));
    // What cargo says of the package under test: build scripts of others that look at it would run
    // again, and all that hangs on them be built again.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&name);
        }
    }
    let built = cargo
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["build", "--locked", "--package", "tread-node", "--bin", "tread-node"])
        .args(["--target", &target])
        .args(["--config", "profile.dev.strip=true", "--message-format=json-render-diagnostics"])
        .output()
        .unwrap();
    let missing =
        format!("the static program is not built; is the target there? rustup target add {target}");
    assert!(built.status.success(), "{missing}\n{}", String::from_utf8_lossy(&built.stderr));
    let said = String::from_utf8(built.stdout).unwrap();
    let of_it = |line: &str| {
        let message: serde_json::Value = serde_json::from_str(line).unwrap();
        message.get("executable").and_then(|path| path.as_str()).map(PathBuf::from)
    };
    said.lines().rev().find_map(of_it).unwrap()
}
