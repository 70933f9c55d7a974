//! However whoever started a control plane ends: nothing of it is left. Shown by
//! the processes and the files of this machine.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use tread_test_bed::ControlPlane;

/// The processes that have this path in their command lines: a control plane's
/// have that of the directory that they were told to use for temporary files.
fn processes(path: &Path) -> Vec<(u32, String)> {
    let wanted = path.to_str().unwrap();
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        // A process may end while it is looked at.
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(wanted).then_some((pid, line))
    });
    all.collect()
}

fn entries(path: &Path) -> Vec<String> {
    let names = fs::read_dir(path).unwrap();
    names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        thread::sleep(Duration::from_millis(100));
    }
}

fn until_nothing_is_left(path: &Path) {
    until(|| processes(path).is_empty() && entries(path).is_empty());
}

fn bed(tmp: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tread-bed"));
    command.env("TMPDIR", tmp).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

fn started(tmp: &Path) -> Child {
    started_with(tmp, &["--bare"])
}

fn started_with(tmp: &Path, args: &[&str]) -> Child {
    let mut child = bed(tmp).args(args).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("export KUBECONFIG="), "{line:?}");
    child
}

fn send(signal: &str, pid: u32) {
    let kill = Command::new("kill").arg(signal).arg(pid.to_string()).status();
    assert!(kill.unwrap().success());
}

#[test]
fn a_process_that_is_killed_leaves_no_process_and_no_directory() {
    let tmp = TempDir::new().unwrap();
    let mut child = started_with(tmp.path(), &[]);
    // The supervisor, etcd, the API server, controllers, scheduler and kwok.
    assert_eq!(processes(tmp.path()).len(), 6, "{:?}", processes(tmp.path()));
    child.kill().unwrap();
    child.wait().unwrap();
    until_nothing_is_left(tmp.path());
}

#[test]
fn one_that_is_killed_while_it_starts_leaves_nothing_either() {
    let tmp = TempDir::new().unwrap();
    let mut child = bed(tmp.path()).arg("--bare").spawn().unwrap();
    until(|| processes(tmp.path()).len() > 1);
    child.kill().unwrap();
    child.wait().unwrap();
    until_nothing_is_left(tmp.path());
}

#[test]
fn one_that_is_interrupted_leaves_nothing_either() {
    let tmp = TempDir::new().unwrap();
    let mut child = started(tmp.path());
    send("-INT", child.id());
    child.wait().unwrap();
    until_nothing_is_left(tmp.path());
}

#[test]
fn one_that_ends_has_cleaned_up_before_it_does() {
    let tmp = TempDir::new().unwrap();
    let mut child = started(tmp.path());
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert_eq!(processes(tmp.path()), []);
    assert_eq!(entries(tmp.path()), [] as [String; 0]);
}

#[test]
fn a_test_that_panics_cleans_up() {
    let test = thread::spawn(|| {
        let plane = ControlPlane::start().unwrap();
        let dir = plane.dir().to_owned();
        assert!(!processes(&dir).is_empty());
        std::panic::panic_any(dir);
    });
    let panic = test.join().unwrap_err();
    let dir = panic.downcast_ref::<std::path::PathBuf>().unwrap();
    assert!(!dir.exists());
    assert_eq!(processes(dir), []);
}

#[test]
fn paused_parts_end_too() {
    let plane = ControlPlane::start().unwrap();
    let dir = plane.dir().to_owned();
    let paused = plane.pause(tread_test_bed::Part::ApiServer).unwrap();
    // It does not go on by itself.
    std::mem::forget(paused);
    drop(plane);
    assert!(!dir.exists());
    assert_eq!(processes(&dir), []);
}

#[test]
fn what_a_killed_supervisor_leaves_is_removed_by_the_next_one() {
    let tmp = TempDir::new().unwrap();
    let mut child = started(tmp.path());
    let supervisor =
        processes(tmp.path()).into_iter().find(|(_, line)| line.contains(" supervise ")).unwrap();
    send("-KILL", supervisor.0);
    // Its children are killed by the kernel; the directory stays.
    until(|| processes(tmp.path()).is_empty());
    let left = entries(tmp.path());
    assert_eq!(left.len(), 1, "{left:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    let mut next = started(tmp.path());
    let now = entries(tmp.path());
    assert_eq!(now.len(), 1, "{now:?}");
    assert_ne!(now, left);
    drop(next.stdin.take());
    assert!(next.wait().unwrap().success());
    until_nothing_is_left(tmp.path());
}

#[test]
fn a_command_gets_the_control_plane_and_gives_its_exit_code() {
    let tmp = TempDir::new().unwrap();
    let script = "kubectl get nodes -o name; exit 7";
    let output = bed(tmp.path())
        .args(["--bare", "--nodes", "2", "--", "sh", "-c", script])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "node/node-0\nnode/node-1\n");
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(entries(tmp.path()), [] as [String; 0]);
}

#[test]
fn without_a_built_control_plane_the_error_says_how_to_get_one() {
    let tmp = TempDir::new().unwrap();
    let output = bed(tmp.path()).env_remove("TREAD_BED").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(said.contains("TREAD_BED is not set"), "{said}");
    assert!(said.contains("tests/run --only cluster"), "{said}");
}

#[test]
fn a_part_that_does_not_start_is_named_with_the_end_of_its_log() {
    let tmp = TempDir::new().unwrap();
    // Longer than the path of a socket can be.
    let long = tmp.path().join("x".repeat(120));
    fs::create_dir(&long).unwrap();
    let mut child = bed(&long).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(!child.wait().unwrap().success());
    assert!(said.contains("etcd"), "{said}");
    assert!(said.contains("ends with:"), "{said}");
    assert!(said.contains("invalid argument"), "{said}");
    assert_eq!(entries(&long), [] as [String; 0]);
}
