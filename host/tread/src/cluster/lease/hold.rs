//! A command that runs while a node is held.

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep_until, timeout_at};
use tread_console::print::warn;
use tread_enforce::by_hand::{Hand, NotTaken};

/// How it ends where the command did not run, or not to its end.
pub(super) const NOT_RUN: u8 = 125;

/// What a command's Lease is held by: two commands of one user keep each other away too,
/// wherever they run.
pub(super) fn holder(user: &str) -> Result<String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).context("the system gives no random numbers")?;
    Ok(format!("{user}/{:016x}", u64::from_be_bytes(bytes)))
}

/// Runs the command, renews the Lease meanwhile, and gives it back. `asked` is when it was asked for.
pub(super) async fn run(
    hand: &Hand,
    node: &str,
    (asked, lasts): (Instant, Duration),
    command: &[OsString],
) -> Result<ExitCode> {
    let ended = attend(hand, node, (asked, lasts), command).await;
    match hand.release(node).await {
        Ok(_) => {}
        // Whoever has it now keeps it.
        Err(NotTaken::Held(_)) => {}
        Err(why) => warn(&format!("{node} is held until its Lease ends by itself: {why}")),
    }
    ended
}

async fn attend(
    hand: &Hand,
    node: &str,
    (asked, lasts): (Instant, Duration),
    command: &[OsString],
) -> Result<ExitCode> {
    // A terminal sends its signals to the command too: this program waits for what that does.
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut hung_up = signal(SignalKind::hangup())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let (program, args) = command.split_first().context("no command")?;
    let mut child = match Command::new(program).args(args).spawn() {
        Ok(child) => child,
        Err(error) => {
            warn(&format!("{} cannot be run: {error}", program.display()));
            return Ok(ExitCode::from(NOT_RUN));
        }
    };
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let ends = || {
        if let Some(pid) = pid {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::TERM);
        }
    };
    let mut ended = tokio::task::spawn_blocking(move || child.wait());
    let mut lost = std::pin::pin!(lost(hand, node, (asked, lasts)));
    let mut is_lost = false;
    loop {
        tokio::select! {
            status = &mut ended => {
                return Ok(if is_lost { ExitCode::from(NOT_RUN) } else { exit(status??) });
            }
            _ = interrupted.recv() => {}
            _ = hung_up.recv() => {}
            _ = terminated.recv() => ends(),
            why = &mut lost, if !is_lost => {
                warn(&format!("{node} is not held any more: {why}; the command is told to end"));
                is_lost = true;
                ends();
            }
        }
    }
}

/// Renews the Lease until that does not work any more before it ends, also where nobody answers; says why.
async fn lost(hand: &Hand, node: &str, (asked, lasts): (Instant, Duration)) -> String {
    let mut late = told_by(asked, lasts);
    let mut next = asked + lasts / 3;
    loop {
        sleep_until(next).await;
        let asked = Instant::now();
        match timeout_at(late, hand.acquire(node, lasts, None)).await {
            Ok(Ok(got)) if got.was_theirs => {
                late = told_by(asked, lasts);
                next = asked + lasts / 3;
            }
            Ok(Ok(_)) => {
                return "somebody took the Lease away, or removed it, meanwhile".to_owned();
            }
            Ok(Err(NotTaken::Held(by))) => return by.to_string(),
            // There is no time for another try.
            Ok(Err(why)) if Instant::now() + lasts / 20 >= late => return why.to_string(),
            Ok(Err(_)) => next = Instant::now() + lasts / 20,
            Err(_) => {
                return "the API server does not answer, and the Lease is about to end".to_owned();
            }
        }
    }
}

/// When a command has to be told to end at the latest: before the Lease ends that was asked for at `asked`.
fn told_by(asked: Instant, lasts: Duration) -> Instant {
    // It lasts from the API server's time, which is rounded down to whole seconds.
    let margin = lasts / 10 + Duration::from_secs(1);
    asked + lasts.saturating_sub(margin)
}

/// How the command ended; after a signal, as a shell says it.
fn exit(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_commands_of_one_user_hold_by_different_names() {
        let (one, two) = (holder("alice").unwrap(), holder("alice").unwrap());
        assert!(one.starts_with("alice/") && one != two, "{one} {two}");
    }
}
