//! Lengths of time as programs in Go read them: `1h30m`, `1.5s`, `0`.

const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// How many nanoseconds a text says. None if it is none of these, below zero, or more than Go takes.
pub(crate) fn nanoseconds(text: &str) -> Option<u64> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(0);
    }
    let mut sum = 0_u64;
    loop {
        let (part, behind) = one(rest)?;
        sum = sum.checked_add(part).filter(|sum| i64::try_from(*sum).is_ok())?;
        if behind.is_empty() {
            return Some(sum);
        }
        rest = behind;
    }
}

/// A number with its unit, and what is behind it.
fn one(text: &str) -> Option<(u64, &str)> {
    let (whole, behind) = digits(text);
    let (fraction, behind) = behind.strip_prefix('.').map_or(("", behind), digits);
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let end = behind.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(behind.len());
    let (unit, behind) = behind.split_at_checked(end)?;
    let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()?.checked_mul(*unit)? };
    Some((whole.checked_add(part_of(*unit, fraction)?)?, behind))
}

/// So much of a unit as the digits behind a point say. Nobody writes more of them.
fn part_of(unit: u64, fraction: &str) -> Option<u64> {
    const MOST: usize = 6;
    match fraction.len() {
        0 => Some(0),
        digits @ 1..=MOST => {
            let scale = 10_u64.pow(u32::try_from(digits).ok()?);
            Some(unit * fraction.parse::<u64>().ok()? / scale)
        }
        _ => None,
    }
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_is_read_as_go_reads_it() {
        for (text, expected) in [
            ("0", 0),
            ("+0", 0),
            ("0s", 0),
            ("0h0m0s", 0),
            ("10s", 10_000_000_000),
            ("+1m0s", 60_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1.5s", 1_500_000_000),
            ("1.s", 1_000_000_000),
            (".25s", 250_000_000),
            ("0.000001h", 3_600_000),
            ("3ms2us1ns", 3_002_001),
            ("7\u{b5}s", 7_000),
            ("7\u{3bc}s", 7_000),
            ("0.5ns", 0),
            ("2562047h", 9_223_369_200_000_000_000),
        ] {
            assert_eq!(nanoseconds(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_go_does_not_read_and_what_is_below_zero_is_not_known() {
        for text in [
            "",
            "+",
            "10",
            "s",
            ".",
            ".s",
            "1x",
            "1S",
            "1 s",
            " 1s",
            "1s ",
            "-1s",
            "1s-1s",
            "1e3s",
            "1.2.3s",
            "9223372037s",
            "99999999999999999999s",
            "0.0000001s",
        ] {
            assert_eq!(nanoseconds(text), None, "{text}");
        }
    }
}
