//! Systemd, as it is asked on the system bus.

use super::bus::{Bus, Call, Unanswered};
use super::facts::UnitFacts;
use super::problem::Problem;
use futures::StreamExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;
use zbus::message::Type as Kind;
use zbus::{DynamicType, MatchRule, MessageStream, OwnedObjectPath, OwnedVariant, Type};

pub(crate) const SYSTEMD: &str = "org.freedesktop.systemd1";
pub(crate) const MANAGER_PATH: &str = "/org/freedesktop/systemd1";
pub(crate) const MANAGER: &str = "org.freedesktop.systemd1.Manager";
pub(crate) const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// How long things may take that no step gives a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long a unit has to stay well before it counts as well.
    pub well_for: Duration,
    /// How long a question may take that is answered at once by whoever is alive; what is
    /// executed anew at that moment is waited for.
    pub answer: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { well_for: Duration::from_secs(10), answer: Duration::from_secs(30) }
    }
}

/// Systemd and logind, on the system bus at an address. Nothing is asked, and no
/// connection made, before there is a question.
#[derive(Debug)]
pub struct Manager {
    pub(crate) bus: Bus,
    pub(crate) limits: Limits,
}

impl Manager {
    /// On the bus at this address: `unix:path=/run/dbus/system_bus_socket`.
    pub fn new(address: &str, limits: Limits) -> Manager {
        Manager { bus: Bus::new(address), limits }
    }

    /// How many calls were sent over D-Bus so far.
    pub fn calls(&self) -> u64 {
        self.bus.calls()
    }

    pub(crate) fn soon(&self) -> Instant {
        Instant::now() + self.limits.answer
    }

    /// A call of systemd's manager that is made once.
    pub(crate) async fn call<B, R>(
        &self,
        method: &str,
        body: &B,
        deadline: Instant,
    ) -> Result<R, Unanswered>
    where
        B: Serialize + DynamicType,
        R: DeserializeOwned + Type,
    {
        self.bus.call_when_there(manager(method), body, deadline).await
    }

    /// A call of systemd's manager that may be made twice.
    pub(crate) async fn ask<B, R>(
        &self,
        method: &str,
        body: &B,
        deadline: Instant,
    ) -> Result<R, Unanswered>
    where
        B: Serialize + DynamicType,
        R: DeserializeOwned + Type,
    {
        self.bus.ask(manager(method), body, deadline).await
    }

    /// What systemd says of a unit: also of one that does not exist.
    pub async fn facts(&self, unit: &str) -> Result<UnitFacts, Problem> {
        let facts = async {
            let path = self.path(unit, self.soon()).await?;
            self.facts_at(&path, self.soon()).await
        };
        let asked = format!("look-at {unit}");
        facts.await.map_err(|why| Problem::unanswered(&asked, self.limits.answer, why))
    }

    pub(crate) async fn path(
        &self,
        unit: &str,
        deadline: Instant,
    ) -> Result<OwnedObjectPath, Unanswered> {
        self.ask("LoadUnit", &(unit,), deadline).await
    }

    pub(crate) async fn facts_at(
        &self,
        path: &OwnedObjectPath,
        deadline: Instant,
    ) -> Result<UnitFacts, Unanswered> {
        // Of all interfaces: of the unit, and of its kind.
        let call = Call {
            destination: SYSTEMD,
            path: path.as_str(),
            interface: PROPERTIES,
            method: "GetAll",
        };
        let all: HashMap<String, OwnedVariant> = self.bus.ask(call, &("",), deadline).await?;
        Ok(UnitFacts::read(&all))
    }

    /// Lets systemd read its units anew.
    pub async fn daemon_reload(&self, limit: Duration) -> Result<(), Problem> {
        let done = self.ask("Reload", &(), Instant::now() + limit).await;
        done.map_err(|why| Problem::unanswered("daemon-reload", limit, why))
    }

    /// The changes of a unit's properties from now on. Systemd says nothing of that to
    /// whoever did not subscribe.
    pub(crate) async fn changes_of(
        &self,
        path: &OwnedObjectPath,
        deadline: Instant,
    ) -> Result<Changes, Unanswered> {
        let rule = MatchRule::builder()
            .msg_type(Kind::Signal)
            .sender(SYSTEMD)
            .path(path.clone())
            .interface(PROPERTIES)
            .member("PropertiesChanged")
            .build();
        let stream = self.bus.signals(rule, deadline).await?;
        self.subscribe(deadline).await?;
        Ok(Changes { stream })
    }

    /// Jobs of a unit that end from now on.
    pub(crate) async fn ends_of_jobs(
        &self,
        unit: &str,
        deadline: Instant,
    ) -> Result<MessageStream, Unanswered> {
        let rule = MatchRule::builder()
            .msg_type(Kind::Signal)
            .sender(SYSTEMD)
            .path(MANAGER_PATH)
            .interface(MANAGER)
            .member("JobRemoved")
            .arg(2, unit)
            .build();
        self.bus.signals(rule, deadline).await
    }

    async fn subscribe(&self, deadline: Instant) -> Result<(), Unanswered> {
        match self.ask("Subscribe", &(), deadline).await {
            Err(Unanswered::Refused { name, .. }) if name.ends_with(".AlreadySubscribed") => Ok(()),
            answer => answer,
        }
    }
}

fn manager(method: &str) -> Call<'_> {
    Call { destination: SYSTEMD, path: MANAGER_PATH, interface: MANAGER, method }
}

/// That something about a unit changed.
pub(crate) struct Changes {
    stream: MessageStream,
}

impl Changes {
    /// Waits for the next change; `false` when the bus is gone and there will be none.
    pub(crate) async fn next(&mut self) -> bool {
        let some = self.stream.next().await.is_some_and(|it| it.is_ok());
        // What changed at the same time is one change.
        while let Some(Some(_)) = futures::FutureExt::now_or_never(self.stream.next()) {}
        some
    }
}
