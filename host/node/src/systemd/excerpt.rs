//! The last lines of a unit in the journal.

use super::manager::Manager;
use super::transient::{Properties, exec};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::time::{Instant, timeout};
use tread_model::text::one_line_within;
use zbus::Fd;

/// How many lines are shown, and how many bytes of each.
const LINES: usize = 20;
const LINE: usize = 240;
/// What is read at most of what journalctl says.
const MOST: u64 = 1 << 20;
/// How long journalctl may take.
const LIMIT: Duration = Duration::from_secs(15);

impl Manager {
    /// The last lines of a unit's newest run, cleaned; none where the journal cannot be
    /// read, which is no error of the unit.
    pub(crate) async fn excerpt_of(&self, unit: &str) -> Vec<String> {
        let Ok(facts) = self.facts(unit).await else { return Vec::new() };
        if facts.since == 0 {
            return Vec::new();
        }
        // What the unit said, or systemd said about it, in this run of it. By its name and
        // its process: of one that ended at once the journal may know neither which run it
        // was, nor that it had left systemd's own unit.
        let said = format!("_SYSTEMD_UNIT={}", facts.id);
        let about = format!("UNIT={}", facts.id);
        let main = format!("_PID={}", facts.main);
        let since = format!("@{}.{:06}", facts.since / 1_000_000, facts.since % 1_000_000);
        let wanted = ["--since", &since, &said, "+", &about, "+", &main];
        self.journal(&wanted).await.unwrap_or_default()
    }

    /// The last lines of what a unit said, and of what systemd said of it, between two times in
    /// seconds since 1970; cleaned.
    pub(crate) async fn excerpt_between(&self, unit: &str, (from, to): (u64, u64)) -> Vec<String> {
        let Ok(facts) = self.facts(unit).await else { return Vec::new() };
        let (said, about) = (format!("_SYSTEMD_UNIT={}", facts.id), format!("UNIT={}", facts.id));
        let (since, until) = (format!("@{from}"), format!("@{to}"));
        let wanted = ["--since", &since, "--until", &until, &said, "+", &about];
        self.journal(&wanted).await.unwrap_or_default()
    }

    /// journalctl runs as a unit of the host, so that nothing has to know the journal's
    /// files; a pipe carries what it says.
    async fn journal(&self, wanted: &[&str]) -> Option<Vec<String>> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!(
            "tread-excerpt-{}-{}.service",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let (reader, writer) = std::io::pipe().ok()?;
        let lines = LINES.to_string();
        let mut read = vec!["/usr/bin/journalctl", "--quiet", "--no-pager", "--output=cat"];
        read.extend(["--lines", &lines]);
        read.extend(wanted);
        let commands = vec![exec(&["/usr/bin/journalctl", "--sync"], true), exec(&read, false)];
        let properties = Properties::once("Reads the journal for tread", commands, LIMIT)
            .with("CollectMode", "inactive-or-failed".to_owned())
            .with("DefaultDependencies", false)
            .with("StandardOutputFileDescriptor", Fd::from(OwnedFd::from(writer)))
            .with("StandardError", "null".to_owned());
        self.start_transient(&name, &properties, Instant::now() + LIMIT).await.ok()?;
        // Systemd has its own copy: the pipe ends when journalctl does.
        drop(properties);
        let mut said = Vec::new();
        let mut reader = Receiver::from_owned_fd(reader.into()).ok()?.take(MOST);
        timeout(LIMIT + LIMIT, reader.read_to_end(&mut said)).await.ok()?.ok()?;
        Some(cleaned(&said))
    }
}

fn cleaned(said: &[u8]) -> Vec<String> {
    let said = String::from_utf8_lossy(said);
    let lines = said.lines().map(|line| one_line_within(line, LINE).0);
    let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
    lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_the_last_lines_and_drives_no_terminal() {
        let said: String = (0..40).map(|line| format!("\u{1b}[31mline {line}\n\n")).collect();
        let lines = cleaned(said.as_bytes());
        assert_eq!((lines.len(), lines[0].as_str()), (LINES, "[31mline 20"));
        let long = cleaned("x".repeat(5000).as_bytes());
        assert!(long[0].len() <= LINE && long[0].ends_with('…'));
        assert_eq!(cleaned(b"\xff\xfe\n"), ["\u{fffd}\u{fffd}"]);
    }
}
