//! What this process takes, by the names that all exporters have for it. Read of
//! /proc when somebody asks.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

const CPU: &str = "process_cpu_seconds_total";
const RESIDENT: &str = "process_resident_memory_bytes";
const VIRTUAL: &str = "process_virtual_memory_bytes";
const OPEN: &str = "process_open_fds";
const MOST_OPEN: &str = "process_max_fds";
const STARTED: &str = "process_start_time_seconds";

/// In a second, for whoever reads /proc: on every architecture that tread runs on.
const TICKS: f64 = 100.0;

/// Each by its name, and with what it means.
pub(super) const ALL: [(&str, &str); 6] = [
    (CPU, "Processor time of this process"),
    (RESIDENT, "Memory of this process that is there"),
    (VIRTUAL, "Memory of this process that is mapped"),
    (OPEN, "Files and connections that are open"),
    (MOST_OPEN, "How many files and connections may be open"),
    (STARTED, "When this process was started"),
];

/// Asks the system each time.
#[derive(Debug)]
pub(super) struct Process {
    started: f64,
}

impl Process {
    /// This one, which was started just now.
    pub(super) fn now() -> Process {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Process { started: started.as_secs_f64() }
    }

    fn value(&self, name: &str) -> Option<f64> {
        match name {
            CPU => cpu_seconds(),
            RESIDENT => in_status("VmRSS:"),
            VIRTUAL => in_status("VmSize:"),
            OPEN => open_files(),
            MOST_OPEN => most_open_files(),
            STARTED => Some(self.started),
            _ => None,
        }
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (name, help) in ALL {
            // Where the system does not say, nothing is said.
            let Some(value) = self.value(name) else { continue };
            match name.strip_suffix("_total") {
                Some(name) => {
                    let metric = ConstCounter::new(value);
                    let kind = metric.metric_type();
                    metric.encode(encoder.encode_descriptor(name, help, None, kind)?)?;
                }
                None => {
                    let metric = ConstGauge::new(value);
                    let kind = metric.metric_type();
                    metric.encode(encoder.encode_descriptor(name, help, None, kind)?)?;
                }
            }
        }
        Ok(())
    }
}

/// Of all threads, also those that ended.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS)
}

/// A line of /proc/self/status, which is in KiB.
fn in_status(field: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0)
}

fn open_files() -> Option<f64> {
    // One of them is the directory itself.
    let open = std::fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1);
    u32::try_from(open).ok().map(f64::from)
}

fn most_open_files() -> Option<f64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_says_all_of_it() {
        let process = Process::now();
        for (name, _) in ALL {
            let value = process.value(name);
            // So early it may not have taken a hundredth of a second.
            let least = if name == CPU { 0.0 } else { 1.0 };
            assert!(value.is_some_and(|value| value >= least), "{name}: {value:?}");
        }
    }
}
