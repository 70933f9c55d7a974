//! Where a compiler for WebAssembly is on this machine.

use anyhow::{Result, bail};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What policies are compiled for.
pub(super) const TARGET: &str = "wasm32-unknown-unknown";

/// The oldest compiler whose standard library can be built from source here.
const OLDEST: (u32, u32) = (1, 95);

/// What to do when there is none.
const INSTALL: &str = "there is no Rust compiler for WebAssembly here; install one with \
    `rustup target add wasm32-unknown-unknown`, or on Debian with \
    `apt-get install rustc-web cargo-web rust-web-src lld-19`";

/// A cargo and a compiler that build for [`TARGET`].
#[derive(Debug)]
pub(super) struct Toolchain {
    cargo: PathBuf,
    /// Only if cargo would not find it by itself.
    rustc: Option<PathBuf>,
    /// Where the compiler's own files are.
    sysroot: PathBuf,
    /// `1.95.0`
    release: String,
    /// The commit that the compiler was built from.
    commit: String,
    /// The linker, where the standard library has to be built from source:
    /// then the compiler brings none either.
    from_source: Option<&'static str>,
}

/// The active toolchain of `dir` if it has the target, or else Debian's.
pub(super) fn find(dir: &Path) -> Result<Toolchain> {
    let cargo = std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
    let active = Toolchain::asked(cargo, PathBuf::from("rustc"), dir);
    if let Some(toolchain) = active.filter(Toolchain::has_target) {
        return Ok(toolchain);
    }
    let debian = Toolchain::asked("/usr/bin/cargo".into(), "/usr/bin/rustc".into(), dir)
        .filter(|toolchain| toolchain.major_minor() >= Some(OLDEST))
        .filter(Toolchain::has_source)
        .filter(|_| on_path("wasm-ld-19"));
    match debian {
        Some(toolchain) => Ok(Toolchain {
            rustc: Some("/usr/bin/rustc".into()),
            from_source: Some("wasm-ld-19"),
            ..toolchain
        }),
        None => bail!(INSTALL),
    }
}

impl Toolchain {
    /// What this compiler says of itself; none if it cannot be run.
    fn asked(cargo: PathBuf, rustc: PathBuf, dir: &Path) -> Option<Toolchain> {
        let ask = |argument: &[&str]| {
            let output = Command::new(&rustc).args(argument).current_dir(dir).output().ok()?;
            let text = String::from_utf8(output.stdout).ok()?;
            output.status.success().then(|| text.trim().to_owned())
        };
        let version = ask(&["--version", "--verbose"])?;
        let field = |name: &str| {
            version
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .map(|text| text.trim().to_owned())
        };
        let (release, commit) = (field("release:")?, field("commit-hash:")?);
        let sysroot = ask(&["--print", "sysroot"])?.into();
        Some(Toolchain { cargo, rustc: None, sysroot, release, commit, from_source: None })
    }

    fn has_target(&self) -> bool {
        self.sysroot.join("lib/rustlib").join(TARGET).join("lib").is_dir()
    }

    fn has_source(&self) -> bool {
        self.sysroot.join("lib/rustlib/src/rust/library/std").is_dir()
    }

    /// `(1, 95)` of `1.95.0`.
    fn major_minor(&self) -> Option<(u32, u32)> {
        let (major, rest) = self.release.split_once('.')?;
        Some((major.parse().ok()?, rest.split_once('.')?.0.parse().ok()?))
    }

    /// cargo, in `dir`, with nothing of the caller's own flags: they would make
    /// other bytes of the same source.
    pub(super) fn cargo(&self, dir: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.cargo);
        command.args(arguments).current_dir(dir);
        for (name, _) in std::env::vars_os().filter(|(name, _)| changes_the_bytes(name)) {
            command.env_remove(name);
        }
        command.env("CARGO_INCREMENTAL", "0");
        if let Some(rustc) = &self.rustc {
            // rustup's stand-ins must not be found first.
            let path = std::env::var_os("PATH").unwrap_or_default();
            let mut first = OsString::from("/usr/bin:");
            first.push(path);
            command.env("PATH", first).env("RUSTC", rustc);
        }
        command
    }

    /// The arguments of `cargo build` that this toolchain needs, and the flags
    /// for its compiler.
    pub(super) fn prepare(&self, command: &mut Command, flags: &mut Vec<String>) {
        command.args(["--target", TARGET]);
        if let Some(linker) = self.from_source {
            command.env("RUSTC_BOOTSTRAP", "1").arg("-Zbuild-std=std,panic_abort");
            flags.push(format!("-Clinker={linker}"));
        }
    }

    /// Where the source of the standard library may be here, and the name that
    /// it has on every machine.
    pub(super) fn library(&self) -> Vec<(PathBuf, String)> {
        let source = self.sysroot.join("lib/rustlib/src/rust");
        let behind_a_link = std::fs::canonicalize(&source).ok();
        let name = |place: PathBuf| (place, format!("/rustc/{}", self.commit));
        behind_a_link.into_iter().chain([source]).map(name).collect()
    }
}

fn changes_the_bytes(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    ["CARGO_PROFILE_", "CARGO_TARGET_WASM32_", "CARGO_BUILD_"].iter().any(|p| name.starts_with(p))
        || ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTC", "RUSTC_BOOTSTRAP"].contains(&name)
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}
