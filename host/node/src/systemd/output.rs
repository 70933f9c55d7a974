//! What a program of the host says: it runs as a unit of the host, and a pipe carries its
//! words here, wherever here is.

use super::bus::Unanswered;
use super::command::{Command, CommandState};
use super::manager::Manager;
use super::problem::{Problem, What};
use super::transient::{Properties, exec};
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::time::{Instant, sleep, timeout_at};
use zbus::Fd;

/// How long to wait before it is looked again how a program ended.
const AGAIN: Duration = Duration::from_millis(50);

impl Manager {
    /// What a program that only looks says on its standard output: at most so many bytes.
    /// Who asks waits for it, and nobody finds it again.
    pub async fn output(&self, command: &Command, most: u64) -> Result<Vec<u8>, Problem> {
        // What ends it is systemd; this is for a systemd that does not.
        let deadline = Instant::now() + command.limit + Duration::from_secs(30);
        let said = self.said(command, most, deadline).await;
        let unanswered = |why| Problem::unanswered(&command.asked(), command.limit, why);
        let said = said.map_err(unanswered)?;
        let ended = self.ended(&command.unit, deadline).await.map_err(unanswered)?;
        if said.len() as u64 > most {
            let _ = self.forget_command(&command.unit).await;
            let why = format!(
                "{}: it said more than {} MiB, so nothing of it was read",
                command.argv.join(" "),
                most >> 20
            );
            return Err(Problem::new(command.asked(), What::NoWay(why)));
        }
        match ended {
            CommandState::Well | CommandState::Unknown => Ok(said),
            state => {
                let problem = self.failed(command, state).await;
                let _ = self.forget_command(&command.unit).await;
                Err(problem)
            }
        }
    }

    async fn said(
        &self,
        command: &Command,
        most: u64,
        deadline: Instant,
    ) -> Result<Vec<u8>, Unanswered> {
        let pipe = |error: std::io::Error| Unanswered::Absent(format!("no pipe: {error}"));
        let (reader, writer) = std::io::pipe().map_err(pipe)?;
        let argv: Vec<&str> = command.argv.iter().map(String::as_str).collect();
        let properties = Properties::once(&argv.join(" "), vec![exec(&argv, false)], command.limit)
            .with("StandardOutputFileDescriptor", Fd::from(OwnedFd::from(writer)));
        self.start_transient(&command.unit, &properties, deadline).await?;
        // Systemd has its own copy: the pipe ends when the program does.
        drop(properties);
        let mut said = Vec::new();
        let mut reader = Receiver::from_owned_fd(reader.into()).map_err(pipe)?.take(most + 1);
        match timeout_at(deadline, reader.read_to_end(&mut said)).await {
            Err(_) => Err(Unanswered::Late),
            Ok(read) => read.map(|_| said).map_err(pipe),
        }
    }

    /// How it ended. One that ended well is forgotten by systemd at once.
    async fn ended(&self, unit: &str, deadline: Instant) -> Result<CommandState, Unanswered> {
        let path = self.path(unit, deadline).await?;
        loop {
            match CommandState::of(&self.facts_at(&path, deadline).await?) {
                CommandState::Running if Instant::now() < deadline => sleep(AGAIN).await,
                state => return Ok(state),
            }
        }
    }
}
