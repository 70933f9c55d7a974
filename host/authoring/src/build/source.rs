//! From a policy's crate to its component: compile, wrap, describe.

use super::toolchain::{self, Toolchain};
use anyhow::{Context as _, Result, anyhow, bail, ensure};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tread_console::outputs;
use tread_console::print::{shown, warn};
use tread_engine::limits::Limits;
use tread_engine::sandbox::{Options, Sandbox};
use tread_loading::builtins::check_name;
use tread_model::claim::{validate_declarations, validate_description};
use tread_model::description::{DECLARATIONS, Declarations, Description, SECTION};
use tread_model::digest::Sha256;
use tread_model::verdict::FailureKind;

/// A component that was built.
#[derive(Debug)]
pub(crate) struct Built {
    /// Where it was written.
    pub(crate) path: PathBuf,
    /// Its bytes.
    pub(crate) size: usize,
    /// Their sha256.
    pub(crate) digest: Sha256,
    /// What it imports.
    pub(crate) imports: Vec<String>,
    /// What the policy says of itself.
    pub(crate) description: Description,
    /// What it declares beside that.
    pub(crate) declarations: Declarations,
}

/// Builds the crate in `dir` into a component, and writes it to `out`, or to
/// `NAME.wasm` in `dir`. The same source gives the same bytes, wherever it is.
pub(crate) fn build(dir: &Path, out: Option<&Path>) -> Result<Built> {
    let (component, description, declarations) = built(dir)?;
    if !is_of_tread(dir) {
        check_name(&description.name, Some(Sha256::of(&component)))?;
    }
    let path = match out {
        Some(out) => out.to_owned(),
        None => dir.join(format!("{}.wasm", description.name)),
    };
    written(component, description, declarations, &path)
}

/// Whether the crate is a built-in policy's own, which lies beside the components
/// that come with tread.
fn is_of_tread(dir: &Path) -> bool {
    let dir = dir.canonicalize().ok();
    let beside = dir.as_deref().and_then(Path::parent);
    beside.is_some_and(|it| it.join("prebuilt/manifest.json").is_file())
}

/// Writes a component that was built.
pub(crate) fn written(
    component: Vec<u8>,
    description: Description,
    declarations: Declarations,
    path: &Path,
) -> Result<Built> {
    outputs::write(path, &component)
        .with_context(|| format!("the component cannot be written to {}", path.display()))?;
    let imports = tread_engine::inspect::inspect(&component, &Limits::default()).imports;
    let (size, digest) = (component.len(), Sha256::of(&component));
    Ok(Built { path: path.to_owned(), size, digest, imports, description, declarations })
}

/// As [`build`], without writing anything but what cargo writes.
pub(crate) fn built(dir: &Path) -> Result<(Vec<u8>, Description, Declarations)> {
    let component = component(dir)?;
    let (description, declarations) = describe(&component)?;
    let component = with_description(component, &description, &declarations)?;
    Ok((component, description, declarations))
}

const NOT_EXPORTED: &str = "the crate was compiled, but makes no policy; is there one `tread_guest_sdk::export!(…)` in it?";

/// Whether there is a crate in `dir`.
pub(crate) fn check_crate(dir: &Path) -> Result<()> {
    ensure!(
        dir.join("Cargo.toml").is_file(),
        "{} has no Cargo.toml: name the directory of the policy's crate, or make one with \
         `tread policy new`",
        dir.display()
    );
    Ok(())
}

/// The component of the crate in `dir`, without its description.
fn component(dir: &Path) -> Result<Vec<u8>> {
    check_crate(dir)?;
    let dir = &std::fs::canonicalize(dir)?;
    let toolchain = toolchain::find(dir)?;
    let metadata = locked(&toolchain, dir)?;
    let module = compile(&toolchain, dir, &metadata)?;
    let core = std::fs::read(&module)
        .with_context(|| format!("the compiled module {} cannot be read", module.display()))?;
    wit_component::ComponentEncoder::default()
        .validate(true)
        .module(&core)
        .and_then(|mut encoder| encoder.encode())
        .context(NOT_EXPORTED)
}

/// What cargo knows of the crate, with the versions of the dependencies settled: as the lock file
/// has them, which is made where there is none, and follows what the manifest newly says.
fn locked(toolchain: &Toolchain, dir: &Path) -> Result<Metadata> {
    // The workspace's; a lock file further up is somebody else's.
    let arguments = ["locate-project", "--workspace", "--message-format=plain"];
    let manifest = output(&mut toolchain.cargo(dir, &arguments))?;
    let manifest = PathBuf::from(String::from_utf8_lossy(&manifest).trim_end());
    let lock = manifest.with_file_name("Cargo.lock");
    if !lock.is_file() {
        output(&mut toolchain.cargo(dir, &["generate-lockfile"]))?;
    } else if !is_of_tread(dir) && is_behind(toolchain, dir)? {
        catch_up(toolchain, dir, &lock)?;
    }
    Metadata::of(toolchain, dir)
}

/// Whether the lock file would have to be changed, as after a new version of the crate.
fn is_behind(toolchain: &Toolchain, dir: &Path) -> Result<bool> {
    let asked = quietly(&mut Metadata::command(toolchain, dir))?;
    // Whoever asks cargo next gets any other failure. There is no code of its own for this one.
    Ok(!asked.status.success() && String::from_utf8_lossy(&asked.stderr).contains("--locked"))
}

/// Has the lock file say what the manifest does. No dependency gets another version by that.
fn catch_up(toolchain: &Toolchain, dir: &Path, lock: &Path) -> Result<()> {
    let lock = shown(lock);
    let arguments = ["update", "--workspace", "--offline"];
    let updated = quietly(&mut toolchain.cargo(dir, &arguments))?;
    ensure!(
        updated.status.success(),
        "{lock} does not fit Cargo.toml, as after a new dependency: run `cargo check` in {}, and \
         commit Cargo.lock",
        shown(dir)
    );
    warn(&format!(
        "{lock} did not fit Cargo.toml, as after a new version, and was changed. No dependency has \
         another version by that: commit it"
    ));
    Ok(())
}

/// What the policy says of itself, which must be what tread takes.
fn describe(component: &[u8]) -> Result<(Description, Declarations)> {
    let sandbox = Sandbox::new(Options { slots: 1, ..Options::default() })?;
    let (description, declarations) =
        sandbox.describe(component).map_err(|failure| match failure.kind {
            FailureKind::WrongWorld => anyhow!(NOT_EXPORTED),
            _ => anyhow!(failure).context("the policy was compiled, but cannot be loaded"),
        })?;
    let valid =
        validate_description(&description).and_then(|()| validate_declarations(&declarations));
    if let Err(message) = valid {
        bail!("the policy was compiled, but what it says of itself is not valid: {message}");
    }
    Ok((description, declarations))
}

/// Appends the description, from which tread lists a policy without running it,
/// and what it declares, if that is anything.
pub(crate) fn with_description(
    mut component: Vec<u8>,
    description: &Description,
    declarations: &Declarations,
) -> Result<Vec<u8>> {
    use wasm_encoder::ComponentSection as _;
    let mut append = |name: &str, json: Vec<u8>| {
        wasm_encoder::CustomSection { name: name.into(), data: json.into() }
            .append_to_component(&mut component);
    };
    append(SECTION, serde_json::to_vec(description)?);
    if *declarations != Declarations::default() {
        append(DECLARATIONS, serde_json::to_vec(declarations)?);
    }
    Ok(component)
}

/// What cargo knows of the crate and its dependencies.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    target_directory: PathBuf,
    workspace_root: PathBuf,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    /// None for a crate that lies in a directory here.
    source: Option<String>,
}

impl Metadata {
    fn command(toolchain: &Toolchain, dir: &Path) -> Command {
        let mut command =
            toolchain.cargo(dir, &["metadata", "--format-version=1", "--locked", "--quiet"]);
        command.args(["--filter-platform", toolchain::TARGET]);
        command
    }

    fn of(toolchain: &Toolchain, dir: &Path) -> Result<Metadata> {
        let output = output(&mut Metadata::command(toolchain, dir))?;
        serde_json::from_slice(&output).context("`cargo metadata` printed something unknown")
    }

    /// Directories and the names that stand for them in the component, so that
    /// it does not tell where it was built, nor depend on that. Of several that
    /// fit, the compiler takes the last.
    fn names(&self, toolchain: &Toolchain) -> Result<Vec<(PathBuf, String)>> {
        let mut names = vec![
            (cargo_home()?, "/cargo".to_owned()),
            (self.workspace_root.clone(), "/source".to_owned()),
            (self.target_directory.clone(), "/target".to_owned()),
        ];
        names.extend(toolchain.library());
        for package in self.packages.iter().filter(|package| package.source.is_none()) {
            if let Some(dir) = package.manifest_path.parent() {
                names.push((dir.to_owned(), format!("/source/{}", package.name)));
            }
        }
        names.sort();
        Ok(names)
    }
}

fn cargo_home() -> Result<PathBuf> {
    std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(std::env::home_dir()?.join(".cargo")))
        .context("neither CARGO_HOME nor HOME is set")
}

/// Runs `cargo build`, and returns the path of the module.
fn compile(toolchain: &Toolchain, dir: &Path, metadata: &Metadata) -> Result<PathBuf> {
    // A small stack below all data: an overflow traps instead of spoiling it,
    // and the pages that a call touches lie side by side.
    let mut flags =
        vec!["-Clink-arg=-zstack-size=49152".to_owned(), "-Clink-arg=--stack-first".to_owned()];
    for (directory, name) in metadata.names(toolchain)? {
        flags.push(format!("--remap-path-prefix={}={name}", directory.display()));
    }
    let arguments = ["build", "--release", "--locked", "--lib"];
    let mut command = toolchain.cargo(dir, &arguments);
    command.arg("--message-format=json-render-diagnostics");
    toolchain.prepare(&mut command, &mut flags);
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    let messages = output(&mut command)?;
    module(&messages, &dir.join("Cargo.toml")).with_context(|| {
        format!(
            "{} makes no module; its Cargo.toml needs `[lib] crate-type = [\"cdylib\", \"rlib\"]`",
            dir.display()
        )
    })
}

/// The module that the crate with this manifest was compiled to, as cargo's
/// messages, one a line, tell it.
fn module(messages: &[u8], manifest: &Path) -> Option<PathBuf> {
    #[derive(Deserialize)]
    struct Message {
        manifest_path: Option<PathBuf>,
        #[serde(default)]
        filenames: Vec<PathBuf>,
    }
    messages
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Message>(line).ok())
        .filter(|message| message.manifest_path.as_deref() == Some(manifest))
        .flat_map(|message| message.filenames)
        .find(|file| file.extension().is_some_and(|extension| extension == "wasm"))
}

/// Runs it to its end, its errors going to the terminal, and returns what it
/// printed.
fn output(command: &mut Command) -> Result<Vec<u8>> {
    let name = name_of(command);
    let output = run(command.stderr(Stdio::inherit()))?;
    if !output.status.success() {
        bail!("{name} failed ({}); its messages are above", output.status);
    }
    Ok(output.stdout)
}

/// Runs it to its end, and keeps what it says.
fn quietly(command: &mut Command) -> Result<Output> {
    run(command.stderr(Stdio::piped()))
}

fn run(command: &mut Command) -> Result<Output> {
    let name = name_of(command);
    command.stdin(Stdio::null()).output().with_context(|| format!("{name} cannot be run"))
}

fn name_of(command: &Command) -> String {
    format!("`cargo {}`", command.get_args().next().unwrap_or_default().display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_all_that_cargo_compiled_the_module_of_the_crate_is_found() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","manifest_path":"/x/sdk/Cargo.toml","filenames":["/t/sdk.wasm"]}"#,
            "\nnot JSON\n",
            r#"{"reason":"compiler-artifact","manifest_path":"/x/a/Cargo.toml","filenames":["/t/liba.rlib","/t/a.wasm"]}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
        );
        let of = |manifest: &str| module(messages.as_bytes(), Path::new(manifest));
        assert_eq!(of("/x/a/Cargo.toml"), Some("/t/a.wasm".into()));
        assert_eq!(of("/x/b/Cargo.toml"), None);
    }

    #[test]
    fn the_description_stands_in_the_components_custom_section() {
        let description = Description {
            name: "chrony".into(),
            version: "1.0.0".into(),
            summary: "For a test".into(),
            claims: vec![],
            settings: None,
        };
        let empty = wasm_encoder::Component::new().finish();
        let component =
            with_description(empty.clone(), &description, &Declarations::default()).unwrap();
        let added = component.strip_prefix(empty.as_slice()).unwrap();
        let json = serde_json::to_vec(&description).unwrap();
        assert!(added.ends_with(&json));
        assert!(added.windows(SECTION.len()).any(|bytes| bytes == SECTION.as_bytes()));
    }

    #[test]
    fn a_directory_without_a_crate_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let error = build(dir.path(), None).unwrap_err().to_string();
        assert!(error.contains("has no Cargo.toml"), "{error}");
    }
}
