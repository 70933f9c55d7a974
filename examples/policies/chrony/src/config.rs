//! What a text says to chronyd, so that two texts that mean the same are equal.
//! As chrony.conf(5) has it: names of directives are not case-sensitive, and a
//! line that starts with one of `!;#%` is a comment.

use std::collections::{BTreeMap, BTreeSet};
use tread_guest_sdk::glob;

/// The directives that are known here. Of one that stands twice both lines count: the
/// first may set more than the second, or be wrong, and then chronyd does not start.
const DIRECTIVES: &[&str] = &[
    "allow",
    "authselectmode",
    "bindacqaddress",
    "bindacqdevice",
    "bindaddress",
    "bindcmdaddress",
    "bindcmddevice",
    "binddevice",
    "broadcast",
    "clientloglimit",
    "clockprecision",
    "cmdallow",
    "cmddeny",
    "cmdport",
    "cmdratelimit",
    "combinelimit",
    "confdir",
    "corrtimeratio",
    "deny",
    "driftfile",
    "dscp",
    "dumpdir",
    "dumponexit",
    "fallbackdrift",
    "hwclockfile",
    "hwtimestamp",
    "hwtstimeout",
    "include",
    "initstepslew",
    "keyfile",
    "leapseclist",
    "leapsecmode",
    "leapsectz",
    "local",
    "lock_all",
    "log",
    "logbanner",
    "logchange",
    "logdir",
    "mailonchange",
    "makestep",
    "manual",
    "maxchange",
    "maxclockerror",
    "maxdistance",
    "maxdrift",
    "maxjitter",
    "maxntsconnections",
    "maxsamples",
    "maxslewrate",
    "maxupdateskew",
    "minsamples",
    "minsources",
    "nocerttimecheck",
    "noclientlog",
    "nosystemcert",
    "ntpsigndsocket",
    "ntsaeads",
    "ntsdumpdir",
    "ntsntpserver",
    "ntsport",
    "ntsprocesses",
    "ntsratelimit",
    "ntsrefresh",
    "ntsrotate",
    "ntsservercert",
    "ntsserverkey",
    "ntstrustedcerts",
    "opencommands",
    "peer",
    "pidfile",
    "pool",
    "port",
    "ptpdomain",
    "ptpport",
    "ratelimit",
    "refclock",
    "refresh",
    "reselectdist",
    "rtcautotrim",
    "rtcdevice",
    "rtcfile",
    "rtconutc",
    "rtcsync",
    "sched_priority",
    "server",
    "smoothtime",
    "sourcedir",
    "stratumweight",
    "tempcomp",
    "user",
];

/// Where the time comes from: in whatever order they stand. Not here: `refclock`, as a
/// clock without a name of its own is known by its number.
const SOURCES: &[&str] = &["peer", "pool", "server"];

/// What one file says.
#[derive(Debug, Default)]
pub struct Config<'a> {
    /// In lower case, and what stands behind it.
    directives: Vec<(String, Vec<&'a str>)>,
}

impl<'a> Config<'a> {
    /// None if there is a directive that is not known here: then nothing can be
    /// said of what it does.
    pub fn read(text: &'a str) -> Option<Config<'a>> {
        let lines = text.lines().map(str::trim_start);
        let directives: Vec<(String, Vec<&str>)> = lines
            .filter(|line| !line.starts_with(['!', ';', '#', '%']))
            .filter_map(|line| {
                let mut words = line.split_whitespace();
                Some((words.next()?.to_ascii_lowercase(), words.collect()))
            })
            .collect();
        let known = |(name, _): &(String, Vec<&str>)| DIRECTIVES.contains(&name.as_str());
        directives.iter().all(known).then_some(Config { directives })
    }

    /// The names of the directives that do something else in `after`.
    pub fn changed(&self, after: &Config<'_>) -> BTreeSet<String> {
        // What stands in another file may count before or after a line here.
        let all_counts = self.reads_others() || after.reads_others();
        let said = |config: &Config<'_>| match all_counts {
            true => config.listed(),
            false => config.effective(),
        };
        let (old, new) = (said(self), said(after));
        let mut names: BTreeSet<String> = old.keys().chain(new.keys()).cloned().collect();
        names.retain(|name| old.get(name) != new.get(name));
        if names.is_empty() && all_counts && self.directives != after.directives {
            names.insert("the order of its directives".to_owned());
        }
        names
    }

    /// Whether chronyd reads `path` because of this file. Directories of
    /// `confdir` hold files that end in `.conf`, those of `sourcedir` in
    /// `.sources`; `include` takes a pattern.
    pub fn reads(&self, path: &str) -> bool {
        let within = |dir: &str, kind: &str| {
            let parent = path.rsplit_once('/').map(|(parent, _)| parent);
            path.ends_with(kind) && parent.is_some_and(|parent| may_be(dir, parent))
        };
        self.directives.iter().any(|(name, values)| match name.as_str() {
            "confdir" => values.iter().any(|dir| within(dir, ".conf")),
            "sourcedir" => values.iter().any(|dir| within(dir, ".sources")),
            "include" => values.iter().any(|pattern| glob::matches(&plain(pattern), path)),
            _ => false,
        })
    }

    /// Whether the keys are in the file at `path`.
    pub fn has_keys_in(&self, path: &str) -> bool {
        let mut files = self.directives.iter().filter(|(name, _)| name == "keyfile");
        files.any(|(_, values)| values.iter().any(|file| may_be(file, path)))
    }

    /// Whether other files are read as if they stood in this one.
    pub fn reads_others(&self) -> bool {
        self.directives.iter().any(|(name, _)| name == "include" || name == "confdir")
    }

    /// All values of each directive, in order.
    fn listed(&self) -> BTreeMap<String, Vec<String>> {
        let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, values) in &self.directives {
            all.entry(name.clone()).or_default().push(values.join(" "));
        }
        all
    }

    /// The values of each directive that count.
    fn effective(&self) -> BTreeMap<String, Vec<String>> {
        let mut all = self.listed();
        for (name, values) in &mut all {
            if SOURCES.contains(&name.as_str()) {
                values.sort();
            }
        }
        // Which of them stands last decides on an address that both name.
        for (one, other) in [("allow", "deny"), ("cmdallow", "cmddeny")] {
            if all.contains_key(one) && all.contains_key(other) {
                let both = self.directives.iter().filter(|(name, _)| name == one || name == other);
                let both = both.map(|(name, values)| format!("{name} {}", values.join(" ")));
                all.insert(one.to_owned(), both.collect());
            }
        }
        all
    }
}

/// Whether `named` may be the file or directory at `path`. One that goes back by `..` may
/// be any, as a link may stand before it.
fn may_be(named: &str, path: &str) -> bool {
    named.split('/').any(|part| part == "..") || plain(named) == path
}

/// An absolute path with one `/` between its parts. A relative one begins at `/`, where
/// chronyd runs.
fn plain(path: &str) -> String {
    let parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
    parts.flat_map(|part| ["/", part]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(before: &str, after: &str) -> Vec<String> {
        let (before, after) = (Config::read(before).unwrap(), Config::read(after).unwrap());
        before.changed(&after).into_iter().collect()
    }

    #[test]
    fn what_means_the_same_is_equal() {
        for (before, after) in [
            ("server a\n", "! one\n; two\n# three\n  % four\n\n  server   a\n"),
            ("server a\nrtcsync\n", "RTCsync\nServer a"),
            ("server a\nserver b\n", "server b\nserver a\n"),
            ("allow 10.0.0.0/8\ndeny 10.1.0.0/16", "allow 10.0.0.0/8\ndeny  10.1.0.0/16"),
            ("confdir /etc/chrony.d\nport 0", "confdir /etc/chrony.d\n# off\nport 0"),
        ] {
            assert!(changed(before, after).is_empty(), "{before:?} to {after:?}");
        }
    }

    #[test]
    fn what_chronyd_would_do_differently_is_named_by_its_directive() {
        for (before, after, names) in [
            ("server a", "server b", &["server"][..]),
            ("server a", "pool a", &["pool", "server"]),
            ("server a", "server a iburst", &["server"]),
            ("makestep 1 3", "makestep 1 3\nmakestep 10 1", &["makestep"]),
            // What the first line sets stays where the second says nothing of it.
            ("driftfile /a interval 10\ndriftfile /a", "driftfile /a", &["driftfile"]),
            // chronyd does not start with a line that is wrong, whatever follows.
            ("makestep 1 3", "makestep x\nmakestep 1 3", &["makestep"]),
            // Without a name of its own it is known by its number.
            ("refclock PPS a\nrefclock SHM 0", "refclock SHM 0\nrefclock PPS a", &["refclock"]),
            ("allow 10.0.0.0/8\ndeny 10.0.0.0/8", "deny 10.0.0.0/8\nallow 10.0.0.0/8", &["allow"]),
            ("log tracking", "log tracking\nlog rtc", &["log"]),
            // What the directory holds may say something of the port, too.
            ("port 0\nconfdir /d", "confdir /d\nport 0", &["the order of its directives"]),
            ("port 1\nconfdir /d\nport 0", "confdir /d\nport 0", &["port"]),
        ] {
            assert_eq!(changed(before, after), names, "{before:?} to {after:?}");
        }
    }

    #[test]
    fn an_unknown_directive_makes_the_file_unreadable() {
        assert!(Config::read("server a\nserve b").is_none());
    }

    #[test]
    fn the_files_that_are_read_as_well_are_found() {
        let text = "confdir /etc/chrony.d/\nsourcedir /run/a /etc/chrony.d\ninclude /etc/x/*.cfg";
        let config = Config::read(text).unwrap();
        for (path, reads) in [
            ("/etc/chrony.d/a.conf", true),
            ("/etc/chrony.d/a.sources", true),
            ("/etc/chrony.d/more/a.conf", false),
            ("/etc/chrony.d/a.cfg", false),
            ("/etc/chrony.db/a.conf", false),
            ("/etc/x/a.cfg", true),
        ] {
            assert_eq!(config.reads(path), reads, "{path}");
        }
    }

    #[test]
    fn a_path_is_the_same_however_it_is_written() {
        let keys = "/etc/chrony.keys";
        for (text, path, reads) in [
            ("keyfile /etc//chrony.keys", keys, true),
            ("keyfile /etc/./chrony.keys", keys, true),
            // Where a link may lead is not known.
            ("keyfile /etc/chrony.d/../chrony.keys", keys, true),
            ("keyfile etc/chrony.keys", keys, true),
            ("keyfile /etc/chrony/keys", keys, false),
            ("confdir //etc/./chrony.d", "/etc/chrony.d/a.conf", true),
            ("confdir /run/../etc/chrony.d", "/etc/chrony.d/a.conf", true),
            ("sourcedir /etc//chrony.d//", "/etc/chrony.d/a.sources", true),
            ("include /etc//x/*.cfg", "/etc/x/a.cfg", true),
        ] {
            let config = Config::read(text).unwrap();
            assert_eq!(config.reads(path) || config.has_keys_in(path), reads, "{text}");
        }
    }
}
