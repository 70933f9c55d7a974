//! One connection to a bus that is made again when it is lost, and calls with a deadline.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use thiserror::Error;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout_at};
use zbus::{Connection, DBusError, DynamicType, MatchRule, MessageStream, Type};

/// How long to wait before asking again whoever is not there.
const AGAIN: Duration = Duration::from_millis(100);
/// How many signals may wait for their reader.
const QUEUE: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1023);

/// Why a call came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum Unanswered {
    /// The bus, or who was called, is not there: the call was not heard.
    #[error("{0}")]
    Absent(String),
    /// The bus, or who was called, went away: whether the call was heard is not known.
    #[error("{0}")]
    Lost(String),
    /// No answer came in time.
    #[error("no answer came in time")]
    Late,
    /// It was heard and refused.
    #[error("{text} ({name})")]
    Refused { name: String, text: String },
}

/// What is called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'c> {
    pub(crate) destination: &'c str,
    pub(crate) path: &'c str,
    pub(crate) interface: &'c str,
    pub(crate) method: &'c str,
}

#[derive(Debug)]
pub(crate) struct Bus {
    address: String,
    connection: Mutex<Option<Connection>>,
    calls: AtomicU64,
}

impl Bus {
    pub(crate) fn new(address: &str) -> Bus {
        Bus { address: address.to_owned(), connection: Mutex::default(), calls: AtomicU64::new(0) }
    }

    /// How many calls were sent, those to the bus itself included.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn count(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    async fn connection(&self) -> Result<Connection, Unanswered> {
        let mut kept = self.connection.lock().await;
        if let Some(connection) = kept.as_ref().filter(|it| !it.is_closed()) {
            return Ok(connection.clone());
        }
        let made = zbus::connection::Builder::address(self.address.as_str()).build().await;
        // The connection says hello to the bus.
        self.count();
        let made = made.map_err(|error| {
            Unanswered::Absent(format!("there is no connection to {}: {error}", self.address))
        })?;
        Ok(kept.insert(made).clone())
    }

    /// Calls once.
    pub(crate) async fn call<B, R>(
        &self,
        call: Call<'_>,
        body: &B,
        deadline: Instant,
    ) -> Result<R, Unanswered>
    where
        B: Serialize + DynamicType,
        R: DeserializeOwned + Type,
    {
        let called = async {
            let connection = self.connection().await?;
            self.count();
            let reply = connection
                .call_method(
                    Some(call.destination),
                    call.path,
                    Some(call.interface),
                    call.method,
                    body,
                )
                .await
                .map_err(unanswered)?;
            reply.body().deserialize().map_err(|error| {
                Unanswered::Lost(format!("{} was answered strangely: {error}", call.method))
            })
        };
        timeout_at(deadline, called).await.unwrap_or(Err(Unanswered::Late))
    }

    /// Calls once, as soon as somebody is there to hear it.
    pub(crate) async fn call_when_there<B, R>(
        &self,
        call: Call<'_>,
        body: &B,
        deadline: Instant,
    ) -> Result<R, Unanswered>
    where
        B: Serialize + DynamicType,
        R: DeserializeOwned + Type,
    {
        loop {
            match self.call(call, body, deadline).await {
                Err(Unanswered::Absent(_)) if Instant::now() + AGAIN < deadline => {
                    sleep(AGAIN).await;
                }
                ended => return ended,
            }
        }
    }

    /// Calls what does no harm when it is done twice: again while the bus or who is called
    /// is not there.
    pub(crate) async fn ask<B, R>(
        &self,
        call: Call<'_>,
        body: &B,
        deadline: Instant,
    ) -> Result<R, Unanswered>
    where
        B: Serialize + DynamicType,
        R: DeserializeOwned + Type,
    {
        loop {
            match self.call(call, body, deadline).await {
                Err(Unanswered::Absent(_) | Unanswered::Lost(_))
                    if Instant::now() + AGAIN < deadline =>
                {
                    sleep(AGAIN).await;
                }
                ended => return ended,
            }
        }
    }

    /// The signals that a rule names, from now on.
    pub(crate) async fn signals(
        &self,
        rule: Result<MatchRule<'_>, zbus::Error>,
        deadline: Instant,
    ) -> Result<MessageStream, Unanswered> {
        let rule = rule.map_err(|error| Unanswered::Lost(error.to_string()))?;
        loop {
            let asked = async {
                let connection = self.connection().await?;
                self.count();
                MessageStream::for_match_rule(rule.clone(), &connection, Some(QUEUE))
                    .await
                    .map_err(unanswered)
            };
            match timeout_at(deadline, asked).await.unwrap_or(Err(Unanswered::Late)) {
                Err(Unanswered::Absent(_) | Unanswered::Lost(_))
                    if Instant::now() + AGAIN < deadline =>
                {
                    sleep(AGAIN).await;
                }
                ended => return ended,
            }
        }
    }
}

/// What an error says of the call. The names are those of a bus whose service went away,
/// as systemd does for a moment while it is executed again.
fn unanswered(error: zbus::Error) -> Unanswered {
    let (name, text) = match &error {
        zbus::Error::MethodError(name, text, _) => (name.to_string(), text.clone()),
        zbus::Error::FDO(error) => {
            (error.name().to_string(), error.description().map(str::to_owned))
        }
        other => return Unanswered::Lost(other.to_string()),
    };
    let text = text.unwrap_or_default();
    let short = name.strip_prefix("org.freedesktop.DBus.Error.").unwrap_or_default();
    match short {
        "ServiceUnknown" | "NameHasNoOwner" | "NoServer" => {
            Unanswered::Absent(format!("{text} ({name})"))
        }
        _ if short.starts_with("Spawn.") => Unanswered::Absent(format!("{text} ({name})")),
        "NoReply" | "Disconnected" => Unanswered::Lost(format!("{text} ({name})")),
        _ => Unanswered::Refused { name, text },
    }
}
