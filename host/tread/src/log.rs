//! What is logged, and how.

use std::io::{self, IsTerminal as _};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tread_console::exit::UsageError;

/// Starts logging at the level that `TREAD_LOG` names. A service logs more, and
/// for machines unless a person watches.
pub(crate) fn start(serves: bool) -> Result<(), UsageError> {
    let level = match std::env::var_os("TREAD_LOG") {
        None if serves => LevelFilter::INFO,
        None => LevelFilter::WARN,
        Some(level) => log_level(&level.to_string_lossy())?,
    };
    let terminal = io::stderr().is_terminal();
    let coloured = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    // What fails there tread says itself, in its own words.
    let others = if level >= LevelFilter::DEBUG { level } else { LevelFilter::OFF };
    // Whoever asks once is told in one sentence, and not for each watch.
    let asked = if serves || level >= LevelFilter::DEBUG { level } else { LevelFilter::OFF };
    let spoken = Targets::new().with_default(level).with_targets([
        ("kube_client", others),
        ("kube_runtime", others),
        ("tower", others),
        ("tread_kube::watching", asked),
        ("tread_cluster::policies::registry::jobs", asked),
    ]);
    let log = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    let log = match (serves, terminal) {
        (true, false) => log.json().flatten_event(true).boxed(),
        (true, true) => log.with_ansi(coloured).boxed(),
        (false, _) => log.with_target(false).with_ansi(coloured).boxed(),
    };
    tracing_subscriber::registry().with(log.with_filter(spoken)).init();
    Ok(())
}

fn log_level(text: &str) -> Result<LevelFilter, UsageError> {
    Ok(match text.to_ascii_lowercase().as_str() {
        "" | "warn" => LevelFilter::WARN,
        "off" => LevelFilter::OFF,
        "error" => LevelFilter::ERROR,
        "info" => LevelFilter::INFO,
        "debug" => LevelFilter::DEBUG,
        "trace" => LevelFilter::TRACE,
        other => {
            let message = format!(
                "TREAD_LOG is {other:?}: write off, error, warn, info, debug or trace, or unset it"
            );
            return Err(UsageError(message));
        }
    })
}
