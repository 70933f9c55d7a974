//! Maintenance windows, in a time zone whose data is in the program.

use crate::protocol::Time;
use jiff::civil::{self, Weekday};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp, Zoned};
use serde::Deserialize;

/// How far from now a window is looked for: each is open at least once a week.
const DAYS: i64 = 8;
/// The longest window.
const LONGEST: SignedDuration = SignedDuration::from_hours(7 * 24);

/// A window as an admin writes it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WindowText {
    /// On which days it opens: `Mon`, …; every day if there are none.
    #[serde(default)]
    pub days: Vec<String>,
    /// When it opens: `22:00`.
    pub start: String,
    /// How long it is open: `4h`, `1h 30m`.
    pub lasts: String,
    /// By which clocks: `Europe/Berlin`.
    #[serde(default = "utc")]
    pub time_zone: String,
    /// How long before its end the last node begins.
    #[serde(default)]
    pub last_start: Option<String>,
    /// What becomes of nodes that are under way at its end.
    #[serde(default)]
    pub overrun: Overrun,
}

fn utc() -> String {
    "UTC".to_owned()
}

/// What becomes of nodes that are under way when a window ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Overrun {
    /// They finish.
    #[default]
    Finish,
    /// Those that have written nothing turn back; the others finish.
    TurnBack,
}

/// A window.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    days: Vec<Weekday>,
    start: civil::Time,
    lasts: SignedDuration,
    zone: TimeZone,
    last_start: SignedDuration,
    overrun: Overrun,
}

/// Why a text is no window.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadWindow {
    /// No day.
    #[error("days: {0} is none of Mon, Tue, Wed, Thu, Fri, Sat and Sun")]
    Day(String),
    /// No time of a day.
    #[error("start: {0} is no time of a day; write it as 22:00")]
    Start(String),
    /// No length.
    #[error("{0}: {1} is no length of a window; write it as 4h or 1h 30m, a week at most")]
    Length(&'static str, String),
    /// No node could begin.
    #[error("lastStart: {0} before the end no window is open that lasts {1}")]
    LastStart(String, String),
    /// No time zone.
    #[error("timeZone: {0} is not known; write it as Europe/Berlin or UTC")]
    Zone(String),
}

impl TryFrom<&WindowText> for Window {
    type Error = BadWindow;

    fn try_from(text: &WindowText) -> Result<Window, BadWindow> {
        let zone = TimeZoneDatabase::bundled().get(&text.time_zone);
        let lasts = length("lasts", &text.lasts)?;
        let last_start = match &text.last_start {
            Some(last) => length("lastStart", last)?,
            None => SignedDuration::ZERO,
        };
        if last_start >= lasts {
            let last_start = text.last_start.clone().unwrap_or_default();
            return Err(BadWindow::LastStart(last_start, text.lasts.clone()));
        }
        Ok(Window {
            days: text.days.iter().map(|text| day(text)).collect::<Result<_, _>>()?,
            start: text.start.parse().map_err(|_| BadWindow::Start(text.start.clone()))?,
            lasts,
            zone: zone.map_err(|_| BadWindow::Zone(text.time_zone.clone()))?,
            last_start,
            overrun: text.overrun,
        })
    }
}

fn length(field: &'static str, text: &str) -> Result<SignedDuration, BadWindow> {
    let length = text.parse().ok();
    let fits = |length: &SignedDuration| length.is_positive() && *length <= LONGEST;
    length.filter(fits).ok_or_else(|| BadWindow::Length(field, text.to_owned()))
}

fn day(text: &str) -> Result<Weekday, BadWindow> {
    const DAYS: [(&str, Weekday); 7] = [
        ("Mon", Weekday::Monday),
        ("Tue", Weekday::Tuesday),
        ("Wed", Weekday::Wednesday),
        ("Thu", Weekday::Thursday),
        ("Fri", Weekday::Friday),
        ("Sat", Weekday::Saturday),
        ("Sun", Weekday::Sunday),
    ];
    let day = DAYS.iter().find(|(name, _)| *name == text).map(|(_, day)| *day);
    day.ok_or_else(|| BadWindow::Day(text.to_owned()))
}

/// Whether nodes may be begun now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// There are no windows.
    Always,
    /// One is open.
    Open {
        /// Until when.
        ends: String,
        /// Whether a node may still be begun.
        begins: bool,
    },
    /// None is.
    Closed {
        /// When one opens: `at 2026-03-29 22:00 in Europe/Berlin`.
        opens: String,
        /// Whether nodes that are under way and have written nothing turn back.
        turns_back: bool,
    },
}

/// Whether nodes may be begun at this time.
pub fn opening(windows: &[Window], now: Time) -> Opening {
    let seconds = i64::try_from(now.0.as_secs()).unwrap_or(i64::MAX);
    let now = Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
    if windows.is_empty() {
        return Opening::Always;
    }
    let mut times: Vec<(Timestamp, Timestamp, Zoned, &Window)> =
        windows.iter().flat_map(|window| window.around(now)).collect();
    times.sort_by_key(|(starts, ends, ..)| (*starts, *ends));
    let open = times.iter().filter(|(starts, ends, ..)| *starts <= now && now < *ends);
    if let Some((_, ends, _, window)) = open.clone().max_by_key(|(_, ends, ..)| *ends) {
        let begins = open.clone().any(|(_, ends, _, it)| now < before(*ends, it.last_start));
        let ends = said(&ends.to_zoned(window.zone.clone()));
        return Opening::Open { ends, begins };
    }
    let last = times.iter().filter(|(_, ends, ..)| *ends <= now).max_by_key(|(_, ends, ..)| *ends);
    let turns_back = last.is_some_and(|(.., window)| window.overrun == Overrun::TurnBack);
    let next = times.iter().find(|(starts, ..)| now < *starts);
    let opens = next.map_or_else(|| "never".to_owned(), |(_, _, starts, _)| said(starts));
    Opening::Closed { opens, turns_back }
}

impl Window {
    /// The times when it is open, not far from now.
    ///
    /// An hour that is skipped is the one after it, and of one that is repeated only the first
    /// counts: on each day a window opens once, for as long as it lasts.
    fn around(&self, now: Timestamp) -> Vec<(Timestamp, Timestamp, Zoned, &Window)> {
        let today = now.to_zoned(self.zone.clone()).date();
        let days = (-DAYS..=DAYS).filter_map(|days| {
            let away = SignedDuration::from_hours(days.checked_mul(24)?);
            let date = today.checked_add(away).ok()?;
            let opens = self.days.is_empty() || self.days.contains(&date.weekday());
            let starts = date.to_datetime(self.start).to_zoned(self.zone.clone()).ok()?;
            let ends = starts.timestamp().checked_add(self.lasts).ok()?;
            opens.then(|| (starts.timestamp(), ends, starts, self))
        });
        days.collect()
    }
}

fn before(time: Timestamp, span: SignedDuration) -> Timestamp {
    time.checked_sub(span).unwrap_or(Timestamp::MIN)
}

fn said(time: &Zoned) -> String {
    let zone = time.time_zone().iana_name().unwrap_or("UTC");
    format!("at {} in {zone}", time.strftime("%Y-%m-%d %H:%M"))
}
