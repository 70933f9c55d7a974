//! What several tests of the binary share.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The source tree.
pub fn tree() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// A directory for the files of one test, and a cache that all tests share.
pub struct Bench {
    pub dir: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Bench {
        Bench { dir: tempfile::tempdir().unwrap() }
    }

    /// Writes a file, and gives its path.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// `tread` with these arguments, in the directory.
    pub fn tread(&self, args: &[&str]) -> Ran {
        self.tread_with(args, b"")
    }

    /// The same, with something on standard input.
    pub fn tread_with(&self, args: &[&str], input: &[u8]) -> Ran {
        run(self.command(args), input)
    }

    /// The same, to be changed before it is run.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tread"));
        command
            .args(args)
            .current_dir(self.dir.path())
            .env("TREAD_CACHE_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"))
            // Whoever runs the tests may have a cluster.
            .env("KUBECONFIG", self.dir.path().join("no-kubeconfig"))
            .env_remove("TREAD_LOG");
        command
    }
}

/// What is said of a policy that had time by the clock, and no processor.
const BUSY: &str = "this machine is very busy";

/// Runs a command to its end: again where a policy got no processor.
pub fn run(mut command: Command, input: &[u8]) -> Ran {
    let is_busy = |Ran(output): &Ran| {
        let said = [&output.stdout, &output.stderr].map(|said| String::from_utf8_lossy(said));
        said.iter().any(|said| said.contains(BUSY))
    };
    let mut ran = once(&mut command, input);
    for _ in 0..20 {
        if !is_busy(&ran) {
            break;
        }
        ran = once(&mut command, input);
    }
    ran
}

fn once(command: &mut Command, input: &[u8]) -> Ran {
    use std::io::Write as _;
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Whoever does not read to the end closes the pipe.
    let _ = child.stdin.take().unwrap().write_all(input);
    Ran(child.wait_with_output().unwrap())
}

/// Runs a command with an output that nobody reads: how it ends, and what it says beside that.
pub fn unread(mut command: Command) -> (i32, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let child = command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped()).spawn();
    let output = child.unwrap().wait_with_output().unwrap();
    (output.status.code().unwrap_or(-1), String::from_utf8(output.stderr).unwrap())
}

/// What a run of `tread` came to.
pub struct Ran(pub Output);

impl Ran {
    pub fn code(&self) -> i32 {
        self.0.status.code().unwrap_or(-1)
    }

    pub fn out(&self) -> String {
        String::from_utf8(self.0.stdout.clone()).unwrap()
    }

    pub fn err(&self) -> String {
        String::from_utf8(self.0.stderr.clone()).unwrap()
    }

    /// The first line of the output.
    pub fn first_line(&self) -> String {
        self.out().lines().next().unwrap_or_default().to_owned()
    }

    /// The output as JSON; it has to end well for that.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.0.stdout)
            .unwrap_or_else(|error| panic!("{error}\n{}\n{}", self.out(), self.err()))
    }
}

/// A MachineConfig with these files, each in plain text, as YAML.
pub fn machine_config(files: &[(&str, &str)]) -> String {
    let mut text = String::from(
        "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\n\
         metadata: {name: rendered-worker}\nspec:\n  config:\n    ignition: {version: 3.4.0}\n",
    );
    if !files.is_empty() {
        text.push_str("    storage:\n      files:\n");
    }
    for (path, contents) in files {
        let encoded: String = contents.bytes().map(|byte| format!("%{byte:02x}")).collect();
        text.push_str(&format!(
            "      - path: {path}\n        contents: {{source: \"data:,{encoded}\"}}\n"
        ));
    }
    text
}
