//! The kernel's arguments: an ordered list, in which one may stand several times.

/// What has to become of the arguments that are there.
#[derive(Debug, Clone)]
pub struct Edit<'e> {
    /// All that the node was booted with.
    pub booted: &'e [String],
    /// Those of earlier configs; the first of them is the one that was in effect then.
    pub earlier: Vec<&'e [String]>,
    /// Those of the new config.
    pub to: &'e [String],
}

/// The arguments in a command line, without their quotes, as the kernel reads them.
pub fn split(line: &str) -> Vec<String> {
    raw(line).into_iter().map(unquoted).collect()
}

/// The arguments of a line, as they are written.
fn raw(line: &str) -> Vec<&str> {
    let mut quoted = false;
    let ends = |c: char| {
        quoted ^= c == '"';
        c.is_ascii_whitespace() && !quoted
    };
    line.split(ends).filter(|part| !part.is_empty()).collect()
}

/// The kernel takes quotes off around a whole argument, or around its value.
fn unquoted(argument: &str) -> String {
    let inner = |text: &str| {
        let inner = text.strip_prefix('"')?;
        Some(inner.strip_suffix('"').unwrap_or(inner).to_owned())
    };
    if let Some(whole) = inner(argument) {
        return whole;
    }
    match argument.split_once('=') {
        Some((key, value)) => {
            format!("{key}={}", inner(value).unwrap_or_else(|| value.to_owned()))
        }
        None => argument.to_owned(),
    }
}

/// An argument as a command line has it.
pub fn quoted(argument: &str) -> String {
    let has_space = |text: &str| text.contains(|c: char| c.is_ascii_whitespace());
    match argument.split_once('=') {
        _ if argument.is_empty() => "\"\"".to_owned(),
        Some((key, value)) if !has_space(key) && has_space(value) => format!("{key}=\"{value}\""),
        _ if has_space(argument) => format!("\"{argument}\""),
        _ => argument.to_owned(),
    }
}

fn count(all: &[String], argument: &str) -> usize {
    all.iter().filter(|it| *it == argument).count()
}

impl Edit<'_> {
    /// Every argument that a config has a say in, each once.
    fn known(&self) -> Vec<&str> {
        let earlier = self.earlier.iter().copied().flatten();
        let mut known: Vec<&str> = earlier.chain(self.to).map(String::as_str).collect();
        known.sort_unstable();
        known.dedup();
        known
    }

    /// How often an argument is there that no config put there.
    fn of_others(&self, argument: &str) -> usize {
        let own = self.earlier.first().map_or(0, |first| count(first, argument));
        count(self.booted, argument).saturating_sub(own)
    }

    /// What is not as it is to be; nothing if all is. Values are not named: what somebody
    /// gives the kernel may be no one else's concern.
    pub fn missing(&self, there: &[String]) -> Option<String> {
        let named = |argument: &str| argument.split('=').next().unwrap_or_default().to_owned();
        for argument in self.known() {
            let wanted = self.of_others(argument) + count(self.to, argument);
            let found = count(there, argument);
            if found != wanted {
                let named = named(argument);
                return Some(format!("{named} is there {found} times, and not {wanted} times"));
            }
        }
        is_in_order(self.to, there)
            .then_some(())
            .map_or_else(|| Some("they are not in the order of the config".to_owned()), |()| None)
    }

    /// What `rpm-ostree kargs` is told so that they become as they are to be; nothing if
    /// they are. Those of configs are all taken away and put behind the others, so that
    /// their order is the config's.
    pub fn options(&self, line: &str) -> Vec<String> {
        if self.missing(&split(line)).is_none() {
            return Vec::new();
        }
        let mut options = Vec::new();
        for argument in self.known() {
            let mut written: Vec<&str> =
                raw(line).into_iter().filter(|it| unquoted(it) == argument).collect();
            written.drain(..self.of_others(argument).min(written.len()));
            options.extend(written.iter().map(|it| format!("--delete-if-present={it}")));
        }
        options.extend(self.to.iter().map(|it| format!("--append={}", quoted(it))));
        options
    }
}

/// Whether some arguments stand among others in their order.
pub fn is_in_order(some: &[String], all: &[String]) -> bool {
    let mut all = all.iter();
    some.iter().all(|argument| all.any(|it| it == argument))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<String> {
        split(line)
    }

    #[test]
    fn arguments_are_read_as_the_kernel_reads_them_and_written_so_that_it_reads_them_again() {
        for (line, expected) in [
            ("", vec![]),
            ("root=UUID=1 ro\n", vec!["root=UUID=1", "ro"]),
            ("a=\"b c\" d", vec!["a=b c", "d"]),
            ("\"a=b c\"", vec!["a=b c"]),
            ("dyndbg=\"file a.c +p; file b.c +p\"", vec!["dyndbg=file a.c +p; file b.c +p"]),
            ("a= \"\"", vec!["a=", ""]),
        ] {
            let read = split(line);
            assert_eq!(read, expected, "{line:?}");
            let written: Vec<String> = read.iter().map(|it| quoted(it)).collect();
            assert_eq!(split(&written.join(" ")), read, "{line:?} again: {written:?}");
        }
    }

    #[test]
    fn what_a_config_says_of_the_arguments_follows_what_others_say() {
        // What it was booted with, what the config had, what the new one has, what the next
        // boot has; what the tool is told.
        for (booted, from, to, next, options) in [
            ("ro", "", "", "ro", vec![]),
            ("ro", "", "nosmt", "ro", vec!["--append=nosmt"]),
            ("ro", "", "nosmt", "ro nosmt", vec![]),
            ("ro nosmt", "nosmt", "", "ro nosmt", vec!["--delete-if-present=nosmt"]),
            (
                "ro a=1 b",
                "a=1 b",
                "b a=1",
                "ro a=1 b",
                vec![
                    "--delete-if-present=a=1",
                    "--delete-if-present=b",
                    "--append=b",
                    "--append=a=1",
                ],
            ),
            // One that the image has too stays there once.
            ("quiet ro quiet", "quiet", "", "quiet ro quiet", vec!["--delete-if-present=quiet"]),
            ("quiet ro", "", "quiet", "quiet ro", vec!["--append=quiet"]),
            ("ro", "", "a=\"b c\"", "ro", vec!["--append=a=\"b c\""]),
            (
                "ro a=\"b c\"",
                "a=\"b c\"",
                "",
                "ro a=\"b c\"",
                vec!["--delete-if-present=a=\"b c\""],
            ),
        ] {
            let (booted, from, to) = (texts(booted), texts(from), texts(to));
            let edit = Edit { booted: &booted, earlier: vec![&from], to: &to };
            assert_eq!(edit.options(next), options, "{from:?} to {to:?} from {next}");
        }
    }

    #[test]
    fn what_was_staged_in_between_goes_again() {
        let (booted, from, passed, to) = (texts("ro quiet"), vec![], texts("quiet x"), texts("y"));
        let edit = Edit { booted: &booted, earlier: vec![&from, &passed], to: &to };
        let options =
            ["--delete-if-present=quiet", "--delete-if-present=x", "--append=y"].map(str::to_owned);
        assert_eq!(edit.options("ro quiet quiet x"), options);
        assert_eq!(edit.missing(&texts("ro quiet y")), None);
        assert!(edit.missing(&texts("ro quiet x y")).unwrap().starts_with("x is there 1 times"));
    }

    #[test]
    fn nothing_that_is_said_of_an_argument_holds_its_value() {
        let (booted, from, to) = (texts("ro"), vec![], texts("token=verysecret"));
        let edit = Edit { booted: &booted, earlier: vec![&from], to: &to };
        let missing = edit.missing(&booted).unwrap();
        assert!(missing.starts_with("token is there 0 times"), "{missing}");
        assert!(!missing.contains("verysecret"), "{missing}");
    }
}
