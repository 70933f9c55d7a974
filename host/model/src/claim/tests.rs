#![allow(clippy::string_slice, reason = "a helper of a test fails the test")]

use super::pattern::check_path;
use super::*;
use proptest::strategy::Strategy;

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn a_pattern_matches_the_whole_id_and_stays_within_a_component() {
    for (text, id, matches) in [
        ("file:/etc/foo", "file:/etc/foo", true),
        ("file:/etc/foo", "file:/etc/foobar", false),
        ("file:/etc/foo", "file:/etc/foo/bar", false),
        ("file:/etc/foo", "unit:/etc/foo", false),
        ("file:/etc/Foo", "file:/etc/foo", false),
        ("file:/etc/*", "file:/etc/foo", true),
        ("file:/etc/*", "file:/etc/foo/bar", false),
        ("file:/etc/*", "file:/etc/.hidden", true),
        ("file:/etc/*.conf", "file:/etc/.conf", true),
        ("file:/etc/fo?", "file:/etc/foo", true),
        ("file:/etc/fo?", "file:/etc/fo", false),
        ("file:/etc?foo", "file:/etc/foo", false),
        ("file:/etc/**", "file:/etc/foo", true),
        ("file:/etc/**", "file:/etc/foo/bar/baz", true),
        ("file:/etc/**", "file:/etc", false),
        ("file:/etc/**", "file:/etcetera/foo", false),
        ("file:/etc/**/foo", "file:/etc/foo", true),
        ("file:/etc/**/foo", "file:/etc/a/b/foo", true),
        ("file:/etc/**/foo", "file:/etc/a/b/foo/c", false),
        ("file:/etc/**/a*/**/b", "file:/etc/x/ab/y/z/b", true),
        ("file:**", "file:/etc/foo", true),
        ("file:**/foo", "file:/etc/foo", true),
        ("file:/**", "file:/etc/foo", true),
        ("file:/etc/[a-c]x", "file:/etc/bx", true),
        ("file:/etc/[a-c]x", "file:/etc/dx", false),
        ("file:/etc/[!a-c]x", "file:/etc/dx", true),
        ("file:/etc/[!a]foo", "file:/etc//foo", false),
        ("file:/etc/{a,b}.conf", "file:/etc/b.conf", true),
        ("file:/etc/{a,b}.conf", "file:/etc/c.conf", false),
        ("file:/etc/{a,b/**}", "file:/etc/b/x/y", true),
        ("file:/etc/{**,b}/c", "file:/etc/x/y/c", true),
        ("file:/etc/{a*,b}*c", "file:/etc/axxc", true),
        ("file:/etc/{a*,b}*c", "file:/etc/bxc", true),
        ("file:/etc/{a*,b}*c", "file:/etc/b/c", false),
        ("file:/etc/\\*", "file:/etc/*", true),
        ("file:/etc/\\*", "file:/etc/x", false),
        ("file:/etc/\\[a\\]/*", "file:/etc/[a]/x", true),
        ("file:/etc/a b", "file:/etc/a b", true),
        ("unit:app@*.service", "unit:app@blue.service", true),
        ("unit:app@*.service", "unit:app@.service", true),
        ("unit:app@*.service", "unit:app.service", false),
        ("unit:app@.service", "unit:app@.service", true),
        ("unit:systemd-fsck@dev\\\\x2d.service", "unit:systemd-fsck@dev\\x2d.service", true),
        ("ssh-keys:*", "ssh-keys:core", true),
        ("ssh-keys:*", "password:core", false),
        ("password:core", "password:core", true),
        ("kernel-arguments", "kernel-arguments", true),
        ("kernel-arguments", "kernel-type", false),
        ("kernel-type", "kernel-type", true),
        ("os-image", "os-image", true),
        ("extensions", "extensions", true),
    ] {
        assert_eq!(pattern(text).matches(id), matches, "{text} {id}");
    }
}

#[test]
fn what_is_no_pattern_says_why() {
    let groups = "{a,b}".repeat(4);
    let braces = format!("file:/etc/{groups}{groups}");
    let classes = format!("file:/etc/{{[}}],a,b,c,d,e,f,g}}{groups}");
    let long = format!("file:/{}", "a".repeat(LONGEST));
    for (text, word) in [
        ("", "unknown kind"),
        ("files:/etc/foo", "did you mean \"file\""),
        ("/etc/foo", "unknown kind \"/etc/foo\": did you mean \"file:/etc/foo\"?"),
        ("crio.service", "did you mean \"unit:crio.service\"?"),
        ("kargs", "did you mean \"kernel-arguments\"?"),
        ("fips", "refuses"),
        ("storage:disks", "refuses"),
        ("users:bob", "refuses"),
        ("file", "needs a name"),
        ("file:", "needs a name"),
        ("unit", "needs a name"),
        ("ssh-keys:", "needs a name"),
        ("kernel-arguments:*", "takes nothing after it"),
        ("os-image:", "takes nothing after it"),
        ("file:etc/foo", "begins with /"),
        ("file:*/foo", "begins with /"),
        ("file:!/etc/foo", "negated"),
        ("unit:!crio.service", "negated"),
        ("file:/", "ends in a slash"),
        ("file:/etc/foo/", "/etc/foo/**"),
        ("file:/etc//foo", "two slashes"),
        ("file:/etc/../foo", "has a .."),
        ("file:/etc/./foo", "has a ."),
        ("file:/etc/foo/..", "has a .."),
        ("file:/etc/[a", "missing ']'"),
        ("file:/etc/{a", "missing '}'"),
        ("file:/etc/a\\", "no character to escape"),
        ("file:/etc/\\n", "before a glob character"),
        ("file:/etc/[é]", "ASCII"),
        ("file:/etc/a**", "stands alone"),
        ("file:/etc/**.conf", "stands alone"),
        ("file:/etc/***", "stands alone"),
        ("file:/etc/**{}", "stands alone"),
        ("file:/etc/{a/,b/}**", "stands alone"),
        ("file:/etc/{**}{,/a}", "stands alone"),
        ("file:/etc/a{**,b}", "stands alone"),
        ("file:/etc/{a,**}b", "stands alone"),
        ("file:/etc/{a,}", "ends in a slash"),
        ("file:/etc/a\nb", "control character"),
        ("file:/etc/a\u{200b}b", "hides or turns text"),
        ("file:/etc/a\u{3164}b", "hides or turns text"),
        ("unit:\u{202e}a.service", "hides or turns text"),
        (&braces, "more than 16 alternatives"),
        (&classes, "more than 16 alternatives"),
        (&long, "longer than"),
        ("unit:crio", "complete"),
        ("unit:crio.snapshot", "complete"),
        ("unit:a b.service", "no unit's name"),
        ("unit:dir/*.service", "no unit's name"),
        ("ssh-keys:a/b", "no user's name"),
    ] {
        let error = Pattern::parse(text).expect_err(text);
        assert!(error.contains(word), "{text}: {error}");
    }
}

#[test]
fn the_closer_pattern_is_the_more_specific_one() {
    let ranked = [
        "file:**/foo.conf",
        "file:/**",
        "file:/e?c/foo/very/long.conf",
        "file:/etc/**",
        "file:/etc/foo*",
        "file:/etc/foo.*",
        "file:/etc/foo.conf",
    ];
    for pair in ranked.windows(2) {
        let [less, more] = pair else { panic!("{pair:?}") };
        assert!(pattern(less).specificity() < pattern(more).specificity(), "{less} {more}");
    }
    assert_eq!(
        pattern("file:/etc/*a").specificity(),
        pattern("file:/etc/[b]").specificity(),
        "what follows the first glob character counts nothing"
    );
    assert_eq!(
        pattern("file:/etc/\\*/*").specificity(),
        pattern("file:/etc/x/*").specificity(),
        "an escape counts as what it stands for"
    );
}

#[test]
fn wide_claims_are_those_with_fewer_than_two_whole_directories() {
    for (text, wide) in [
        ("file:/**", true),
        ("file:**", true),
        ("file:**/foo", true),
        ("file:/*", true),
        ("file:/etc/**", true),
        ("file:/etc/*.conf", true),
        ("file:/etc/chrony*", true),
        ("file:/{etc,opt}/foo/**", true),
        ("file:/etc/chrony.d/**", false),
        ("file:/etc/chrony.d/*.conf", false),
        ("file:/etc/passwd", false),
        ("file:/motd", false),
        ("unit:*", true),
        ("unit:*.service", true),
        ("unit:[a-z]*.service", true),
        ("unit:app@*.service", false),
        ("unit:crio.service", false),
        ("ssh-keys:*", true),
        ("ssh-keys:core", false),
        ("password:?*", true),
        ("kernel-arguments", false),
    ] {
        assert_eq!(pattern(text).is_wide(), wide, "{text}");
    }
}

#[test]
fn an_escaped_name_matches_itself_and_nothing_else() {
    for name in ["/etc/foo", "/etc/a*b", "/etc/[x]/{y,z}", "/etc/w?", "/etc/back\\slash", "/a!"] {
        let id = format!("file:{name}");
        let exact = pattern(&format!("file:{}", escaped(name)));
        assert_eq!(exact.exact(), Some(id.as_str()), "{name}");
        let below = pattern(&format!("file:{}/**", escaped(name)));
        assert!(below.matches(&format!("{id}/x/y")), "{name}");
        assert!(!below.matches(&id), "{name}");
        assert!(!below.matches("file:/etc/axb/x"), "{name}");
    }
}

/// The matcher against the plainest one that there is, on every short pattern.
#[test]
fn globs_match_as_a_plain_matcher_says() {
    fn part(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern.split_first(), text.split_first()) {
            (None, None) => true,
            (None, Some(_)) => false,
            (Some((b'*', rest)), None) => part(rest, text),
            (Some((b'*', rest)), Some((_, tail))) => part(rest, text) || part(pattern, tail),
            (Some((b'?', rest)), Some((_, tail))) => part(rest, tail),
            (Some((a, rest)), Some((b, tail))) => a == b && part(rest, tail),
            (Some(_), None) => false,
        }
    }
    fn parts(pattern: &[&str], path: &[&str]) -> bool {
        match (pattern, path) {
            ([], []) => true,
            (["**"], path) => !path.is_empty(),
            (["**", rest @ ..], path) => {
                parts(rest, path)
                    || path.split_first().is_some_and(|(_, tail)| parts(pattern, tail))
            }
            ([first, rest @ ..], [name, tail @ ..]) => {
                part(first.as_bytes(), name.as_bytes()) && parts(rest, tail)
            }
            _ => false,
        }
    }
    fn texts(alphabet: &[char], length: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut from = 0;
        for _ in 0..length {
            let longer: Vec<String> = all[from..]
                .iter()
                .flat_map(|text| alphabet.iter().map(move |c| format!("{text}{c}")))
                .collect();
            from = all.len();
            all.extend(longer);
        }
        all
    }
    let paths: Vec<String> = texts(&['a', 'b', '/'], 4)
        .into_iter()
        .map(|tail| format!("/{tail}"))
        .filter(|path| check_path(path).is_ok())
        .collect();
    let mut compared = 0;
    for tail in texts(&['a', 'b', '/', '*', '?'], 5) {
        let glob = format!("/{tail}");
        let Ok(pattern) = Pattern::parse(&format!("file:{glob}")) else { continue };
        for path in &paths {
            let expected =
                parts(&glob.split('/').collect::<Vec<_>>(), &path.split('/').collect::<Vec<_>>());
            assert_eq!(pattern.matches(&format!("file:{path}")), expected, "{glob} {path}");
            compared += 1;
        }
    }
    assert!(compared > 50_000, "only {compared}");
}

/// Two stars that only braces bring together are one, and no `**`.
fn joined(a: &str, b: &str) -> String {
    let one = |a: bool, both: bool| a && !both;
    let ends = one(a.ends_with('*'), a.ends_with("**") || a.ends_with("\\*"));
    let begins = one(b.starts_with('*'), b.starts_with("**"));
    format!("{a}{}", if ends && begins { &b[1..] } else { b })
}

/// All alternatives of a glob's braces, by the plainest way to find them.
fn alternatives(glob: &str) -> Vec<String> {
    let bytes = glob.as_bytes();
    let mut depth = 0;
    let (mut open, mut cuts, mut at) = (None, Vec::new(), 0);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'[' => {
                at += 1;
                at += usize::from(matches!(bytes[at], b'!' | b'^'));
                at += if bytes[at] == b'\\' { 2 } else { 1 };
                while bytes[at] != b']' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'{' => {
                depth += 1;
                if depth == 1 {
                    open = Some(at);
                    cuts = vec![at];
                }
            }
            b',' if depth == 1 => cuts.push(at),
            b'}' if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    cuts.push(at);
                    let (before, after) = (&glob[..open.unwrap()], &glob[at + 1..]);
                    let options = cuts.windows(2).map(|cut| &glob[cut[0] + 1..cut[1]]);
                    return options
                        .flat_map(|option| alternatives(&joined(&joined(before, option), after)))
                        .collect();
                }
            }
            _ => {}
        }
        at += 1;
    }
    vec![glob.to_owned()]
}

/// Whether a glob without braces matches, byte by byte, trying everything.
fn tries(glob: &[u8], text: &[u8]) -> bool {
    match glob {
        [] => text.is_empty(),
        b"**" => true,
        [b'*', b'*', b'/', rest @ ..] => {
            let slashes = (0..text.len()).filter(|at| text[*at] == b'/');
            tries(rest, text) || slashes.into_iter().any(|at| tries(rest, &text[at + 1..]))
        }
        [b'*', rest @ ..] => {
            let end = text.iter().position(|byte| *byte == b'/').unwrap_or(text.len());
            (0..=end).any(|at| tries(rest, &text[at..]))
        }
        _ => {
            let Some((byte, tail)) = text.split_first() else { return false };
            match glob {
                [b'?', rest @ ..] => *byte != b'/' && tries(rest, tail),
                [b'[', rest @ ..] => {
                    let negated = matches!(rest[0], b'!' | b'^');
                    let mut rest = &rest[usize::from(negated)..];
                    let (mut first, mut found) = (true, false);
                    while first || rest[0] != b']' {
                        rest = &rest[usize::from(rest[0] == b'\\')..];
                        let low = rest[0];
                        rest = &rest[1..];
                        let mut high = low;
                        if rest[0] == b'-' && rest[1] != b']' {
                            rest = &rest[1..];
                            rest = &rest[usize::from(rest[0] == b'\\')..];
                            high = rest[0];
                            rest = &rest[1..];
                        }
                        found |= (low..=high).contains(byte);
                        first = false;
                    }
                    found != negated && *byte != b'/' && tries(&rest[1..], tail)
                }
                [b'\\', literal, rest @ ..] | [literal, rest @ ..] => {
                    literal == byte && tries(rest, tail)
                }
                [] => false,
            }
        }
    }
}

fn plainly(glob: &str, name: &str) -> bool {
    alternatives(glob).iter().any(|glob| tries(glob.as_bytes(), name.as_bytes()))
}

/// Globs of every kind of piece, braces within braces included.
fn globs() -> impl Strategy<Value = String> {
    const PIECES: [&str; 20] = [
        "a", "b", "c", "ab", "/", "/", "/", "*", "*", "**/", "/**", "?", "[ab]", "[!a]", "[a-c]",
        "[]a-]", "[^b-]", "\\*", ",", "é",
    ];
    let piece = proptest::sample::select(PIECES.to_vec()).prop_map(str::to_owned);
    let glob = proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat());
    let glob = glob.prop_recursive(2, 24, 3, |inner| {
        let braces = proptest::collection::vec(inner.clone(), 1..4);
        (inner.clone(), braces, inner)
            .prop_map(|(before, braces, after)| format!("{before}{{{}}}{after}", braces.join(",")))
    });
    glob.prop_map(|glob| format!("/{glob}"))
}

fn names() -> impl Strategy<Value = String> {
    "(/[abc*é,]{1,4}){1,4}"
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config {
        failure_persistence: None,
        max_global_rejects: 1_000_000,
        ..Default::default()
    })]

    /// Whatever a policy writes is a pattern or refused.
    #[test]
    fn no_text_panics(name in r"[/a*?\[\]{},!\\é]{0,40}", path in "[/ab*é]{0,40}") {
        for kind in ["file:/", "file:", "unit:", "ssh-keys:"] {
            if let Ok(pattern) = Pattern::parse(&format!("{kind}{name}")) {
                pattern.matches(&format!("{kind}{path}"));
                pattern.is_wide();
            }
        }
    }

    /// Of many globs at once, each matches as a matcher says that tries
    /// everything, and as the one says that policies use.
    #[test]
    fn all_globs_together_match_as_each_does_alone(
        globs in proptest::collection::vec(globs(), 1..12),
        names in proptest::collection::vec(names(), 1..12),
    ) {
        let globs: Vec<(String, Pattern)> = globs
            .into_iter()
            .filter_map(|glob| Some((Pattern::parse(&format!("file:{glob}")).ok()?, glob)))
            .map(|(pattern, glob)| (glob, pattern))
            .collect();
        proptest::prop_assume!(!globs.is_empty());
        let patterns = globs.iter().enumerate().map(|(at, (_, pattern))| (pattern.clone(), (0, at)));
        let router = Router::of(patterns.collect());
        for name in names {
            let found: Vec<usize> = router.claimants(&format!("file:{name}")).map(|it| it.1).collect();
            for (at, (glob, _)) in globs.iter().enumerate() {
                let expected = plainly(glob, &name);
                proptest::prop_assert_eq!(found.contains(&at), expected, "{} {}", glob, &name);
                proptest::prop_assert_eq!(fast_glob::glob_match(glob, &name), expected, "fast-glob: {} {}", glob, &name);
            }
        }
    }
}

/// What a hostile author could write: descriptions that are as large as they
/// may be, and a cluster's worth of changes that they match as far as possible.
#[test]
fn the_worst_claims_cost_no_more_than_64_words_for_each_byte_of_an_id() {
    let many = |claim: &dyn Fn(usize) -> String| -> Vec<String> { (0..256).map(claim).collect() };
    let filled = |claims: Vec<String>| -> Vec<Pattern> {
        let mut left = MOST_ELEMENTS;
        let patterns = claims.iter().map(|claim| pattern(claim));
        patterns
            .take_while(|pattern| {
                let fits = pattern.elements() <= left;
                left = left.saturating_sub(pattern.elements());
                fits
            })
            .collect()
    };
    let worst = [
        ("stars", many(&|n| format!("file:/{}*{n}", "*a".repeat(400)))),
        ("short stars", many(&|n| format!("file:/*a*a*a*a*{n}"))),
        ("components", many(&|n| format!("file:/{}{n}", "**/a*/".repeat(150)))),
        ("braces", many(&|n| format!("file:/{{a,?,*a,[!b]}}{{a,?,a*,[!b]}}*{n}"))),
        ("starts within starts", many(&|n| format!("file:/{}*", "a".repeat(n)))),
        ("starts with much behind", many(&|n| format!("file:/{}*a*a*a*", "a".repeat(n)))),
        ("classes", many(&|n| format!("file:/{}{n}", "[!b][a-z]?".repeat(80)))),
    ];
    let ids: Vec<String> = (0..4000).map(|n| format!("file:/{}/{n}", "a".repeat(250))).collect();
    let bytes: u64 = ids.iter().map(|id| id.len() as u64).sum();
    let most = (MOST_ELEMENTS / 64) as u64;
    for (what, claims) in worst {
        let patterns = filled(claims);
        assert_eq!(check_size(&patterns), Ok(()), "{what}");
        assert!(patterns.len() > 1, "{what}");
        let router = Router::of(patterns.into_iter().map(|pattern| (pattern, (0, 0))).collect());
        let cost: u64 = ids.iter().map(|id| router.claimants_at_cost(id).1).sum();
        assert!(cost <= bytes * most, "{what}: {cost} for {bytes}");
        assert!(cost >= bytes, "{what}: it should have cost something");
    }
}
