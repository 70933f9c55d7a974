//! Reporting machines that were sent away and ask no more: by whichever replica they asked, in
//! the log, and on the pool that they named if there is one.

use super::strays::POOL;
use crate::plans::{Previewer, about};
use crate::pools::Pools;
use futures::future::{BoxFuture, FutureExt as _};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;
use tread_kube::events::{Events, Note, Reason};

/// More than these do not wait: what comes then is only counted.
const ROOM: usize = 256;
/// In seconds: within this time each reason is reported once on a pool, and in the log for a few
/// addresses.
const WINDOW: u64 = 600;
/// Of so many addresses.
const ADDRESSES: usize = 10;

/// A machine that was sent away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The pool that it named: anybody may name any. Empty: it named none.
    pub pool: String,
    /// The address that asked.
    pub from: IpAddr,
    /// Why.
    pub why: Why,
}

/// Why it was sent away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It showed no token.
    NoToken,
    /// It showed one that is none of the pool's.
    OtherToken,
    /// It reads no version that its config fits: a sentence.
    Version(String),
}

/// Where it is said. Clones share it.
#[derive(Debug, Clone)]
pub struct SentAway(mpsc::Sender<Machine>);

impl SentAway {
    /// Reports a machine: whoever asked never waits for it.
    pub fn report(&self, machine: Machine) {
        // It is counted all the same.
        let _ = self.0.try_send(machine);
    }
}

/// Where it is said, and what reports it for as long as it is polled.
pub fn start(previewer: Previewer, events: Events) -> (SentAway, BoxFuture<'static, ()>) {
    let (waiting, queue) = mpsc::channel(ROOM);
    (SentAway(waiting), run(previewer, events, queue).boxed())
}

async fn run(previewer: Previewer, events: Events, mut machines: mpsc::Receiver<Machine>) {
    let mut reported = Reported::default();
    while let Some(machine) = machines.recv().await {
        let pools = previewer.snapshot().pools;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let known = pools.get(&machine.pool);
        let Machine { pool, from, why } = &machine;
        let left_out = reported.begin(now / WINDOW);
        if left_out > 0 {
            tracing::warn!("machines were sent away {left_out} more times than the log says");
        }
        let news = reported.news(&machine, &pools);
        if news.logs {
            let (exists, from) = (known.is_some(), from.to_canonical());
            tracing::warn!(pool, exists, %from, "a machine was sent away: {}", why.says());
        }
        let Some(known) = known.filter(|_| news.is_first) else { continue };
        let about = about(POOL, &known.name, &known.uid);
        let of = format!("{}/{}", why.word(), reported.window);
        let note = Note { reason: Reason::MachinesSentAway, warns: true, text: machine.text() };
        // What cannot be written is in the log.
        let _ = events.report_each(&about, &note, &of).await;
    }
    std::future::pending().await
}

impl Machine {
    fn text(&self) -> String {
        let Machine { pool, from, why } = self;
        let mends = match why {
            Why::NoToken | Why::OtherToken => format!(
                "where the pool was made anew, or its token exchanged, its user data has to be of today: tread \
                 pools stub {pool} prints it, and tread pools check says which MachineSets have another"
            ),
            Why::Version(_) => "boot it from a newer image".to_owned(),
        };
        format!(
            "a machine at {} asked for the config of the pool and was sent away, so that it asks no more: {}; {mends}",
            from.to_canonical(),
            why.says()
        )
    }
}

impl Why {
    fn word(&self) -> &'static str {
        match self {
            Why::NoToken | Why::OtherToken => "token",
            Why::Version(_) => "version",
        }
    }

    fn says(&self) -> &str {
        match self {
            Why::NoToken => "it shows no token",
            Why::OtherToken => "the token that it shows is none of this pool's",
            Why::Version(sentence) => sentence,
        }
    }
}

/// What was reported since the window began, by the pool's UID and the kind of reason. All names that are
/// no pool's count as one.
#[derive(Debug, Default)]
struct Reported {
    window: u64,
    of: BTreeMap<(String, &'static str), BTreeSet<IpAddr>>,
    left_out: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct News {
    /// It is the first one of its pool.
    is_first: bool,
    /// The log names it.
    logs: bool,
}

impl Reported {
    /// Begins a new window if it is time: forgets what was reported, and returns how many reports
    /// the log left out.
    fn begin(&mut self, window: u64) -> u64 {
        if window == self.window {
            return 0;
        }
        let left_out = self.left_out;
        *self = Reported { window, ..Reported::default() };
        left_out
    }

    fn news(&mut self, machine: &Machine, pools: &Pools) -> News {
        let pool = pools.get(&machine.pool).map(|it| it.uid.clone()).unwrap_or_default();
        let addresses = self.of.entry((pool, machine.why.word())).or_default();
        let is_first = addresses.is_empty();
        if addresses.contains(&machine.from) {
            return News { is_first, logs: false };
        }
        let logs = addresses.len() < ADDRESSES;
        if logs {
            addresses.insert(machine.from);
        } else {
            self.left_out += 1;
        }
        News { is_first, logs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pools::Pool;
    use std::sync::Arc;

    fn pools() -> Pools {
        let pool = Pool { name: "infra".to_owned(), uid: "1".to_owned(), ..Pool::default() };
        [(pool.name.clone(), Arc::new(pool))].into_iter().collect()
    }

    fn machine(pool: &str, last: u8, why: Why) -> Machine {
        Machine { pool: pool.to_owned(), from: IpAddr::from([10, 0, 0, last]), why }
    }

    #[test]
    fn of_each_pool_one_machine_is_told_of_in_ten_minutes_and_a_few_addresses_are_logged() {
        let (mut reported, pools) = (Reported::default(), pools());
        let mut news = |pool: &str, last, why| {
            let news = reported.news(&machine(pool, last, why), &pools);
            (news.is_first, news.logs)
        };
        assert_eq!(news("infra", 1, Why::OtherToken), (true, true));
        assert_eq!(news("infra", 1, Why::OtherToken), (false, false), "it asks again");
        assert_eq!(news("infra", 2, Why::NoToken), (false, true));
        // Whoever has no token hides nobody who has one.
        assert_eq!(news("infra", 1, Why::Version("old".to_owned())), (true, true));
        let logged = (3..=255).filter(|last| news("infra", *last, Why::OtherToken).1).count();
        assert_eq!(logged, ADDRESSES - 2);
        // However many names are made up, they are as one.
        let made_up =
            (0..200_u8).map(|number| news(&format!("made-up-{number}"), number, Why::NoToken));
        assert_eq!(made_up.filter(|(_, logs)| *logs).count(), ADDRESSES);
        assert_eq!(reported.of.len(), 3);
        assert_eq!(reported.begin(7), 245 + 190, "what was left out is said");
        assert_eq!(reported.begin(7), 0);
        assert!(reported.news(&machine("infra", 1, Why::OtherToken), &pools).is_first);
    }

    #[test]
    fn what_is_told_names_the_address_and_what_to_do_and_no_token() {
        let text = machine("infra", 7, Why::OtherToken).text();
        assert!(text.contains("10.0.0.7") && text.contains("tread pools stub infra"), "{text}");
        let text = machine("infra", 7, Why::Version("it reads 3.1: luks".to_owned())).text();
        assert!(text.contains("it reads 3.1: luks; boot it from a newer image"), "{text}");
    }
}
