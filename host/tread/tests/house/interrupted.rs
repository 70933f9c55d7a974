//! Whoever interrupts the tests ends all that they run, and is told of no success.

use std::fs::{File, TryLockError};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Phases as those of `tests/run`: one beside, and one in front, which runs a program beside itself.
/// All that is begun here holds a lock on `alive`.
const PHASES: &str = r#"
set -euo pipefail
dir=$1
source tests/lib/phases.sh
target_dir() { echo "$dir"; }
exec 9>"$dir/alive"
flock 9
until_it_ends() {
  echo "at work: $1"
  touch "$dir/$1"
  sleep 600
}
suite_aside() { until_it_ends aside; }
suite_front() {
  until_it_ends behind &
  until_it_ends front
}
suite_fails() {
  false
  echo "this is not reached"
}
start_phases
shift
printf '%s\n' "$@" >"$logs/expected"
if [ "$1" = aside ]; then beside 5 aside; shift; fi
for name in "$@"; do phase "$name"; done
wait_for_beside
summary
"#;

/// With the signals as at first, whoever ignores them where this test runs.
fn phases(dir: &Path, names: &[&str]) -> Child {
    phases_within("1h", dir, names)
}

fn phases_within(most: &str, dir: &Path, names: &[&str]) -> Child {
    Command::new("env")
        .args(["--default-signal=HUP,INT,TERM", "bash", "-c", PHASES, "phases"])
        .arg(dir)
        .args(names)
        .current_dir(super::tree())
        .env("TMPDIR", dir)
        .env("TREAD_TESTS_MOST", most)
        .stdin(Stdio::null())
        .stdout(File::create(dir.join("said")).unwrap())
        .stderr(File::create(dir.join("complained")).unwrap())
        .process_group(0)
        .spawn()
        .unwrap()
}

fn said(dir: &Path) -> String {
    super::text_of(&dir.join("said")) + &super::text_of(&dir.join("complained"))
}

/// How phases end that run when `to`, which is `PID` or its group `-PID`, gets a signal.
fn interrupted(dir: &Path, names: &[&str], signal: &str, to: &str) -> ExitStatus {
    let mut child = phases(dir, names);
    for name in ["aside", "front", "behind"] {
        let is_awaited = names.contains(&name) || name == "behind" && names.contains(&"front");
        while is_awaited && !dir.join(name).exists() {
            assert_eq!(child.try_wait().unwrap(), None, "{}", said(dir));
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    let to = to.replace("PID", &child.id().to_string());
    let kill = Command::new("bash").args(["-c", r#"kill -s "$0" -- "$1""#, signal, &to]).status();
    assert!(kill.unwrap().success());
    child.wait().unwrap()
}

fn is_alive(dir: &Path) -> bool {
    match File::open(dir.join("alive")).unwrap().try_lock() {
        Ok(()) => false,
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(error)) => panic!("{error}"),
    }
}

fn has_logs(dir: &Path) -> bool {
    let mut all = dir.read_dir().unwrap();
    all.any(|it| it.unwrap().file_name().to_string_lossy().starts_with("tmp."))
}

#[test]
fn whoever_interrupts_the_tests_ends_all_that_they_run() {
    for (names, signal, to, code) in [
        (&["aside", "front"][..], "INT", "-PID", 130),
        (&["aside", "front"], "TERM", "PID", 143),
        (&["aside", "front"], "HUP", "PID", 129),
        // While nothing is in front any more.
        (&["aside"], "TERM", "PID", 143),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let status = interrupted(dir.path(), names, signal, to);
        let said = said(dir.path());
        assert_eq!(status.code(), Some(code), "{signal}: {:?} {said}", status.signal());
        assert!(!is_alive(dir.path()), "{signal}: something goes on: {said}");
        assert!(said.contains("INTERRUPTED"), "{signal}: {said}");
        let last = "--- aside, which has not ended:\nat work: aside\n";
        assert!(said.contains(last), "{signal}: {said}");
        assert!(!said.contains(" passed"), "{signal}: {said}");
        assert!(!has_logs(dir.path()), "{signal}: logs are left: {said}");
    }
}

#[test]
fn nothing_goes_on_of_tests_that_are_killed() {
    let dir = tempfile::tempdir().unwrap();
    let status = interrupted(dir.path(), &["aside", "front"], "KILL", "PID");
    assert_eq!(status.signal(), Some(9));
    // Left alone, they would end by themselves after ten minutes.
    let until = Instant::now() + Duration::from_secs(300);
    while is_alive(dir.path()) || has_logs(dir.path()) {
        assert!(Instant::now() < until, "something goes on: {}", said(dir.path()));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn tests_that_take_too_long_are_ended_and_it_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let status = phases_within("3s", dir.path(), &["aside", "front"]).wait().unwrap();
    let said = said(dir.path());
    assert_eq!(status.code(), Some(143), "{said}");
    for part in ["TOO LONG: more than 3s", "INTERRUPTED"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!is_alive(dir.path()) && !has_logs(dir.path()), "{said}");
}

#[test]
fn a_phase_that_fails_is_said_to_have_failed() {
    let dir = tempfile::tempdir().unwrap();
    let status = phases(dir.path(), &["fails"]).wait().unwrap();
    let said = said(dir.path());
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.ends_with("FAILED: fails\n0 passed, 1 failed\n"), "{said}");
    assert!(!said.contains("this is not reached"), "{said}");
}
