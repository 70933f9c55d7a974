//! The last lines of a unit in the journal.

use super::manager::Manager;
use super::transient::{Properties, exec};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
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
        if facts.invocation.is_empty() {
            return Vec::new();
        }
        // What the unit said, or what systemd said about this run of it.
        let said = format!("_SYSTEMD_INVOCATION_ID={}", facts.invocation);
        let about = format!("INVOCATION_ID={}", facts.invocation);
        self.journal(&[&said, "+", &about]).await.unwrap_or_default()
    }

    /// journalctl runs as a unit of the host, so that nothing has to know the journal's
    /// files; a pipe carries what it says.
    async fn journal(&self, matches: &[&str]) -> Option<Vec<String>> {
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
        read.extend(matches);
        let commands = vec![exec(&["/usr/bin/journalctl", "--sync"], true), exec(&read, false)];
        let properties = Properties::once("Reads the journal for tread", commands, LIMIT)
            .with("CollectMode", "inactive-or-failed".to_owned())
            .with("DefaultDependencies", false)
            .with("StandardOutputFileDescriptor", Fd::from(OwnedFd::from(writer)))
            .with("StandardError", "null".to_owned());
        self.start_transient(&name, &properties, Instant::now() + LIMIT).await.ok()?;
        // Systemd has its own copy: the pipe ends when journalctl does.
        drop(properties);
        let said = tokio::task::spawn_blocking(move || {
            let mut said = Vec::new();
            reader.take(MOST).read_to_end(&mut said).map(|_| said)
        });
        let said = timeout(LIMIT + LIMIT, said).await.ok()?.ok()?.ok()?;
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
