//! Whether the options of chronyd's command line leave it its chrony.conf. By
//! chronyd(8) `-f` names another file, and directives behind the options take the
//! place of any.

/// Options that stand alone, and with which it goes on running.
const ALONE: &str = "46dmnrRsUx";

/// Options with a value, in the same word or in the next one.
const WITH_VALUE: &str = "FlLPtu";

/// Whether chronyd reads its chrony.conf where its unit has this environment. An
/// option that is not known here may name another configuration.
pub fn reads_chrony_conf(environment: &str) -> bool {
    // For systemd each of the two ends a line.
    let lines = environment.split(['\n', '\r']).map(str::trim);
    let variables =
        lines.filter(|line| !line.starts_with(['#', ';'])).filter_map(|line| line.split_once('='));
    let mut options = variables.filter(|(name, _)| name.trim() == "OPTIONS");
    options.all(|(_, value)| unquoted(value.trim()).is_some_and(are_known))
}

/// A value without the quotes around it. None if there are others within, or if it
/// goes on in the next line.
fn unquoted(value: &str) -> Option<&str> {
    let between = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    let value = between('"').or_else(|| between('\'')).unwrap_or(value);
    (!value.contains(['"', '\'', '\\'])).then_some(value)
}

/// Whether all of these are known options, and no directives.
fn are_known(options: &str) -> bool {
    let mut words = options.split_whitespace();
    while let Some(word) = words.next() {
        let letters = word.strip_prefix('-').unwrap_or_default();
        let rest = letters.trim_start_matches(|letter: char| ALONE.contains(letter));
        let is_known = match rest.strip_prefix(|letter: char| WITH_VALUE.contains(letter)) {
            Some("") => words.next().is_some(),
            Some(_) => true,
            None => rest.is_empty() && !letters.is_empty(),
        };
        if !is_known {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_options_that_are_known_leave_chronyd_its_chrony_conf() {
        for (environment, reads) in [
            ("", true),
            ("OPTIONS=", true),
            ("OPTIONS=\"\"", true),
            ("# Options.\nOPTIONS='-F 2'\n", true),
            ("OPTIONS=-4 -x -u chrony", true),
            ("OPTIONS=\"-4x -P50 -F -1\"", true),
            ("OTHER=\"-f /etc/other.conf\"", true),
            ("; OPTIONS=\"-f /etc/other.conf\"", true),
            ("OPTIONS=\"-f /etc/other.conf\"", false),
            ("OPTIONS=-f/etc/other.conf", false),
            ("OPTIONS=\"-4f /etc/other.conf\"", false),
            (" OPTIONS = -f /etc/other.conf", false),
            ("OPTIONS=-4\rOPTIONS=-f /etc/other.conf", false),
            ("OPTIONS=-4\nOPTIONS=-f /etc/other.conf", false),
            // Directives, each a word.
            ("OPTIONS=\"rtcsync\"", false),
            ("OPTIONS=\"-F 2 'server a'\"", false),
            ("OPTIONS=\"-- rtcsync\"", false),
            ("OPTIONS=\"-4 -\"", false),
            // It goes on, or ends too early.
            ("OPTIONS=\"-4\n-f /etc/other.conf\"", false),
            ("OPTIONS=-4 \\\n-f /etc/other.conf", false),
            ("OPTIONS=\"-4\" -f /etc/other.conf", false),
            ("OPTIONS=-F", false),
            ("OPTIONS=-y", false),
        ] {
            assert_eq!(reads_chrony_conf(environment), reads, "{environment}");
        }
    }
}
