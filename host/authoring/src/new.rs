//! `tread policy new`: a complete crate to start a policy from.

mod kinds;
mod sdk;
mod services;

use crate::in_cluster::warn_of_wide;
use crate::test::scalar;
use anyhow::{Context as _, Result};
use kinds::{Claimed, Fragment};
use services::Readers;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use tread_console::exit::{Exit, UsageError};
use tread_loading::builtins;
use tread_model::object_name::is_label;

const EXAMPLES: &str = "\
Examples:
  tread policy new chrony --claim file:/etc/chrony.conf --claim unit:chronyd.service
  tread policy new login --claim ssh-keys:core
  tread policy new chrony --sdk ../tread/guest-sdk
  tread policy new chrony --sdk https://git.example.com/tread.git#0123abcd

A claim is KIND or KIND:GLOB, with the kinds file, unit, ssh-keys, password,
kernel-arguments, kernel-type, os-image and extensions; in the glob * and ? stay within
one path component, ** crosses components, [] and {} are as usual.

The crate is made in a new directory NAME here. Then:
  cd NAME
  cargo test          its unit tests, natively
  tread policy test   builds it, and runs its cases";

/// The arguments of `tread policy new`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct NewArgs {
    /// The name of the policy, and of the directory: lower-case letters, digits
    /// and -
    pub name: String,
    /// What it is to decide on (may be repeated) [default: file:/etc/NAME.conf]
    #[arg(long = "claim", value_name = "CLAIM")]
    pub claims: Vec<String>,
    /// The SDK to build it with: a released version, a directory, or a git URL
    /// with #REVISION [default: the source around this directory, or the source
    /// that this program was installed from]
    #[arg(long, value_name = "VERSION|DIR|URL#REV")]
    pub sdk: Option<String>,
}

/// Makes the crate in the current directory.
pub fn run(args: &NewArgs, out: &mut impl Write) -> Result<Exit> {
    let here = std::env::current_dir().context("the current directory cannot be found")?;
    let claims = claims(args).map_err(UsageError)?;
    let sdk = sdk::dependency(args.sdk.as_deref(), &sdk::Places::of_this_process(&here));
    let sdk = sdk.map_err(UsageError)?;
    let files = files(args, &sdk).map_err(UsageError)?;
    let dir = here.join(&args.name);
    write(&dir, &files)?;
    format(&dir);
    let declared: Vec<_> = claims.iter().map(Claimed::claim).collect();
    warn_of_wide(&declared);
    let name = &args.name;
    writeln!(out, "{name}: a policy to start from, in {}", dir.display())?;
    for (path, _) in &files {
        writeln!(out, "  {name}/{path}")?;
    }
    writeln!(out, "\nThe SDK: tread-guest-sdk = {sdk}")?;
    writeln!(out, "Next:\n  cd {name}\n  cargo test\n  tread policy test")?;
    writeln!(out, "What it decides is in src/lib.rs; README.md says how to go on.")?;
    Ok(Exit::Done)
}

/// Writes files into a directory that must not be there yet.
fn write(dir: &Path, files: &[(String, String)]) -> Result<()> {
    let shown = dir.display();
    fs::create_dir(dir).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => anyhow::anyhow!(
            "{shown} is there already, and nothing is overwritten: take another name, or move it \
             away"
        ),
        _ => anyhow::Error::from(error).context(format!("cannot make the directory {shown}")),
    })?;
    let written = files.iter().try_for_each(|(path, text)| {
        let path = dir.join(path);
        let parent = path.parent().unwrap_or(dir);
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&path, text))
            .with_context(|| format!("cannot write {}", path.display()))
    });
    if written.is_err() {
        // A part of it would be in the way of the next try.
        let _ = fs::remove_dir_all(dir);
    }
    written
}

/// Lays the source out as it is usual here, if the tool for it is there: what is
/// written is fine without it.
fn format(dir: &Path) {
    let formatted = Command::new("rustfmt")
        .args(["--edition", "2024"])
        .arg(dir.join("src/lib.rs"))
        .stdin(Stdio::null())
        .output();
    if let Err(error) = formatted {
        tracing::debug!("rustfmt cannot be run: {error}");
    }
}

/// What it is to claim; or what is wrong with its name or its claims.
fn claims(args: &NewArgs) -> Result<Vec<Claimed>, String> {
    check_name(&args.name)?;
    let claims = match args.claims.as_slice() {
        [] => vec![format!("file:/etc/{}.conf", args.name)],
        claims => claims.to_vec(),
    };
    Claimed::all(&claims)
}

/// All files of the crate, with their paths in it; or what is wrong with the
/// arguments. `sdk` is what stands behind `tread-guest-sdk =`.
fn files(args: &NewArgs, sdk: &str) -> Result<Vec<(String, String)>, String> {
    let name = &args.name;
    let mut claims = claims(args)?;
    let readers = readers(name, &claims);
    if let Readers::Each(_) = readers {
        claims.iter_mut().for_each(Claimed::with_its_own_service);
    }
    let mut values = Values::new();
    values.insert("NAME", name.clone());
    values.insert("SDK", sdk.to_owned());
    values.insert("SUMMARY", format!("Says how gently a node takes changes of {name}"));
    values.extend(of_readers(&readers, &claims));
    let first = claims.first().map_or("", |claim| claim.id.as_str());
    values.extend(of_service(&readers, readers.service_of(first)));
    values.insert("TYPE", type_name(name));
    let rows = claims.iter().map(|claim| {
        let (least, most) = claim.fragment.range();
        format!("| `{}` | {} |\n", claim.pattern, kinds::words(least, most))
    });
    values.insert("CLAIMROWS", rows.collect());
    values.insert("GOODPOLICIES", include_str!("../../../guest-sdk/GOOD_POLICIES.md").into());

    let mut files = vec![
        ("Cargo.toml".to_owned(), fill(include_str!("template/manifest.toml"), &values)),
        (".gitignore".to_owned(), fill(include_str!("template/gitignore"), &values)),
        ("README.md".to_owned(), fill(include_str!("template/README.md"), &values)),
        ("src/lib.rs".to_owned(), lib(&claims, &mut values)),
    ];
    for claim in &claims {
        let service = readers.service_of(&claim.id);
        values.extend(claim.values());
        values.extend(of_service(&readers, service));
        let path = format!("cases/{}.yaml", claim.file_stem(&claims));
        files.push((path, fill(claim.cases(service), &values)));
    }
    Ok(files)
}

type Values = BTreeMap<&'static str, String>;

/// The policy's source: a head, and a piece for each kind of claim.
fn lib(claims: &[Claimed], values: &mut Values) -> String {
    let fragments = Fragment::of(claims);
    let mut lines = String::new();
    for claim in claims {
        // Writing to a string cannot fail.
        let _ = writeln!(lines, "        {},", claim.source());
    }
    let join = |piece: fn(Fragment) -> &'static str, values: &Values| -> String {
        fragments.iter().map(|fragment| fill(piece(*fragment), values)).collect()
    };
    let names = |of: fn(Fragment) -> &'static [&'static str], base: &[&'static str]| {
        let all = fragments.iter().flat_map(|it| of(*it)).chain(base);
        let mut all: Vec<&str> = all.copied().collect();
        all.sort_unstable();
        all.dedup();
        all.join(", ")
    };
    let base = ["Change", "Claim", "Context", "Effect", "Policy", "Verdict", "export", "settings"];
    values.insert("IMPORTS", names(Fragment::imports, &base));
    let tests = names(Fragment::test_imports, &["test"]);
    let braces = if tests.contains(',') { format!("{{{tests}}}") } else { tests };
    values.insert("TESTIMPORTS", braces);
    values.insert("CLAIMS", lines);
    values.insert("CLASSIFY", classify(&fragments));
    values.insert("FIELDS", join(Fragment::fields, values));
    values.insert("CHECK", join(Fragment::check, values));
    values.insert("CONSTANTS", kinds::constants(claims));
    values.insert("UNITEFFECT", kinds::unit_effect(claims).to_owned());

    let mut source = fill(include_str!("template/lib.rs"), values);
    source += &join(Fragment::answer, values);
    source += &fill(include_str!("template/tests.rs"), values);
    source += &join(Fragment::tests, values);
    source += "}\n";
    source
}

fn classify(fragments: &[Fragment]) -> String {
    if let [only] = fragments {
        return format!("        {}(settings, change)\n", only.function());
    }
    let mut source = String::from("        match change.kind() {\n");
    for fragment in fragments {
        let kinds: Vec<String> = fragment.kinds().iter().map(|kind| format!("{kind:?}")).collect();
        let (kinds, function) = (kinds.join(" | "), fragment.function());
        let _ = writeln!(source, "            {kinds} => {function}(settings, change),");
    }
    source + "            _ => Verdict::abstain(),\n        }\n"
}

/// Who reads the files that are claimed, as far as names tell.
fn readers(name: &str, claims: &[Claimed]) -> Readers {
    let of = |fragment: Fragment| claims.iter().filter(move |claim| claim.fragment == fragment);
    let files: Vec<&str> = of(Fragment::File).map(|claim| claim.pattern.as_str()).collect();
    let exact = of(Fragment::Unit).filter(|claim| claim.pattern == claim.id);
    let units: Vec<&str> = exact.map(Claimed::name).collect();
    Readers::guess(name, &files, &units)
}

/// What stands in code and cases for the service that reads a file, if that is known.
fn of_service(readers: &Readers, service: Option<&str>) -> [(&'static str, String); 5] {
    let service = service.unwrap_or_default();
    let (no, yes) = match readers {
        Readers::One(_) => ("false".to_owned(), "true".to_owned()),
        Readers::Each(_) => ("[]".to_owned(), format!("[{}]", scalar(service))),
    };
    [
        ("SERVICE", service.to_owned()),
        ("RELOADSERVICE", scalar(&format!("reload {service}"))),
        ("RESTARTSERVICE", scalar(&format!("restart {service}"))),
        ("RESTARTNO", no),
        ("RESTARTYES", yes),
    ]
}

/// How the policy's source finds the service that reads a file.
fn of_readers(readers: &Readers, claims: &[Claimed]) -> [(&'static str, String); 5] {
    let each = matches!(readers, Readers::Each(_));
    let own = |one: &str, each_own: &str| if each { each_own } else { one }.to_owned();
    let rows = Values::from([("SERVICEROWS", readers.rows())]);
    let mut files = String::from("    const FILES: &[(&str, Option<&str>)] = &[\n");
    for claim in claims.iter().filter(|claim| claim.fragment == Fragment::Files) {
        // Writing to a string cannot fail.
        let _ =
            writeln!(files, "        ({:?}, {:?}),", claim.name(), readers.service_of(&claim.id));
    }
    [
        ("SERVICES", own("", &fill(include_str!("template/files/services.rs"), &rows))),
        (
            "SERVICEOF",
            own(
                "    let service = &settings.service;\n",
                include_str!("template/files/service-of.rs"),
            ),
        ),
        (
            "RESTARTS",
            own("settings.restart", "settings.restart.iter().any(|name| name == service)"),
        ),
        ("RESTARTDEFAULT", own("`restart: true`", "a `restart` with that service")),
        ("FILES", own("", &(files + "    ];\n"))),
    ]
}

/// Names that cargo or the compiler would not take for a crate of its own.
const TAKEN: &[&str] = &[
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "core",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc-macro",
    "pub",
    "ref",
    "return",
    "self",
    "serde",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "tread-guest-sdk",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
];

fn check_name(name: &str) -> Result<(), String> {
    if !is_label(name) || !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        return Err(format!(
            "{name:?} can be no policy's name: expected up to 63 lower-case letters, digits and -, \
             with a letter first and no - last, such as chrony"
        ));
    }
    builtins::check_name(name, None).map_err(|error| error.to_string())?;
    if TAKEN.contains(&name) {
        return Err(format!(
            "a crate cannot be named {name}, which means something to the compiler: take a longer \
             name, such as {name}-policy"
        ));
    }
    Ok(())
}

/// `chrony-servers` gives `ChronyServersPolicy`: nothing else is named so.
fn type_name(name: &str) -> String {
    let word = |word: &str| {
        let mut chars = word.chars();
        chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect()
    };
    name.split('-').map(word).chain(["Policy".to_owned()]).collect()
}

/// A template with `@KEY@` replaced by its value, in one pass: a value is never
/// looked at again.
fn fill(template: &str, values: &Values) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('@') {
        out.push_str(before);
        let known = after.split_once('@').and_then(|(key, tail)| Some((values.get(key)?, tail)));
        match known {
            Some((value, tail)) => {
                out.push_str(value);
                rest = tail;
            }
            None => {
                out.push('@');
                rest = after;
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests;
