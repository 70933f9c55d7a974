//! What a command line does to the system, as far as it says so itself: what a
//! program or a script does is its owner's affair.

use super::directives::is_known_property;
use super::expanded::{has_braces, is_spread, may_be_program};
use super::kernel;
use super::programs::{
    ALSO_VERBS, AT_ONCE, BY_ARGUMENTS, COMMAND_OPTIONS, ENDING, FEEDING, KEYWORDS, LOADERS,
    LOOKING, METHODS, PRINTING, READING, SHELLS, UNMISTAKABLE, WRAPPERS,
};
use super::systemctl::{self, BACKTICK, units_of};

const QUOTES: [char; 2] = ['"', '\''];
/// What a shell takes out of words.
const TAKEN_OUT: [char; 3] = ['"', '\'', '\\'];
/// What ends a command in a shell.
const SEPARATORS: [char; 7] = [BACKTICK, '(', ')', ';', '&', '|', '\n'];

/// Commands of more words are not looked into, and count as the worst.
const MOST_WORDS: usize = 512;

/// Behind wrappers, so many programs that could end the system are looked into; a line that names more
/// counts as the worst.
const MOST_PROGRAMS: usize = 16;

/// What stands for something that only who runs the command can tell.
const UNKNOWN: [char; 2] = ['%', '$'];

/// Whether a text names where the kernel takes commands, in one piece or in several.
pub(super) fn reaches_the_kernel(text: &str) -> bool {
    bare_reaches_the_kernel(&text.replace(TAKEN_OUT, ""))
}

/// Of a text without what a shell takes out.
fn bare_reaches_the_kernel(text: &str) -> bool {
    let is_spread = text.contains(['*', '?', '[', '{', '$', BACKTICK]);
    kernel::is_named_in(text)
        || is_spread && in_commands(text).split_whitespace().any(kernel::may_be_the_kernels)
}

/// Whether a command line is one that ends the system.
pub(super) fn runs_the_end(line: &str) -> bool {
    let bare = line.replace(TAKEN_OUT, "");
    if bare_reaches_the_kernel(&bare) || bare.contains("RTMIN") {
        return true;
    }
    let mut looked_into = 0;
    let all = commands(line);
    let is_run = runs_what_is_printed(line);
    all.iter().any(|command| {
        command.words.len() > MOST_WORDS
            || command.ends(&mut looked_into)
            || is_run && command.prints_the_end(&mut looked_into)
    })
}

/// The units that a command line starts or restarts, as systemctl takes their names.
pub(super) fn units_begun(line: &str) -> Vec<String> {
    if !line.contains("systemctl") {
        return Vec::new();
    }
    let mut units = Vec::new();
    for Command { words, .. } in commands(line) {
        let behind = words.iter().position(|word| program(word) == "systemctl");
        let behind = behind.and_then(|at| words.get(at + 1..)).unwrap_or_default();
        let is_name = |word: &&String| !word.starts_with('-') && !word.contains(BACKTICK);
        let named = behind.iter().filter(|word| is_name(word));
        units.extend(named.flat_map(|word| units_of(word)));
    }
    units
}

/// Whether a line hands what a command of it prints to what runs that.
fn runs_what_is_printed(line: &str) -> bool {
    is_piped_to_what_runs_it(line) || is_run_as_a_script(line)
}

/// Whether what a command prints is the script of a shell: `bash <(echo b)`, `source <(echo b)`.
fn is_run_as_a_script(line: &str) -> bool {
    let mut before = line.split("<(").collect::<Vec<_>>();
    before.pop();
    before.iter().any(|before| {
        let command = before.rsplit(SEPARATORS).next().unwrap_or_default().replace(QUOTES, " ");
        let words: Vec<&str> = command.split_whitespace().collect();
        // What stands behind `-c` is a command of its own.
        let own = words.rsplit(|word| is_short(word, 'c')).next().unwrap_or_default();
        let last = own.iter().rfind(|word| !word.starts_with('<'));
        own.iter().any(|word| SHELLS.contains(&program(word)))
            || last.is_some_and(|word| matches!(*word, "source" | "."))
    })
}

fn is_piped_to_what_runs_it(line: &str) -> bool {
    // What stands behind `||` is a pipe to nobody.
    let line = line.replace("||", "\n").replace("|&", "|");
    line.split('|').skip(1).any(|behind| {
        let command = behind.split(SEPARATORS).next().unwrap_or_default().replace(QUOTES, " ");
        let words: Vec<&str> = command.split_whitespace().collect();
        let has = |option| words.iter().any(|word| is_short(word, option));
        words.iter().any(|word| match program(word) {
            "sudo" => has('s') || has('i'),
            shell if SHELLS.contains(&shell) => !has('c'),
            other => READING.contains(&other),
        })
    })
}

/// A command, in words.
struct Command {
    words: Vec<String>,
    /// It may be no more than what stands in quotes.
    is_part: bool,
}

/// The commands of a line: what stands in quotes may be one, or a part of one.
fn commands(line: &str) -> Vec<Command> {
    // What is handed to a command stands apart from `<<<`.
    let line = line.replace("<<<", " <<< ");
    let apart = (line.replace(QUOTES, " \n "), true);
    let together = (line.replace(QUOTES, ""), false);
    let mut all = Vec::new();
    for (line, is_part) in [apart, together] {
        all.extend(in_commands(&line).split('\n').map(|command| {
            let words = command.split_whitespace().skip_while(|word| stands_before(word));
            let words = words.take(MOST_WORDS + 1).map(str::to_owned).collect();
            Command { words, is_part }
        }));
    }
    all
}

/// A line with its commands on lines of their own. Where the output of one stands in another, a backtick
/// stays for it.
fn in_commands(line: &str) -> String {
    let mut outer = String::with_capacity(line.len());
    let mut inner = String::new();
    let mut is_inner = false;
    let mut is_escaped = false;
    for char in line.chars() {
        let commands = if is_inner { &mut inner } else { &mut outer };
        if char == BACKTICK && !is_escaped {
            commands.push_str(if is_inner { " \n " } else { "`" });
            is_inner = !is_inner;
        } else if SEPARATORS.contains(&char) {
            commands.push_str(" \n ");
        } else {
            commands.push(char);
        }
        is_escaped = char == '\\';
    }
    outer + " \n " + &inner
}

/// Whether a word in a shell stands before a command: a keyword, an assignment or a redirection.
fn stands_before(word: &str) -> bool {
    KEYWORDS.contains(&word)
        || word.contains('=') && !word.starts_with(['-', '='])
        || word.starts_with(['>', '<'])
}

impl Command {
    /// Whether what it prints ends the system where that is run.
    fn prints_the_end(&self, looked_into: &mut usize) -> bool {
        let Some((first, rest)) = self.words.split_first() else { return false };
        let printed: Vec<&str> = rest.iter().map(String::as_str).collect();
        PRINTING.contains(&program(first)) && wrapped_ends("eval", &printed, looked_into)
    }

    fn ends(&self, looked_into: &mut usize) -> bool {
        // In a part the output of a command is a piece of a sentence.
        let words = self.words.iter().filter(|word| !self.is_part || !word.contains(BACKTICK));
        let words: Vec<&str> = words.map(String::as_str).collect();
        let Some((first, rest)) = words.split_first() else { return false };
        // Only who runs it can tell what that is.
        match is_unknown_program(first) {
            true => !self.is_part,
            false => command_ends(program(first), rest, self.is_part, looked_into),
        }
    }
}

fn command_ends(program: &str, rest: &[&str], is_part: bool, looked_into: &mut usize) -> bool {
    if is_wrapper(program) {
        return wrapper_ends(program, rest) || wrapped_ends(program, rest, looked_into);
    }
    if SHELLS.contains(&program) {
        // What it takes as a command is judged as that.
        let has_command = rest.iter().any(|word| is_short(word, 'c'));
        return shell_ends(rest, looked_into)
            || !is_part && !has_command && names_the_end(program, rest, looked_into);
    }
    // What a part says may be a sentence. Where it is a command, it is found in the whole line, too.
    program_ends(program, rest, is_part) || !is_part && names_the_end(program, rest, looked_into)
}

fn is_wrapper(program: &str) -> bool {
    WRAPPERS.contains(&program) || LOADERS.iter().any(|begin| program.starts_with(begin))
}

/// Whether a command behind a wrapper ends the system. Which of the words is the command depends on the
/// options of each wrapper.
fn wrapped_ends(program: &str, rest: &[&str], looked_into: &mut usize) -> bool {
    let mut is_named = false;
    let mut at_once = AT_ONCE.contains(&program);
    let mut is_fed = FEEDING.contains(&program);
    // What a shell makes of the words behind it is handed to a program that ends nothing by itself.
    let mut takes_files = program == "find";
    for (at, word) in rest.iter().enumerate() {
        let behind = rest.get(at + 1..).unwrap_or_default();
        let inner = self::program(command_of(word));
        if !is_named && is_unknown(inner) && !word.contains('=') {
            return true;
        }
        if is_spread(word) {
            *looked_into += usize::from(has_braces(word));
            let may_be_it = !is_named && !takes_files;
            if may_be_it && is_spread_program(word) || is_spread_to_the_end(command_of(word)) {
                return true;
            }
        }
        let is_shell = SHELLS.contains(&inner);
        let is_by_arguments = BY_ARGUMENTS.contains(&inner);
        // Each is held against all that stands behind it.
        *looked_into += usize::from(is_by_arguments || is_shell);
        if *looked_into > MOST_PROGRAMS || is_fed && is_by_arguments {
            return true;
        }
        if program_ends(inner, behind, false)
            || !is_named && is_shell && shell_ends(behind, looked_into)
        {
            return true;
        }
        let is_wrapper = is_wrapper(inner);
        is_named |= !is_wrapper && (at_once && is_plain(word) || is_program(word));
        takes_files |= inner == "find" || LOOKING.contains(&inner);
        // What does not stand behind an option is no value of one.
        takes_files |= !is_wrapper && is_bare(word) && !is_behind_option(rest, at);
        takes_files &= !word.starts_with("-exec") && !word.starts_with("-ok");
        at_once &= is_wrapper || word.contains('=');
        at_once |= AT_ONCE.contains(&inner);
        is_fed |= FEEDING.contains(&inner);
    }
    false
}

/// The command in a word that is an option with a command; any other word stays.
fn command_of(word: &str) -> &str {
    let is_cut_from = |option: &str, whole: &&str| option.len() > 2 && whole.starts_with(option);
    match word.split_once('=') {
        Some((option, value)) if COMMAND_OPTIONS.iter().any(|whole| is_cut_from(option, whole)) => {
            value
        }
        Some(_) => word,
        None => word.strip_prefix("-c").filter(|rest| !rest.is_empty()).unwrap_or(word),
    }
}

/// Whether a word behind a program ends the system if that program runs it. Any program may run what stands
/// behind it, except for those that are known not to.
fn names_the_end(program: &str, rest: &[&str], looked_into: &mut usize) -> bool {
    let is_looking = LOOKING.contains(&program);
    // That one option takes a command.
    if is_looking && !(program == "rpm" && rest.iter().any(|word| word.starts_with("--pipe"))) {
        return false;
    }
    for (at, word) in rest.iter().enumerate() {
        let behind = rest.get(at + 1..).unwrap_or_default();
        let inner = base(word);
        if is_the_end(word, behind) {
            return true;
        }
        if UNMISTAKABLE.contains(&inner) {
            *looked_into += 1;
            if *looked_into > MOST_PROGRAMS || program_ends(inner, behind, false) {
                return true;
            }
        }
    }
    false
}

/// Whether a word is a program by which the system ends: by its path, also as the value of an option, or by
/// its name where that is no verb of another program.
fn is_the_end(word: &str, behind: &[&str]) -> bool {
    let path = word.split_once('=').map_or(word, |(_, value)| value);
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_path = directory.split('/').any(|part| matches!(part, "bin" | "sbin"));
    if !ENDING.contains(&name) || !is_path && word != name {
        return false;
    }
    let next = behind.first().copied().unwrap_or_default();
    match name {
        // Without a level it is the first process of a container.
        "init" => is_level(next),
        name => {
            is_path || !ALSO_VERBS.contains(&name) || next.starts_with(['-', '+']) || next == "now"
        }
    }
}

/// Whether a word is a level that `init` brings a system to.
fn is_level(word: &str) -> bool {
    matches!(word.as_bytes(), [b'0'..=b'6' | b's' | b'S' | b'q' | b'Q' | b'u' | b'U'])
}

/// Whether a word behind a wrapper is no option, no assignment and no number.
fn is_plain(word: &str) -> bool {
    !word.starts_with('-')
        && !word.contains('=')
        && word.starts_with(|it: char| it.is_alphabetic() || it == '/')
}

/// Whether a word is plain, and no path.
fn is_bare(word: &str) -> bool {
    is_plain(word) && !word.contains('/')
}

/// Whether a word may be the value of the option before it. Behind `--` the command stands, and an option
/// with `=` or with its value in the same word (`-n19`) has its value already.
fn is_behind_option(words: &[&str], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| words.get(before));
    before.is_some_and(|before| match before.strip_prefix("--") {
        Some(long) => !long.is_empty() && !long.contains('='),
        None => before.strip_prefix('-').is_some_and(|short| !has_value(short)),
    })
}

/// Whether short options have a value in their word: what is no letter is hardly an option.
fn has_value(short: &str) -> bool {
    short.contains(|it: char| !it.is_ascii_alphabetic()) || matches!(short, "iL" | "oL" | "eL")
}

/// Whether a word is a program by its whole path.
fn is_program(word: &str) -> bool {
    let places = ["/bin/", "/sbin/", "/libexec/", "/lib/", "/lib64/"];
    word.starts_with('/') && places.iter().any(|place| word.contains(place))
}

/// Whether what a shell runs ends the system.
fn shell_ends(rest: &[&str], looked_into: &mut usize) -> bool {
    let option = rest.iter().position(|word| is_short(word, 'c'));
    let (before, behind) = rest.split_at(option.unwrap_or(rest.len()));
    // A variable, or what a command prints, may be the option, or the script.
    if first_words(before, false).any(|at| before.get(at).is_some_and(|it| is_unknown(it))) {
        return true;
    }
    let Some((option, behind)) = behind.split_first() else { return false };
    first_words(behind, takes_word(option)).enumerate().any(|(nth, at)| {
        let words = behind.get(at..).unwrap_or_default();
        let before = words.iter().take_while(|word| stands_before(word)).count();
        let words = words.get(before..).unwrap_or_default();
        let Some((word, rest)) = words.split_first() else { return false };
        let program = program(word);
        // Each could hold others again, and is held against all that stands behind it.
        let is_more = nth > 0 || SHELLS.contains(&program) || is_wrapper(program);
        *looked_into += usize::from(is_more);
        *looked_into > MOST_PROGRAMS
            || is_unknown_program(word)
            || command_ends(program, rest, false, looked_into)
    })
}

/// Where the first word may stand that is no option of a shell, and no value of one. `may_be_value`: an
/// option before them may have one.
fn first_words<'w>(words: &'w [&str], mut may_be_value: bool) -> impl Iterator<Item = usize> + 'w {
    let mut is_found = false;
    words.iter().enumerate().filter_map(move |(at, word)| {
        if is_found {
            return None;
        }
        if word.starts_with(['-', '+']) {
            may_be_value |= takes_word(word);
            return None;
        }
        is_found = !may_be_value;
        may_be_value = false;
        Some(at)
    })
}

/// Whether an option of a shell may have the next word as its value: `-o`, also among others, `--rcfile`
/// and `--init-file`. Bash takes long options with one dash, too.
fn takes_word(option: &str) -> bool {
    match option.strip_prefix("--") {
        Some(long) => matches!(long, "rcfile" | "init-file"),
        None => option.contains(['o', 'O']) || option.ends_with("file"),
    }
}

/// Whether the options of a wrapper do more than run a command.
fn wrapper_ends(program: &str, rest: &[&str]) -> bool {
    match program {
        // A whole command in one word.
        "env" => rest.iter().any(|word| is_short(word, 'S') || word.starts_with("--s")),
        "systemd-run" | "systemd-mount" => {
            let mut words = rest.iter().peekable();
            while let Some(word) = words.next() {
                let value = match word.split_once('=') {
                    Some((option, value)) if sets_property(option) => value,
                    None if sets_property(word) => {
                        words.peek().copied().copied().unwrap_or_default()
                    }
                    _ if *word == "-p" => words.peek().copied().copied().unwrap_or_default(),
                    _ => match word.strip_prefix("-p") {
                        Some(value) => value,
                        None => continue,
                    },
                };
                let key = value.split_once('=').map_or(value, |(key, _)| key);
                if !is_property_alone(key) {
                    return true;
                }
            }
            false
        }
        _ => false,
    }
}

/// Whether a long option sets a property of a unit, also where it is cut short.
fn sets_property(option: &str) -> bool {
    let kinds = ["--property", "--timer-property", "--path-property", "--socket-property"];
    option.len() > "--".len() && kinds.iter().any(|whole| whole.starts_with(option))
}

/// Whether a property of a unit that a command makes concerns that unit alone.
fn is_property_alone(key: &str) -> bool {
    is_known_property(key)
        && super::relations::of_key(key).is_none_or(|_| key == "Slice")
        && !key.ends_with("Action")
        && !key.ends_with("JobMode")
        && !key.starts_with("Exec")
}

fn program(word: &str) -> &str {
    base(word.trim_start_matches(['-', '@', ':', '+', '!', '|']))
}

/// Whether only who runs it can tell what a word is: by a variable, or by what a command prints.
fn is_unknown(word: &str) -> bool {
    word.contains(UNKNOWN) || word.contains(BACKTICK)
}

/// Whether only who runs it can tell which program a word is: by that, or by what a shell makes names of
/// files of.
fn is_unknown_program(word: &str) -> bool {
    is_unknown(program(word)) || is_spread(word)
}

/// Whether a word behind a wrapper is no assignment and no value of an option.
fn is_spread_program(word: &str) -> bool {
    !word.contains('=') || word.starts_with('{')
}

/// Whether a shell may make a program of a word by which the system ends.
fn is_spread_to_the_end(word: &str) -> bool {
    may_be_program(word, ENDING.into_iter().chain(BY_ARGUMENTS))
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a word is short options, with this one among them.
fn is_short(word: &str, option: char) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.contains(option)
}

/// Whether a program ends the system by itself, or by what stands behind it. It may be a part of a command.
fn program_ends(program: &str, rest: &[&str], is_part: bool) -> bool {
    if ENDING.contains(&program) {
        return true;
    }
    let says = |wanted: &[&str]| rest.iter().any(|word| wanted.contains(word));
    let is_unknown = || rest.iter().any(|word| word.contains(UNKNOWN));
    match program {
        "systemctl" => is_unknown() || systemctl::ends(rest, is_part),
        // It calls systemctl with the two the other way round.
        "service" => match rest {
            [unit, verb, ..] if !unit.starts_with('-') => {
                is_unknown() || systemctl::ends(&[verb, unit], true)
            }
            _ => is_unknown(),
        },
        "loginctl" => is_unknown() || says(&systemctl::ENDING),
        "rpm-ostree" => {
            is_unknown()
                || says(&["--reboot", "finalize-deployment"])
                || rest.iter().any(|word| is_short(word, 'r'))
        }
        "ostree" => is_unknown() || says(&["--reboot"]),
        "bootc" => is_unknown() || rest.iter().any(|word| word.starts_with("--apply")),
        "dnf" | "dnf5" | "yum" | "leapp" | "transactional-update" => {
            is_unknown() || says(&["reboot", "--reboot", "kexec", "soft-reboot"])
        }
        "busctl" | "dbus-send" | "gdbus" | "varlinkctl" => {
            is_unknown()
                || rest.iter().any(|word| METHODS.iter().any(|method| word.contains(method)))
        }
        // The first process of the system, or all of them.
        "kill" => kills_the_first(rest),
        "pkill" | "killall" => is_unknown() || says(&["systemd", "init"]),
        "machine-config-daemon" => true,
        "ipmitool" => is_unknown() || says(&["power", "chassis"]),
        other => other.starts_with("fence_"),
    }
}

/// Whether one of those that are killed is the first process, or stands for all. What
/// comes first may be the signal.
fn kills_the_first(rest: &[&str]) -> bool {
    let mut words = rest.iter().copied().peekable();
    if let Some(signal) = words.next_if(|word| word.starts_with('-')) {
        // The signal by itself is another word.
        words.next_if(|_| matches!(signal, "-s" | "-n"));
    }
    let is_own = |word: &str| word.contains("PID") || word.contains("pid");
    let is_first = |word: &str| matches!(word.parse(), Ok(1_i64 | -1));
    words.any(|word| is_first(word) || word.contains(UNKNOWN) && !is_own(word))
}
