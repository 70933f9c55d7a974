//! Pairs that differ in where images are looked up.

use crate::chance::Chance;
use crate::node::{Node, Pair};
use std::collections::{BTreeMap, BTreeSet};
use tread_policy_registries::{Settings, ShortNames};

const HOSTS: &[&str] = &[
    "a.io",
    "a.io",
    "a.io:5000",
    "b.io",
    "m.io",
    "m.io:8443",
    "n.io",
    "c.w.io",
    "d.w.io:5000",
    "docker.io",
    "localhost:5000",
    "10.0.0.1:5000",
    "harbor.io",
];
const PATHS: &[&str] = &["", "", "", "/p", "/p/q", "/library", "/library/x", "/x", "/team_a"];
/// What is written seldom, or is a mistake.
const ODD: &[&str] = &[
    "[fd00::1]:5000",
    "[fd00::1]/p",
    "localhost",
    "harbor",
    "Reg.io",
    "a.io/UP",
    "a.io/p:tag",
    "a.io/p@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "a.io/",
    "a.io//p",
    "a_b.io/p",
    "https://a.io",
    "*.w.io/p",
    "*.w.io:5000",
    "index.docker.io",
    "",
];
/// As the policy begins what it takes for names that are written nowhere.
const UNWRITTEN: &[(&str, &str)] = &[
    ("z.io/any", "y"),
    ("a.io/any", "0"),
    ("a.io/any0", "/any1"),
    ("z.io:9", "9"),
    ("a.io:9", "0"),
    ("any.w.io", "/any"),
];
const WILDCARDS: &[&str] = &["*.w.io", "*.io", "*.c.w.io"];
const SEARCHED: &[&str] =
    &["a.io", "m.io", "docker.io", "index.docker.io", "d.w.io:5000", "harbor.io", "a.io:5000"];
const SHORTS: &[&str] = &["x", "r", "p/q", "library/x", "team_a/r", "Org/r", "a.b_c/r"];
const TARGETS: &[&str] = &[
    "a.io/r",
    "m.io/p/q",
    "docker.io/x",
    "index.docker.io/x",
    "z.io/r",
    "",
    "b.io/library/x",
    "b.io/r",
];
const PIECES: &[&str] = &[
    "location = \"b.io\"",
    "Location = \"b.io\"",
    "prefix = \"*.io\"",
    "BLOCKED = true",
    "blocked = \"true\"",
    "insecure = true",
    "insecure = 1",
    "proxy = \"http://proxy\"",
    "proxy = 1",
    "namespace-proxy = \"b.io\"",
    "namespace-proxy = 1",
    "mirror-by-digest-only = true",
    "pull-from-mirror = \"all\"",
    "pull-from-mirror = \"some\"",
    "short-name-mode = \"enforcing\"",
    "short-name-mode = \"ask\"",
    "credential-helpers = [\"pass\"]",
    "additional-layer-store-auth-helper = \"x\"",
    "unqualified-search-registries = [\"[fd00::1]\"]",
    "unqualified-search-registries = []",
    "[registries.search]\nregistries = [\"a.io\"]",
    "[registries.block]\nregistries = []",
    "[registries]",
    "[aliases]",
    "[[registry]]",
    "[[registry.mirror]]",
    "x = 1979-05-27T07:32:00Z",
    "x = \"\"\"\nlong\n\"\"\"",
    "x = [1, [2, { y = 0x1f }],]",
    "x = {a = 1,}",
    "x.y = 1e999",
    "# comment",
    "\\",
];

#[derive(Clone)]
struct Place {
    location: String,
    insecure: bool,
    pull: &'static str,
    namespace: &'static str,
}

#[derive(Clone)]
struct Registry {
    prefix: String,
    own: Place,
    blocked: bool,
    by_digest_only: bool,
    mirrors: Vec<Place>,
}

#[derive(Clone, Default)]
struct File {
    registries: Vec<Registry>,
    search: Option<Vec<&'static str>>,
    aliases: BTreeMap<&'static str, &'static str>,
    mode: &'static str,
}

fn scope(chance: &mut Chance) -> String {
    if chance.percent(3) {
        return chance.of(ODD).to_string();
    }
    if chance.percent(2) {
        // Behind it a name may become longer than the runtime takes.
        return format!("m.io/{}", "k".repeat(1 + chance.below(260)));
    }
    if chance.percent(2) {
        let (start, more) = chance.of(UNWRITTEN);
        return start.to_string() + &more.repeat(chance.of(&[0, 0, 1, 250, 300]));
    }
    chance.of(HOSTS).to_string() + chance.of(PATHS)
}

fn place(chance: &mut Chance, location: String) -> Place {
    let namespace = if chance.percent(4) { chance.of(&["a.io", "b.io"]) } else { "" };
    Place { location, insecure: chance.percent(10), pull: "", namespace }
}

fn registry(chance: &mut Chance) -> Registry {
    let wildcard = chance.percent(15);
    let prefix = if wildcard { chance.of(WILDCARDS).to_string() } else { scope(chance) };
    let location = match (wildcard, chance.percent(75)) {
        (true, true) => String::new(),
        (false, true) => prefix.clone(),
        (_, false) => scope(chance),
    };
    let by_digest_only = chance.percent(8);
    let mirror = |chance: &mut Chance| {
        let location = scope(chance);
        let mut place = place(chance, location);
        if !by_digest_only || chance.percent(3) {
            place.pull = chance.of(&["", "", "all", "digest-only", "digest-only", "tag-only"]);
        }
        place
    };
    let mirrors = (0..chance.below(3)).map(|_| mirror(chance)).collect();
    let mut own = place(chance, location);
    own.namespace = if chance.percent(2) { "b.io" } else { "" };
    Registry { prefix, own, blocked: chance.percent(8), by_digest_only, mirrors }
}

fn search(chance: &mut Chance) -> Option<Vec<&'static str>> {
    let searched = (0..chance.below(3)).map(|_| chance.of(SEARCHED)).collect();
    chance.percent(70).then_some(searched)
}

fn file(chance: &mut Chance, most: usize) -> File {
    let registries = (0..chance.below(most)).map(|_| registry(chance)).collect();
    let mut file = File { registries, search: search(chance), ..File::default() };
    if chance.percent(25) {
        file.aliases.insert(chance.of(SHORTS), chance.of(TARGETS));
    }
    if chance.percent(10) {
        file.mode = chance.of(&["enforcing", "permissive", "disabled"]);
    }
    file
}

/// The same location has to be blocked and insecure alike; mostly it is.
fn agree(chance: &mut Chance, file: &mut File) {
    if chance.percent(3) {
        return;
    }
    let mut flags = BTreeMap::new();
    for registry in &mut file.registries {
        let place = match registry.own.location.as_str() {
            "" => registry.prefix.clone(),
            location => location.to_string(),
        };
        let (insecure, blocked) =
            *flags.entry(place).or_insert((registry.own.insecure, registry.blocked));
        (registry.own.insecure, registry.blocked) = (insecure, blocked);
    }
}

fn change(chance: &mut Chance, file: &mut File) {
    let count = file.registries.len();
    let at = chance.below(count + 1);
    match chance.below(10) {
        0 => file.search = search(chance),
        1 => drop(file.aliases.insert(chance.of(SHORTS), chance.of(TARGETS))),
        2 => file.mode = chance.of(&["", "enforcing", "permissive"]),
        3 if at < count => drop(file.registries.remove(at)),
        4 if at < count => file.registries[at].mirrors.reverse(),
        5 if at < count => file.registries[at].own.insecure ^= true,
        6 if at < count => file.registries[at].blocked ^= true,
        7 if at < count => drop(file.registries[at].mirrors.pop()),
        8 if at < count => {
            let location = scope(chance);
            let mut place = place(chance, location);
            if !file.registries[at].by_digest_only {
                place.pull = chance.of(&["", "digest-only", "tag-only"]);
            }
            file.registries[at].mirrors.insert(0, place);
        }
        _ => file.registries.insert(at, registry(chance)),
    }
}

fn toml(file: &File) -> String {
    let mut text = String::new();
    if let Some(search) = &file.search {
        text += &format!("unqualified-search-registries = {search:?}\n");
    }
    if !file.mode.is_empty() {
        text += &format!("short-name-mode = {:?}\n", file.mode);
    }
    let place = |place: &Place| {
        let mut text = String::new();
        if !place.location.is_empty() {
            text += &format!("location = {:?}\n", place.location);
        }
        for (key, value) in [("pull-from-mirror", place.pull), ("namespace-proxy", place.namespace)]
        {
            if !value.is_empty() {
                text += &format!("{key} = {value:?}\n");
            }
        }
        if place.insecure {
            text += "insecure = true\n";
        }
        text
    };
    for registry in &file.registries {
        text += &format!("[[registry]]\nprefix = {:?}\n{}", registry.prefix, place(&registry.own));
        for (key, value) in
            [("blocked", registry.blocked), ("mirror-by-digest-only", registry.by_digest_only)]
        {
            if value {
                text += &format!("{key} = true\n");
            }
        }
        for mirror in &registry.mirrors {
            text += &format!("[[registry.mirror]]\n{}", place(mirror));
        }
    }
    if !file.aliases.is_empty() {
        text += "[aliases]\n";
    }
    for (short, target) in &file.aliases {
        text += &format!("{short:?} = {target:?}\n");
    }
    text
}

pub(crate) fn pair(chance: &mut Chance) -> Pair {
    let mut old = vec![file(chance, 5)];
    if chance.percent(30) {
        old.push(file(chance, 3));
    }
    let mut new = old.clone();
    for _ in 0..=chance.below(3) {
        let at = chance.below(new.len());
        change(chance, &mut new[at]);
    }
    if chance.percent(5) {
        new.push(file(chance, 3));
    }
    for file in old.iter_mut().chain(&mut new) {
        agree(chance, file);
    }
    let mut names = BTreeSet::new();
    let longest = chance.of(&[128, 128, 200, 255]);
    for file in old.iter().chain(&new) {
        add_names(chance, file, longest.into(), &mut names);
    }
    let (mut before, mut after) = (node(&old), node(&new));
    if chance.percent(15) {
        let paths: Vec<String> = after.files.keys().cloned().collect();
        let path = chance.of(&paths);
        let text = chance.spoiled(&after.files[&path], PIECES);
        // As a mistake that comes, or one that goes.
        let side = if chance.percent(80) { &mut after } else { &mut before };
        side.files.insert(path, text);
    }
    // As the program asks.
    let short_names = ShortNames::Disabled;
    let settings = Settings { longest_name: longest, short_names, ..Settings::default() };
    Pair { before, after, names, settings }
}

fn node(files: &[File]) -> Node {
    let mut node = Node::default();
    for (number, file) in files.iter().enumerate() {
        match number {
            0 => node.set_main(toml(file)),
            number => node.set_drop_in(&format!("{number}0-more.conf"), toml(file)),
        }
    }
    node
}

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// What stands before a short name at most.
const SEARCHED_START: &str = "docker.io/library/";

/// Names under every prefix and place that the file has.
fn add_names(chance: &mut Chance, file: &File, longest: usize, names: &mut BTreeSet<String>) {
    let mut repositories: BTreeSet<String> =
        ["z.io/r", "docker.io/library/x", "docker.io/r/s"].map(str::to_string).into();
    let mut scopes: BTreeSet<&str> = file.search.iter().flatten().copied().collect();
    for registry in &file.registries {
        scopes.extend([registry.prefix.as_str(), registry.own.location.as_str()]);
        scopes.extend(registry.mirrors.iter().map(|mirror| mirror.location.as_str()));
    }
    let places: Vec<usize> = scopes.iter().map(|scope| scope.len()).collect();
    // The last that fits behind a place, the next one, and any.
    let mut lengths = |base: &str, longest: usize| {
        let fits =
            if places.is_empty() { 0 } else { 255 + base.len() - chance.of(&places).min(255) };
        [longest, fits, fits + 1, 1 + chance.below(longest)].map(|length| length.min(longest))
    };
    for scope in scopes {
        let bases: Vec<String> = match scope.strip_prefix('*') {
            Some(domain) => ["c", "e.c", "d"].map(|host| format!("{host}{domain}")).into(),
            None => vec![scope.to_string()],
        };
        for base in bases {
            if !base.contains([':', '/']) {
                for port in ["5000", "8443", "1"] {
                    repositories.insert(format!("{base}:{port}/r"));
                }
                repositories.insert(format!("{base}:5000/p/q/r"));
            }
            for below in ["", "/r", "/p/r", "/p/q/s", "/library/x", "/x", "/team_a/r", "/any/r"] {
                repositories.insert(format!("{base}{below}"));
            }
            for length in lengths(&base, longest) {
                let more = length.saturating_sub(base.len() + 1);
                repositories.insert(format!("{base}/{}", "l".repeat(more)));
            }
        }
    }
    repositories.extend(SHORTS.iter().map(ToString::to_string));
    repositories
        .extend(lengths("", longest - SEARCHED_START.len()).map(|length| "l".repeat(length)));
    repositories.retain(|repository| repository.len() <= longest);
    for repository in repositories {
        names.insert(format!("{repository}:1"));
        names.insert(format!("{repository}@{DIGEST}"));
    }
}
