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

/// The digits of the least number that rounds to infinity: 2^1024 - 2^970. It
/// has 309 of them, so its power of ten is the 308th.
const TOO_LARGE: &str = "17976931348623158079372897140530341507993413271003782693617377898044496829276475\
    09466490179775872070963302864166928879109465555478519404026306574886715058206819\
    08902000708383676273854845817711531764475730270069855571366959622842914819860834\
    936475292719074168444365510704342711559699508093042880177904174497792";

/// A float that no 64 bits hold: Go refuses it, others read infinity.
pub(crate) fn is_too_large(token: &str) -> bool {
    if !is_float(token) {
        return false;
    }
    let number = unsigned(token);
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || whole.bytes().chain(fraction.bytes()).filter(u8::is_ascii_digit);
    let Some(zeros) = digits().position(|digit| digit != b'0') else { return false };
    // Saturated, which is far from where it matters.
    let shift = unsigned(exponent)
        .bytes()
        .filter(u8::is_ascii_digit)
        .fold(0_i64, |all, digit| all.saturating_mul(10).saturating_add(i64::from(digit - b'0')));
    let shift = if exponent.starts_with('-') { -shift } else { shift };
    let places = whole.bytes().filter(u8::is_ascii_digit).count();
    let power = shift.saturating_add(places as i64 - zeros as i64 - 1);
    let limit = TOO_LARGE.bytes();
    power > 308 || (power == 308 && digits().skip(zeros).chain([b'0'; 309]).take(309).ge(limit))
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
    use proptest::prelude::*;

    #[test]
    fn a_number_is_too_large_where_64_bits_end() {
        let just_below = format!("{}7.9e0", TOO_LARGE.strip_suffix('8').unwrap_or_default());
        let too_large = format!("0.000{TOO_LARGE}e312");
        for (token, large) in [
            ("1e308", false),
            ("1e309", true),
            ("-1e999", true),
            ("0e999", false),
            ("0.0e99999999999999999999999", false),
            ("1e-99999999999999999999999", false),
            ("0.00001e99999999999999999999999", true),
            ("1.797693134862315708e308", false),
            ("17976931348623158_0.8e300", true),
            ("inf", false),
            ("1", false),
            ("x1e999", false),
            (&just_below, false),
            (&too_large, true),
        ] {
            assert_eq!(is_too_large(token), large, "{token}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..Default::default() })]

        #[test]
        fn the_library_finds_the_same_numbers_too_large(
            token in "[+-]?(0|[1-9][0-9]{0,3}|1797693134862315[78][0-9]{0,4})(\\.[0-9]{1,5})?(e[+-]?(29[0-9]|30[0-9]|31[0-9]|[0-9]))?"
        ) {
            let read = token.parse::<f64>().unwrap_or_default();
            let is_float = token.contains(['.', 'e']);
            prop_assert_eq!(is_too_large(&token), is_float && read.is_infinite());
        }
    }

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
