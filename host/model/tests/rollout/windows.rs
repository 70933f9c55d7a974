//! The cases of `tests/cases/rollouts/windows.yaml`.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;
use tread_model::protocol::Time;
use tread_model::rollout::{Opening, Window, WindowText, opening};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    case: String,
    windows: Vec<WindowText>,
    #[serde(default)]
    at: BTreeMap<String, String>,
    error: Option<String>,
}

fn in_words(opening: Opening) -> String {
    match opening {
        Opening::Always => "always".to_owned(),
        Opening::Open { ends, begins: true } => format!("open, ends {ends}"),
        Opening::Open { ends, begins: false } => format!("open, ends {ends}, begins nothing"),
        Opening::Closed { opens, turns_back: false } => format!("opens {opens}"),
        Opening::Closed { opens, turns_back: true } => format!("opens {opens}, turns back"),
    }
}

fn time(text: &str) -> Time {
    let time: jiff::Timestamp = text.parse().unwrap();
    Time(Duration::from_secs(u64::try_from(time.as_second()).unwrap()))
}

#[test]
fn windows_open_as_the_cases_say() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/rollouts/windows.yaml");
    let cases: Vec<Case> = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(cases.len() > 10);
    for Case { case, windows, at, error } in cases {
        let windows: Result<Vec<Window>, _> = windows.iter().map(Window::try_from).collect();
        match (windows, error) {
            (Ok(windows), None) => {
                assert!(!at.is_empty(), "{case}");
                for (now, says) in at {
                    assert_eq!(in_words(opening(&windows, time(&now))), says, "{case}: {now}");
                }
            }
            (windows, error) => {
                assert_eq!(windows.map_err(|it| it.to_string()).err(), error, "{case}")
            }
        }
    }
}

#[test]
fn a_window_opens_once_a_day_in_every_zone_whatever_its_clocks_do() {
    for zone in ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"] {
        for start in ["00:00", "01:30", "02:00", "02:30"] {
            let text = WindowText {
                days: Vec::new(),
                start: start.to_owned(),
                lasts: "20m".to_owned(),
                time_zone: zone.to_owned(),
                last_start: None,
                overrun: Default::default(),
            };
            let windows = [Window::try_from(&text).unwrap()];
            // From noon to noon, over both changes of the clocks, in steps as long as it lasts.
            for first in ["2026-03-01T12:00:00Z", "2026-09-25T12:00:00Z"] {
                let (mut opened, mut was_open) = (0, false);
                for step in 0..50 * 72 {
                    let now = Time(time(first).0 + Duration::from_secs(step * 1200));
                    let is_open = matches!(opening(&windows, now), Opening::Open { .. });
                    opened += usize::from(is_open && !was_open);
                    was_open = is_open;
                }
                assert_eq!(opened, 50, "{zone} {start} {first}");
            }
        }
    }
}
