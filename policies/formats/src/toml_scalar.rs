//! Whether a token is a number, a date or a time of TOML 1.0.

/// A number, a date or a time.
pub(crate) fn is_scalar(token: &str) -> bool {
    is_integer(token) || is_float(token) || is_date_or_time(token)
}

/// Digits with single underscores between them.
fn digits(text: &str, digit: impl Fn(&u8) -> bool) -> bool {
    text.split('_').all(|part| !part.is_empty() && part.as_bytes().iter().all(&digit))
}

fn decimal(text: &str) -> bool {
    digits(text, u8::is_ascii_digit)
}

fn no_leading_zero(text: &str) -> bool {
    text.len() == 1 || !text.starts_with('0')
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['+', '-']).unwrap_or(text)
}

fn is_integer(token: &str) -> bool {
    let prefixed = |prefix: &str, radix: u32, digit: fn(&u8) -> bool| {
        token.strip_prefix(prefix).is_some_and(|rest| {
            digits(rest, digit) && i64::from_str_radix(&rest.replace('_', ""), radix).is_ok()
        })
    };
    let number = unsigned(token);
    (decimal(number) && no_leading_zero(number) && token.replace('_', "").parse::<i64>().is_ok())
        || prefixed("0x", 16, u8::is_ascii_hexdigit)
        || prefixed("0o", 8, |byte| matches!(byte, b'0'..=b'7'))
        || prefixed("0b", 2, |byte| matches!(byte, b'0' | b'1'))
}

fn is_float(token: &str) -> bool {
    let number = unsigned(token);
    if number == "inf" || number == "nan" {
        return true;
    }
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (number, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    (exponent.is_some() || fraction.is_some())
        && decimal(whole)
        && no_leading_zero(whole)
        && fraction.is_none_or(decimal)
        && exponent.is_none_or(|exponent| decimal(unsigned(exponent)))
}

fn is_date_or_time(token: &str) -> bool {
    let Some((date, rest)) = token.split_at_checked(10) else { return is_time(token) };
    if !is_date(date) {
        return is_time(token);
    }
    let Some(time) = rest.strip_prefix(['T', 't', ' ']) else { return rest.is_empty() };
    if let Some(time) = time.strip_suffix(['Z', 'z']) {
        return is_time(time);
    }
    match time.rfind(['+', '-']).and_then(|at| time.split_at_checked(at)) {
        Some((time, offset)) => is_time(time) && is_offset(offset),
        None => is_time(time),
    }
}

/// Numbers of two digits (the first of a date has four) between separators.
fn parts<const N: usize>(text: &str, separator: char, first: usize) -> Option<[u32; N]> {
    let mut numbers = [0; N];
    let mut split = text.split(separator);
    let mut width = first;
    for number in &mut numbers {
        let part = split.next()?;
        if part.len() != width || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *number = part.parse().ok()?;
        width = 2;
    }
    split.next().is_none().then_some(numbers)
}

fn is_date(text: &str) -> bool {
    let Some([year, month, day]) = parts(text, '-', 4) else { return false };
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn is_time(text: &str) -> bool {
    let (clock, fraction) = match text.split_once('.') {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (text, None),
    };
    let digit = |byte: u8| byte.is_ascii_digit();
    fraction.is_none_or(|fraction| !fraction.is_empty() && fraction.bytes().all(digit))
        && matches!(parts(clock, ':', 2), Some([0..=23, 0..=59, 0..=59]))
}

fn is_offset(text: &str) -> bool {
    matches!(parts(unsigned(text), ':', 2), Some([0..=23, 0..=59]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_dates_and_times_of_toml_1_0() {
        for token in [
            "0",
            "+1",
            "-17",
            "1_000",
            "0xdead_BEEF",
            "0o755",
            "0b11",
            "9223372036854775807",
            "-9223372036854775808",
            "1.0",
            "-0.5",
            "1e3",
            "1E+03",
            "6.6e-3",
            "inf",
            "-nan",
            "1979-05-27",
            "2000-02-29",
            "07:32:00",
            "00:32:00.999",
            "1979-05-27T07:32:00Z",
            "1979-05-27t07:32:00",
            "1979-05-27 07:32:00.5-07:00",
        ] {
            assert!(is_scalar(token), "{token}");
        }
        for token in [
            "",
            "+",
            "01",
            "1_",
            "_1",
            "1__0",
            "0x",
            "-0x1",
            "0X1",
            "0o8",
            "0b2",
            "1.",
            ".5",
            "1.e3",
            "1e",
            "01.0",
            "9223372036854775808",
            "Inf",
            "1979-5-27",
            "1979-02-29",
            "1900-02-29",
            "1979-13-01",
            "24:00:00",
            "07:32",
            "07:60:00",
            "1979-05-27T",
            "1979-05-27T07:32:00+7:00",
            "1979-05-27T07:32:00+24:00",
            "00:00:00.",
            "true",
            "€€€€",
        ] {
            assert!(!is_scalar(token), "{token}");
        }
    }
}
