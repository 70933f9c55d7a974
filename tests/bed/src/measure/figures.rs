//! What was measured, as a table, and what of it is not as promised.

use anyhow::{Result, bail};
use std::io::Write as _;
use std::time::Duration;

/// What was measured, as a table, and what of it is not as promised.
#[derive(Default)]
pub(crate) struct Figures {
    rows: Vec<[String; 3]>,
    broken: Vec<String>,
}

impl Figures {
    /// One of them, and its limit.
    pub(crate) fn row(&mut self, what: &str, measured: String, limit: &str) {
        self.rows.push([what.to_owned(), measured, limit.to_owned()]);
    }

    /// Notes what is not kept.
    pub(crate) fn promised(&mut self, kept: bool, what: String) {
        self.broken.extend((!kept).then_some(what));
    }

    /// Prints them; an error names what is not kept.
    pub(crate) fn print(self) -> Result<()> {
        let mut out = std::io::stdout();
        let heads = ["what", "measured", "limit"];
        writeln!(out, "| {:<44} | {:>10} | {:>10} |", heads[0], heads[1], heads[2])?;
        writeln!(out, "| {:-<44} | {:->10} | {:->10} |", "", "", "")?;
        for [what, measured, limit] in &self.rows {
            writeln!(out, "| {what:<44} | {measured:>10} | {limit:>10} |")?;
        }
        match self.broken.as_slice() {
            [] => Ok(()),
            broken => bail!("{}", broken.join("; ")),
        }
    }
}

pub(crate) fn megabytes(kilobytes: u64) -> String {
    format!("{} MB", kilobytes / 1024)
}

pub(crate) fn milliseconds(time: Duration) -> String {
    format!("{:.0} ms", time.as_secs_f64() * 1e3)
}

pub(crate) fn tenths(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// Of sorted times, the one that so many percent are not above.
pub(crate) fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    let place = (times.len() * percent).div_ceil(100).saturating_sub(1);
    times.get(place).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_times() {
        let of = |count: u64, percent| {
            let mut times: Vec<Duration> = (1..=count).rev().map(Duration::from_secs).collect();
            percentile(&mut times, percent).as_secs()
        };
        assert_eq!(
            [of(100, 99), of(100, 50), of(1, 99), of(10, 99), of(0, 99)],
            [99, 50, 1, 10, 0]
        );
    }
}
