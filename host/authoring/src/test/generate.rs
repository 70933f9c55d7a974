//! Changes as nobody would write them, for each kind of claim. The same claims
//! and cases always give the same changes.

use std::borrow::Cow;
use tread_model::change::{Change, Content, DropinState, FileState, State, Token, UnitState};
use tread_model::claim::Kind;
use tread_model::secrets::Tokens;

/// A generated change, and what is odd about it.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) label: String,
    pub(super) change: Change<'static>,
}

/// Randomly made changes of a claim, beside those that pair all contents.
const RANDOM: usize = 120;
/// The bytes of a large content.
const LARGE: usize = 256 << 10;

/// A secret that nothing else here is equal to.
const HIDDEN: Token = Token(1_000);

type Labelled<T> = (String, T);

/// Changes of this kind, the simple ones first. `ids` are changes that the
/// claim matches, `seeds` are texts that the policy's own cases hold.
pub(super) fn samples(kind: Kind, ids: &[String], seeds: &[String]) -> Vec<Sample> {
    let mut random = Random(0x7265_6164);
    let states = states(kind, seeds, &mut random);
    let mut samples = Vec::new();
    let mut add = |before: &Labelled<State<'static>>, after: &Labelled<State<'static>>| {
        let number = samples.len();
        if before.1 == after.1 {
            return;
        }
        let Some(id) = ids.get(number % ids.len().max(1)) else { return };
        let change = Change { id: id.clone(), before: before.1.clone(), after: after.1.clone() };
        // As a policy sees it that may not read secrets, and as one that may.
        let change = match (number % 4, Tokens::default().redact(&change)) {
            (0, _) | (_, Cow::Borrowed(_)) => change,
            (_, Cow::Owned(redacted)) => redacted,
        };
        samples.push(Sample { label: format!("from {} to {}", before.0, after.0), change });
    };
    let absent = ("nothing".to_owned(), State::Absent);
    for state in &states {
        add(&absent, state);
        add(state, &absent);
    }
    for before in &states {
        for after in &states {
            add(before, after);
        }
    }
    for _ in 0..RANDOM {
        let before = random_state(kind, seeds, &mut random);
        let after = random_state(kind, seeds, &mut random);
        add(&before, &after);
    }
    samples
}

fn states(kind: Kind, seeds: &[String], random: &mut Random) -> Vec<Labelled<State<'static>>> {
    let contents = || contents(seeds);
    match kind {
        Kind::File => contents()
            .into_iter()
            .map(|(label, content)| (label, State::File(file(content, random))))
            .collect(),
        Kind::Unit => contents()
            .into_iter()
            .map(|(label, contents)| (label, State::Unit(unit(contents, random))))
            .collect(),
        Kind::SshKeys | Kind::KernelArguments | Kind::Extensions => lists(kind)
            .into_iter()
            .map(|(label, items)| (label, State::List(items.into_iter().map(Cow::Owned).collect())))
            .collect(),
        Kind::KernelType | Kind::OsImage | Kind::Password => texts(kind)
            .into_iter()
            .map(|(label, text)| (label, State::Text(Cow::Owned(text))))
            .chain([("a secret".to_owned(), State::Token(HIDDEN))])
            .collect(),
    }
}

fn random_state(kind: Kind, seeds: &[String], random: &mut Random) -> Labelled<State<'static>> {
    match kind {
        Kind::File | Kind::Unit => {
            let text = mutated(seeds, random);
            let content = Content::Bytes(Cow::Owned(text));
            let state = match kind {
                Kind::File => State::File(file(content, random)),
                _ => State::Unit(unit(content, random)),
            };
            ("a text with random edits".to_owned(), state)
        }
        Kind::SshKeys | Kind::KernelArguments | Kind::Extensions => {
            let all = lists(kind);
            let count = random.below(6);
            let items = (0..count)
                .filter_map(|_| random.pick(&all).and_then(|(_, list)| random.pick(list)).cloned());
            ("a random list".to_owned(), State::List(items.map(Cow::Owned).collect()))
        }
        Kind::KernelType | Kind::OsImage | Kind::Password => {
            let all = texts(kind);
            let (label, text) = random.pick(&all).cloned().unwrap_or_default();
            let cut: String = text.chars().take(random.below(40)).collect();
            (format!("the start of {label}"), State::Text(Cow::Owned(cut)))
        }
    }
}

/// Contents of files and units.
fn contents(seeds: &[String]) -> Vec<Labelled<Content<'static>>> {
    let line = "option = value\n";
    let mut texts: Vec<(&str, Vec<u8>)> = vec![
        ("an empty text", Vec::new()),
        ("a line break", b"\n".to_vec()),
        ("white space", b" \t \n\n \t".to_vec()),
        ("a line", line.into()),
        ("a line without its end", b"option = value".to_vec()),
        ("another value", b"option = other\n".to_vec()),
        ("a comment", b"# comment\n; another\n// and one\n".to_vec()),
        ("lines of Windows", b"a = 1\r\nb = 2\r\n".to_vec()),
        ("sections", b"[a]\nb = 1\n[a]\nb =\n[\n]\n[]\n=\n= x\n".to_vec()),
        ("YAML", b"a:\n- b: {c: 1}\n- \"x\n".to_vec()),
        ("JSON", br#"{"a": [1, -2.5e300, null, {"b": "\u0000"}]}"#.to_vec()),
        ("umlauts and signs", "größe = \u{1f600} \u{202e}\u{feff}\u{a0}\n".into()),
        ("a byte order mark", b"\xef\xbb\xbfoption = value\n".to_vec()),
        ("bytes that are no text", vec![0xff, 0xfe, 0x00, 0x80, b'\n', 0xc3]),
        ("zeros", vec![0; 64]),
        ("one long line", vec![b'x'; LARGE]),
        ("a large text", line.repeat(LARGE / line.len()).into()),
        ("deep brackets", b"[{(".repeat(2000)),
    ];
    let seeds: Vec<(String, Vec<u8>)> = (1..)
        .zip(seeds.iter().take(4))
        .map(|(number, seed)| (format!("text {number} of the cases"), seed.clone().into_bytes()))
        .collect();
    let bytes = |bytes: Vec<u8>| Content::Bytes(Cow::Owned(bytes));
    let mut all: Vec<Labelled<Content<'static>>> =
        seeds.into_iter().map(|(label, text)| (label, bytes(text))).collect();
    all.extend(texts.drain(..).map(|(label, text)| (label.to_owned(), bytes(text))));
    all.push(("no content".to_owned(), Content::Absent));
    all.push(("a secret".to_owned(), Content::Token(HIDDEN)));
    all
}

fn file(content: Content<'static>, random: &mut Random) -> FileState<'static> {
    // Most files are plain ones of root's.
    let odd = random.below(3) == 0;
    let mode =
        if odd { *random.pick(&[0o600, 0o640, 0, 0o777, 0o444]).unwrap_or(&0) } else { 0o644 };
    let owner = |random: &mut Random| match odd {
        true => *random.pick(&["0", "chrony", "1000", "4294967295", ""]).unwrap_or(&""),
        false => "root",
    };
    let (user, group) = (owner(random).into(), owner(random).into());
    FileState { content, mode, user, group }
}

fn unit(contents: Content<'static>, random: &mut Random) -> UnitState<'static> {
    let odd = random.below(2) == 0;
    let enabled =
        if odd { *random.pick(&[None, Some(true), Some(false)]).unwrap_or(&None) } else { None };
    let mut dropins = Vec::new();
    for number in 0..random.below(3) {
        let contents = match random.below(4) {
            0 => Content::Absent,
            1 => Content::Token(HIDDEN),
            2 => Content::Bytes(Cow::Borrowed(&[0xff, 0x00])),
            _ => Content::Bytes(Cow::Borrowed(b"[Service]\nExecStart=\nExecStart=/bin/x\n")),
        };
        dropins.push(DropinState { name: format!("{number}0-more.conf").into(), contents });
    }
    let masked = (odd && random.below(2) == 0).then_some(true);
    UnitState { contents, enabled, masked, dropins }
}

fn lists(kind: Kind) -> Vec<Labelled<Vec<String>>> {
    let words: [&str; 6] = match kind {
        Kind::SshKeys => [
            "ssh-ed25519 AAAAC3Nza one@example.com",
            "ssh-rsa AAAAB3Nza two@example.com",
            "ssh-ed25519 AAAAC3Nza",
            "from=\"10.0.0.0/8\",command=\"x y\" ssh-ed25519 AAAA a b c",
            "ecdsa-sha2-nistp256 AAAA",
            "ssh-dss AAAA",
        ],
        Kind::KernelArguments => {
            ["quiet", "nosmt", "console=tty0", "a=b=c", "hugepages=\"1 G\"", "mitigations=off"]
        }
        _ => ["usbguard", "kerberos", "ipsec", "kernel-devel", "sandboxed-containers", "wasm"],
    };
    let some = |from: usize, to: usize| -> Vec<String> {
        words.iter().skip(from).take(to).map(|word| (*word).to_owned()).collect()
    };
    let one = |text: String| vec![text];
    let mut reversed = some(0, 6);
    reversed.reverse();
    [
        ("one item", some(0, 1)),
        ("another item", some(1, 1)),
        ("two items", some(0, 2)),
        ("all items", some(0, 6)),
        ("all items, the last one first", reversed),
        ("an item twice", [some(0, 1), some(0, 1)].concat()),
        ("an empty list", Vec::new()),
        ("an empty item", one(String::new())),
        ("white space", one(" \t ".to_owned())),
        ("signs", one("= ü \u{1f600} \u{202e} %s \"".to_owned())),
        ("a long item", one("x".repeat(LARGE))),
        ("many items", (0..2000).map(|number| format!("item-{number}=x")).collect()),
    ]
    .map(|(label, list)| (label.to_owned(), list))
    .to_vec()
}

fn texts(kind: Kind) -> Vec<Labelled<String>> {
    let digest = |byte: &str| byte.repeat(64);
    let usual: [String; 4] = match kind {
        Kind::KernelType => ["default", "realtime", "64k-pages", "other"].map(str::to_owned),
        Kind::Password => ["$6$salt$hash", "$y$j9T$x", "!", "*"].map(str::to_owned),
        _ => [
            format!("quay.io/os@sha256:{}", digest("0")),
            format!("quay.io/os@sha256:{}", digest("f")),
            "registry.example.com:5000/os:latest".to_owned(),
            "os".to_owned(),
        ],
    };
    let mut all: Vec<Labelled<String>> =
        (1..).zip(usual).map(|(number, text)| (format!("usual text {number}"), text)).collect();
    let odd = [
        ("an empty text", String::new()),
        ("white space", " \n\t".to_owned()),
        ("signs", "@:/ ü \u{1f600} \u{202e}".to_owned()),
        ("colons", ":::@@@///".to_owned()),
        ("a long text", "x".repeat(LARGE)),
    ];
    all.extend(odd.map(|(label, text)| (label.to_owned(), text)));
    all
}

/// A text of the cases, or lines as configuration files have them, with a few
/// edits.
fn mutated(seeds: &[String], random: &mut Random) -> Vec<u8> {
    let usual = "# comment\n[section]\nkey = value\nserver one iburst\n\nlist = [1, 2]\n";
    let seed = random.pick(seeds).map_or(usual, String::as_str);
    let mut lines: Vec<Vec<u8>> =
        seed.split_inclusive('\n').map(|line| line.as_bytes().to_vec()).collect();
    for _ in 0..=random.below(4) {
        let at = random.below(lines.len().max(1));
        let other = random.pick(&lines).cloned().unwrap_or_default();
        let edit = random.below(7);
        if edit == 0 {
            lines.insert(at.min(lines.len()), other);
            continue;
        }
        let odd: [&[u8]; 6] = [b"=", b" ", b"\0", b"\xff", "ü".as_bytes(), b"\""];
        let odd = random.pick(&odd).copied().unwrap_or_default();
        let cut = random.below(20);
        let Some(line) = lines.get_mut(at) else { continue };
        match edit {
            1 => line.clear(),
            2 => *line = other,
            3 => line.truncate(cut),
            4 => line.splice(..0, odd.iter().copied()).for_each(drop),
            5 => line.extend_from_slice(odd),
            _ => line.make_ascii_uppercase(),
        }
    }
    lines.concat()
}

/// Numbers that are always the same: SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than `limit`, which is small; 0 for 0.
    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap_or(0) % limit.max(1)
    }

    fn pick<'i, T>(&mut self, items: &'i [T]) -> Option<&'i T> {
        items.get(self.below(items.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [(Kind, &str); 8] = [
        (Kind::File, "file:/etc/a"),
        (Kind::Unit, "unit:a.service"),
        (Kind::SshKeys, "ssh-keys:core"),
        (Kind::Password, "password:core"),
        (Kind::KernelArguments, "kernel-arguments"),
        (Kind::KernelType, "kernel-type"),
        (Kind::OsImage, "os-image"),
        (Kind::Extensions, "extensions"),
    ];

    #[test]
    fn each_kind_gives_hundreds_of_real_changes_and_always_the_same() {
        for (kind, id) in KINDS {
            let ids = [id.to_owned()];
            let made = samples(kind, &ids, &[]);
            assert!((200..1000).contains(&made.len()), "{id}: {}", made.len());
            for sample in &made {
                assert_ne!(sample.change.before, sample.change.after, "{id}: {}", sample.label);
                assert_eq!(sample.change.id, id);
            }
            let again = samples(kind, &ids, &[]);
            let changes =
                |all: Vec<Sample>| all.into_iter().map(|it| it.change).collect::<Vec<_>>();
            assert!(changes(made) == changes(again), "{id}");
        }
    }

    #[test]
    fn among_them_is_all_that_is_odd() {
        let ids = ["file:/etc/a".to_owned()];
        let made = samples(Kind::File, &ids, &["mine\n".to_owned()]);
        let files: Vec<&FileState<'_>> = made
            .iter()
            .filter_map(|sample| match &sample.change.after {
                State::File(file) => Some(file),
                _ => None,
            })
            .collect();
        let bytes: Vec<&[u8]> = files
            .iter()
            .filter_map(|file| match &file.content {
                Content::Bytes(bytes) => Some(&**bytes),
                _ => None,
            })
            .collect();
        assert!(bytes.iter().any(|it| it.is_empty()));
        assert!(bytes.iter().any(|it| it.len() >= LARGE));
        assert!(bytes.iter().any(|it| std::str::from_utf8(it).is_err()));
        assert!(bytes.contains(&&b"mine\n"[..]), "texts of the cases are used");
        assert!(files.iter().any(|file| matches!(file.content, Content::Token(_))));
        assert!(files.iter().any(|file| file.content == Content::Absent));
        assert!(files.iter().any(|file| file.mode != 0o644 && file.user != "root"));
        assert!(made.iter().any(|sample| sample.change.before == State::Absent));
        assert!(made.iter().any(|sample| sample.change.after == State::Absent));
        let units = samples(Kind::Unit, &["unit:a.service".to_owned()], &[]);
        let has = |wanted: fn(&UnitState<'_>) -> bool| {
            units.iter().any(|it| matches!(&it.change.after, State::Unit(unit) if wanted(unit)))
        };
        assert!(has(|unit| unit.dropins.len() == 2) && has(|unit| unit.masked == Some(true)));
    }

    #[test]
    fn nothing_is_made_where_no_change_can_match() {
        assert!(samples(Kind::File, &[], &[]).is_empty());
    }
}
