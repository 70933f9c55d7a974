//! What the tool of the host is run with. Each command runs as a unit of the host, and is found
//! again by whoever comes after a crash; what is still to be run follows each time from
//! what is there, so that nothing is done twice.

use super::ask::{Os, Tool};
use super::deployments::{Deployments, Way};
use super::error::OsError;
use super::{ARGUMENTS, Due, Wish, arguments, bootc, ostree, rpm_ostree};
use crate::systemd::Command;
use std::time::Duration;
use tread_model::digest::Digest;

/// More commands than it takes from anything to anything.
const MOST: usize = 12;

impl Os<'_> {
    /// Fetches the image of a config, and stages nothing: what fails leaves the host as it
    /// was. Nothing is done where it is there.
    pub async fn fetch(&self, tool: Tool, wish: &Wish) -> Result<bool, OsError> {
        let there = self.look(tool).await?;
        let is_there = wish.image.is_empty()
            || there.booted.has_image(&wish.image)
            || there.at_next_boot().has_image(&wish.image);
        if is_there {
            return Ok(false);
        }
        let limit = self.limits.fetch;
        self.lend_secret()?;
        let fetched = match tool {
            Tool::RpmOstree => {
                self.run(rpm_ostree::PROGRAM, rpm_ostree::fetch(&wish.image), limit).await
            }
            Tool::Bootc => {
                // It has no way to fetch alone: what it staged is taken back, and what it
                // fetched stays.
                let fetched = self.run(bootc::PROGRAM, bootc::switch(&wish.image), limit).await;
                self.unstage(tool).await?;
                if let Some(staged) = there.next.filter(|next| next.staged) {
                    // It took the place of what waits for a boot.
                    self.run(bootc::PROGRAM, bootc::switch(&staged.image), limit).await?;
                }
                fetched
            }
        };
        fetched.map(|()| true)
    }

    /// Lets the next boot bring what is due, and nothing else.
    pub async fn stage(&self, tool: Tool, due: &Due) -> Result<(), OsError> {
        let (mut last, mut again) = (Vec::new(), false);
        for _ in 0..MOST {
            let there = self.look(tool).await?;
            if let Some(next) = &there.next
                && self.differs(&there, due)?.is_none()
            {
                // All is booted already: what is staged belongs to a config in between, and what is
                // not came first by somebody else.
                let booted = &there.booted.id;
                match there.way_to(booted).filter(|_| !next.staged) {
                    Some(way) => self.bring(tool, booted, way).await?,
                    None => self.unstage(tool).await?,
                }
                continue;
            }
            let arguments = self.next_arguments(tool).await?;
            let (program, args) = match tool {
                Tool::RpmOstree => {
                    (rpm_ostree::PROGRAM, rpm_ostree::next(due, there.at_next_boot(), &arguments))
                }
                Tool::Bootc => (bootc::PROGRAM, bootc::next(due, there.at_next_boot())),
            };
            let Some(args) = args else { return Ok(()) };
            // What was heard first may be the end of the same command from before a crash.
            if args == last && again {
                let missing = due.missing(there.at_next_boot());
                let missing = missing.unwrap_or_else(|| ARGUMENTS.to_owned());
                return Err(OsError::Idle { command: described(program, &args), missing });
            }
            again = args == last;
            last.clone_from(&args);
            self.run(program, args, self.limits.stage).await?;
        }
        let program = match tool {
            Tool::RpmOstree => rpm_ostree::PROGRAM,
            Tool::Bootc => bootc::PROGRAM,
        };
        let missing = "it changes with each command".to_owned();
        Err(OsError::Idle { command: described(program, &last), missing })
    }

    /// Whether the next boot brings all that a config wants, as far as is known now.
    pub async fn would_bring(&self, tool: Tool, due: &Due) -> Result<bool, OsError> {
        let there = self.look(tool).await?;
        let arguments = arguments::split(&self.next_arguments(tool).await?);
        let has_arguments = arguments::is_in_order(&due.to.arguments, &arguments);
        Ok(has_arguments && due.missing(there.at_next_boot()).is_none())
    }

    /// Has forgotten what is staged, whoever staged it.
    pub async fn unstage(&self, tool: Tool) -> Result<(), OsError> {
        let there = self.look(tool).await?;
        if there.next.as_ref().is_none_or(|next| !next.staged) {
            return Ok(());
        }
        match tool {
            Tool::RpmOstree => {
                self.run(rpm_ostree::PROGRAM, rpm_ostree::unstage(), self.limits.stage).await
            }
            Tool::Bootc => self.run(ostree::PROGRAM, ostree::unstage(), self.limits.stage).await,
        }
    }

    /// Lets the next boot bring what was booted when the operation began.
    pub async fn bring_back(&self, tool: Tool, due: &Due) -> Result<(), OsError> {
        self.unstage(tool).await?;
        let there = self.look(tool).await?;
        if there.at_next_boot().id == due.deployment {
            return Ok(());
        }
        match there.way_to(&due.deployment) {
            Some(way) => self.bring(tool, &due.deployment, way).await,
            None => self.stage(tool, &self.reverse(due, &there)?).await,
        }
    }

    /// Lets the next boot bring a deployment that is there.
    async fn bring(&self, tool: Tool, id: &str, way: Way) -> Result<(), OsError> {
        let limit = self.limits.stage;
        let (program, args) = match (way, tool) {
            (Way::Rollback, Tool::RpmOstree) => (rpm_ostree::PROGRAM, rpm_ostree::roll_back()),
            (Way::Rollback, Tool::Bootc) => (bootc::PROGRAM, bootc::roll_back()),
            (Way::Default(place), _) => (ostree::PROGRAM, ostree::set_default(place)),
        };
        let command = described(program, &args);
        self.run(program, args, limit).await?;
        if way != Way::Rollback && tool == Tool::RpmOstree {
            // Its daemon may not have seen yet what it did not do itself.
            self.run(rpm_ostree::PROGRAM, rpm_ostree::reload(), limit).await?;
        }
        let next = self.look(tool).await?;
        if next.at_next_boot().id == id {
            return Ok(());
        }
        let missing = format!("it is {}, and not {id}", next.at_next_boot().id);
        Err(OsError::Idle { command, missing })
    }

    /// What is not as it is to be in what is booted; nothing if all is.
    pub async fn is_booted(&self, tool: Tool, due: &Due) -> Result<Option<String>, OsError> {
        let there = self.look(tool).await?;
        self.differs(&there, due)
    }

    /// The same for what was booted when the operation began.
    pub async fn is_back(&self, tool: Tool, due: &Due) -> Result<Option<String>, OsError> {
        let there = self.look(tool).await?;
        if there.booted.id == due.deployment {
            return Ok(None);
        }
        self.differs(&there, &self.reverse(due, &there)?)
    }

    fn differs(&self, there: &Deployments, due: &Due) -> Result<Option<String>, OsError> {
        if let Some(missing) = due.missing(&there.booted) {
            return Ok(Some(missing));
        }
        let booted = self.booted_arguments()?;
        Ok(due.edit().missing(&booted).map(|missing| format!("{ARGUMENTS}: {missing}")))
    }

    /// What is due in order to go back: to the state that was there before.
    fn reverse(&self, due: &Due, there: &Deployments) -> Result<Due, OsError> {
        Ok(Due {
            to: due.from.clone(),
            from: due.to.clone(),
            passed: due.passed.clone(),
            deployment: there.booted.id.clone(),
            arguments: self.booted_arguments()?,
        })
    }

    async fn run(&self, program: &str, args: Vec<String>, limit: Duration) -> Result<(), OsError> {
        // The unit is named after the command line, so that the same command is found after a
        // crash.
        let digest = Digest::of(args.join("\n").as_bytes()).hex();
        let verb = args.first().map_or("", String::as_str);
        let name = format!("os-{verb}-{}", digest.get(..12).unwrap_or_default());
        let unit = Command::unit_of(self.operation, &name);
        let argv = std::iter::once(program.to_owned()).chain(args).collect();
        let command = Command { unit, argv, limit };
        let ended = self.manager.command(&command).await;
        self.manager.forget_command(&command.unit).await?;
        Ok(ended?)
    }
}

/// The program and what it was told to do, without the rest: that may hold values of arguments.
fn described(program: &str, args: &[String]) -> String {
    format!("`{program} {}`", args.first().map_or("", String::as_str))
}
