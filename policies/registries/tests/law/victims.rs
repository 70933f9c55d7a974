//! The pulls that a change does harm to: names and lengths that stand for all.

use crate::runtime::{Source, find, goes_on, parsed, short_sources, sources};
use crate::world::{HOSTS, PATHS, Side};
use std::sync::LazyLock;
use tread_policy_registries::ShortNames;

/// The complete names of images, those that are not long.
pub(crate) static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let path = |host: &&str, path: &&str| format!("{host}/{path}");
    let mut names: Vec<String> =
        HOSTS.iter().flat_map(|host| PATHS.iter().map(move |it| path(host, it))).collect();
    // Docker's own images have no other name than the one with `library/`.
    names.retain(|name| parsed(name).is_some());
    names
});

/// What the runtime takes.
pub(crate) const LONGEST: usize = 255;

/// What is assumed: whether mirrors have whole images, and how long names are.
#[derive(Debug, Clone)]
pub(crate) struct Assumed {
    pub(crate) trusted: bool,
    pub(crate) longest: usize,
    /// Lengths to try besides those at which a name becomes too long.
    pub(crate) lengths: [usize; 3],
    pub(crate) short_names: ShortNames,
}

impl Assumed {
    /// Whether CRI-O's mode is enforcing, or whether it may be either.
    fn modes(&self) -> &[bool] {
        match self.short_names {
            ShortNames::Unknown => &[false, true],
            ShortNames::Enforcing => &[true],
            ShortNames::Disabled => &[false],
        }
    }
}

/// How much longer the places of a name are than itself.
pub(crate) fn growths(side: &Side, name: &str) -> Vec<isize> {
    let Some((end, registry)) = find(side, name) else { return vec![] };
    let places = registry.mirrors.iter().chain([&registry.own]);
    let places = places.filter(|place| !place.location.is_empty());
    places.map(|place| place.location.len() as isize - end as isize).collect()
}

/// Names that begin with `start`, of each length at which something may end, and
/// of some others.
pub(crate) fn long_names(
    start: &str,
    growths: &[isize],
    longest: usize,
    lengths: &[usize],
) -> Vec<String> {
    let mut lengths = lengths.to_vec();
    lengths.extend(growths.iter().map(|growth| LONGEST.saturating_add_signed(-growth)));
    lengths.push(longest);
    lengths.retain(|length| (start.len() + 1..=longest).contains(length));
    lengths.sort_unstable();
    lengths.dedup();
    let name = |length: &usize| format!("{start}{}", "r".repeat(length - start.len()));
    lengths.iter().map(name).collect()
}

/// The name of what a registry of the search list makes of a short name, were it
/// not too long.
pub(crate) fn completed(registry: &str, short: &str) -> String {
    match registry {
        "docker.io" if !short.contains('/') => format!("docker.io/library/{short}"),
        "h" => format!("docker.io/h/{short}"),
        registry => format!("{registry}/{short}"),
    }
}

/// The short names that begin with `start`, which is a path and a slash, or empty.
pub(crate) fn long_shorts(start: &str, sides: [&Side; 2], assumed: &Assumed) -> Vec<String> {
    let short = format!("{start}r");
    let mut all = Vec::new();
    let mut least = None;
    for side in sides {
        for registry in &side.search {
            let name = completed(registry, &short);
            let growth = (name.len() - short.len()) as isize;
            least = Some(least.unwrap_or(growth).min(growth));
            all.push(growth);
            all.extend(growths(side, &name).iter().map(|more| growth + more));
        }
    }
    let longest = assumed.longest.saturating_add_signed(-least.unwrap_or(0));
    long_names(start, &all, longest, &assumed.lengths)
}

/// The first pull that does not go on as before.
pub(crate) fn victim(before: &Side, after: &Side, assumed: &Assumed) -> Option<String> {
    // Only to save time.
    let blocks = [before, after].iter().any(|side| side.registries.values().any(|it| it.blocked));
    let concerned = |name: &str| blocks || find(before, name) != find(after, name);
    let is_broken = |old: Vec<Source>, new: Vec<Source>, digest: bool| {
        old != new && !goes_on(&old, &new, digest, assumed.trusted)
    };
    let starts = HOSTS.iter().map(ToString::to_string).chain(NAMES.iter().cloned());
    let long = starts.flat_map(|start| {
        let start = start + "/";
        let name = format!("{start}r");
        if !concerned(&name) {
            return vec![];
        }
        let growths = [growths(before, &name), growths(after, &name)].concat();
        let fits = |growth: &isize| *growth + assumed.longest as isize <= LONGEST as isize;
        // Where all fit, one name is like the other; a few are tried all the same.
        if growths.iter().all(fits) && start.matches('/').count() > 1 {
            return vec![];
        }
        long_names(&start, &growths, assumed.longest, &assumed.lengths)
    });
    let long = long.filter(|name| parsed(name).is_some());
    for name in NAMES.iter().filter(|name| concerned(name)).cloned().chain(long) {
        for digest in [false, true] {
            if is_broken(sources(before, &name, digest), sources(after, &name, digest), digest) {
                return Some(format!("{name}, by digest: {digest}"));
            }
        }
    }
    // Every path that a name above has may be asked for without a registry too.
    let starts = ["", "p/", "p/q/", "library/", "any/"];
    let long = starts.iter().flat_map(|start| long_shorts(start, [before, after], assumed));
    for short in PATHS.iter().map(ToString::to_string).chain(long) {
        for (digest, enforcing) in
            [false, true].iter().flat_map(|it| assumed.modes().iter().map(move |mode| (*it, *mode)))
        {
            let [old, new] =
                [before, after].map(|side| short_sources(side, &short, digest, enforcing));
            if is_broken(old, new, digest) {
                return Some(format!("{short}, by digest: {digest}, enforcing: {enforcing}"));
            }
        }
    }
    None
}
