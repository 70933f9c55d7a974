//! Where the SDK comes from, as a line of Cargo.toml.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use tread_console::inputs;
use tread_console::print::shown;

const NAME: &str = "tread-guest-sdk";

/// Where the SDK may be, if nobody says it.
#[derive(Debug)]
pub(super) struct Places {
    /// The current directory.
    pub(super) here: PathBuf,
    /// The file of this program.
    pub(super) program: Option<PathBuf>,
}

impl Places {
    pub(super) fn of_this_process(here: &Path) -> Places {
        let program = std::env::current_exe().ok().and_then(|path| path.canonicalize().ok());
        Places { here: here.to_owned(), program }
    }

    /// The source around the current directory or beside it, then the one that
    /// this program was installed from, then the one that it lies in. The program
    /// itself knows no path: its bytes do not depend on where it was built.
    ///
    /// What is built with an SDK runs its code. So none is taken that just anybody
    /// could have put there: around a directory in /tmp is all of /tmp.
    fn dependency(&self) -> Result<String, String> {
        let owners = self.owners();
        let mut passed = Vec::new();
        let mut around = |dir: &Path| {
            let dirs = dir
                .ancestors()
                .flat_map(|dir| [dir.join("guest-sdk"), dir.join("tread/guest-sdk")]);
            let (kept, others): (Vec<PathBuf>, Vec<PathBuf>) =
                dirs.filter(|dir| is_sdk(dir)).partition(|dir| is_kept_by(&owners, dir));
            passed.extend(others);
            kept.first().map(|found| directory(found))
        };
        let program = self.program.as_deref();
        let found = around(&self.here)
            .or_else(|| installed(program?))
            .or_else(|| around(program?.parent()?));
        found.unwrap_or_else(|| Err(not_found(&passed)))
    }

    /// Whose directories are taken without being named: root's, those of whoever this
    /// process runs as, and those of the program's owner, who decides what it does anyway.
    fn owners(&self) -> Vec<u32> {
        let owner = |path: &Path| fs::metadata(path).ok().map(|it| it.uid());
        let caller = owner(Path::new("/proc/self"));
        let program = self.program.as_deref().and_then(owner);
        [Some(ROOT), caller, program].into_iter().flatten().collect()
    }
}

const ROOT: u32 = 0;

/// Whether only these could have put a directory where it was found, or anything into it.
fn is_kept_by(owners: &[u32], found: &Path) -> bool {
    let Ok(whole) = found.canonicalize() else { return false };
    // Where it was found may be a link to where it is.
    let dirs = [Some(whole.as_path()), whole.parent(), found.parent()];
    let is_kept = |dir: &Path| fs::metadata(dir).is_ok_and(|it| is_written_by(owners, &it));
    dirs.into_iter().flatten().all(is_kept)
}

/// Whether nobody but these can write there.
fn is_written_by(owners: &[u32], dir: &Metadata) -> bool {
    owners.contains(&dir.uid()) && is_owners_alone(dir.mode(), dir.uid(), dir.gid())
}

/// Whether a mode lets nobody but the owner write. The group may that is the owner's own,
/// as many systems give each user one.
fn is_owners_alone(mode: u32, owner: u32, group: u32) -> bool {
    const BY_GROUP: u32 = 0o020;
    const BY_OTHERS: u32 = 0o002;
    let is_own_group = group == owner || group == ROOT;
    mode & BY_OTHERS == 0 && (mode & BY_GROUP == 0 || is_own_group)
}

/// What stands behind `tread-guest-sdk =`: for a version, a directory, or a
/// git URL with a revision; without any, for what is found.
pub(super) fn dependency(sdk: Option<&str>, places: &Places) -> Result<String, String> {
    let Some(sdk) = sdk else {
        return places.dependency();
    };
    if sdk.contains("://") || sdk.starts_with("git@") {
        return git(sdk);
    }
    let path = Path::new(sdk);
    if is_version(sdk) && !path.exists() {
        return Ok(quoted(sdk));
    }
    let inside = path.join("guest-sdk");
    let found = [path, &inside].into_iter().find(|dir| is_sdk(dir)).ok_or_else(|| {
        format!(
            "--sdk {sdk}: expected a version such as {}, a directory with the crate {NAME}, or a \
             git URL with #REVISION; there is no Cargo.toml of {NAME} at that place",
            env!("CARGO_PKG_VERSION")
        )
    })?;
    directory(found)
}

const NOT_FOUND: &str = "the SDK that a policy is built with is not found from here: say where it \
    is with --sdk DIR, the directory of tread's source, or with --sdk URL#REVISION, its git \
    repository and a commit";

/// That there is none, and which ones were passed over.
fn not_found(passed: &[PathBuf]) -> String {
    match passed {
        [] => NOT_FOUND.to_owned(),
        [first, ..] => format!(
            "{NOT_FOUND}. {} is not taken unless it is named: others own it or the directory that \
             it is in, or can write there",
            shown(first)
        ),
    }
}

fn directory(dir: &Path) -> Result<String, String> {
    let shown = dir.display();
    let whole = dir.canonicalize().map_err(|error| {
        format!("the SDK in {shown} cannot be found: {error}; name it with --sdk")
    })?;
    match whole.to_str() {
        Some(text) => Ok(format!("{{ path = {} }}", quoted(text))),
        None => {
            Err(format!("the path of the SDK, {shown}, is no UTF-8, which Cargo.toml cannot hold"))
        }
    }
}

/// By what `cargo install` writes down beside the programs that it installs:
/// `"tread 0.1.0 (path+file:///src/tread/host/tread)" = ["tread"]`.
fn installed(program: &Path) -> Option<Result<String, String>> {
    let bin = program.parent()?;
    let list = std::fs::read_to_string(bin.parent()?.join(".crates.toml")).ok()?;
    let own = "\"tread ";
    let line = list.lines().find(|line| line.starts_with(own))?;
    let (_, source) = line.split_once(" (")?;
    let (source, _) = source.split_once(")\" = ")?;
    let (kind, place) = source.split_once('+')?;
    match kind {
        "path" => {
            let crate_dir = PathBuf::from(decoded(place.strip_prefix("file://")?)?);
            let sdk =
                crate_dir.ancestors().map(|dir| dir.join("guest-sdk")).find(|dir| is_sdk(dir));
            sdk.map(|dir| directory(&dir))
        }
        "git" => {
            let (url, revision) = place.split_once('#')?;
            let (url, _) = url.split_once('?').unwrap_or((url, ""));
            Some(git(&format!("{url}#{revision}")))
        }
        // Where this program was released, the SDK was too.
        "registry" | "sparse" => Some(Ok(quoted(env!("CARGO_PKG_VERSION")))),
        _ => None,
    }
}

/// The path of a URL, with `%20` for a space.
fn decoded(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let mut digit = || (rest.next()? as char).to_digit(16);
                bytes.push(u8::try_from(digit()? * 16 + digit()?).ok()?);
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

fn git(sdk: &str) -> Result<String, String> {
    let sdk = sdk.strip_prefix("git+").unwrap_or(sdk);
    let Some((url, revision)) = sdk.split_once('#').filter(|(_, revision)| !revision.is_empty())
    else {
        let url = sdk.trim_end_matches('#');
        return Err(format!(
            "--sdk {sdk}: add the revision, {url}#REVISION, so that the policy is built from the \
             same SDK tomorrow"
        ));
    };
    if !url.contains("://") {
        return Err(format!("--sdk {sdk}: write the URL as ssh://git@HOST/PATH#REVISION"));
    }
    Ok(format!("{{ git = {}, rev = {} }}", quoted(url), quoted(revision)))
}

fn is_sdk(dir: &Path) -> bool {
    let manifest = inputs::read_found(&dir.join("Cargo.toml")).ok();
    manifest
        .and_then(|file| String::from_utf8(file.bytes).ok())
        .is_some_and(|text| text.contains(&format!("name = \"{NAME}\"")))
}

/// `1`, `0.1` or `1.4.0-rc.1`.
fn is_version(text: &str) -> bool {
    let (numbers, rest) = text.split_once(['-', '+']).unwrap_or((text, "0"));
    let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b".-+".contains(&byte);
    numbers.split('.').count() <= 3
        && numbers.split('.').all(number)
        && !rest.is_empty()
        && rest.bytes().all(fine)
}

/// A string of TOML, whose escapes are those of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn a_version_a_directory_and_a_git_revision_are_told_apart() {
        let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        let path = quoted(sdk.join("guest-sdk").canonicalize().unwrap().to_str().unwrap());
        let direct = sdk.join("guest-sdk");
        for (given, expected) in [
            (Some("1.2.3"), "\"1.2.3\"".to_owned()),
            (Some("0.1.0-rc.1"), "\"0.1.0-rc.1\"".to_owned()),
            (Some(sdk.to_str().unwrap()), format!("{{ path = {path} }}")),
            (Some(direct.to_str().unwrap()), format!("{{ path = {path} }}")),
            (
                Some("https://git.example.com/tread.git#0123abcd"),
                "{ git = \"https://git.example.com/tread.git\", rev = \"0123abcd\" }".to_owned(),
            ),
            (
                Some("git+ssh://git@example.com/tread#v1"),
                "{ git = \"ssh://git@example.com/tread\", rev = \"v1\" }".to_owned(),
            ),
        ] {
            assert_eq!(dependency(given, &nowhere()), Ok(expected), "{given:?}");
        }
    }

    #[test]
    fn what_is_no_sdk_is_an_error_that_says_what_is_expected() {
        let here = env!("CARGO_MANIFEST_DIR");
        for (given, part) in [
            ("nowhere", "expected a version"),
            (here, "expected a version"),
            ("https://git.example.com/tread.git", "#REVISION"),
            ("https://git.example.com/tread.git#", "tread.git#REVISION"),
            ("git@example.com:tread#v1", "ssh://"),
            ("1.2.3.4", "expected a version"),
        ] {
            let message = dependency(Some(given), &nowhere()).unwrap_err();
            assert!(message.contains(part), "{part:?} in {message}");
        }
    }

    /// Places from which nothing is found.
    fn nowhere() -> Places {
        Places { here: PathBuf::from("/"), program: None }
    }

    /// A source tree with an SDK.
    fn checkout(dir: &Path) -> String {
        let sdk = dir.join("guest-sdk");
        std::fs::create_dir_all(&sdk).unwrap();
        std::fs::create_dir_all(dir.join("host/tread")).unwrap();
        std::fs::write(sdk.join("Cargo.toml"), "[package]\nname = \"tread-guest-sdk\"\n").unwrap();
        format!("{{ path = {} }}", quoted(sdk.canonicalize().unwrap().to_str().unwrap()))
    }

    #[test]
    fn the_source_around_this_directory_or_beside_it_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tread");
        let expected = checkout(&tree);
        for here in [tree.clone(), tree.join("host/tread"), dir.path().to_owned()] {
            let places = Places { here, program: None };
            assert_eq!(dependency(None, &places), Ok(expected.clone()), "{places:?}");
        }
        let beside = dir.path().join("policies/mine");
        std::fs::create_dir_all(&beside).unwrap();
        let places = Places { here: beside, program: None };
        assert_eq!(dependency(None, &places), Ok(expected.clone()));
        // From anywhere else by the program that was built in it.
        let program = Some(tree.join("target/release/tread"));
        assert_eq!(dependency(None, &Places { program, ..nowhere() }), Ok(expected));
    }

    fn mode(dir: &Path, mode: u32) {
        fs::set_permissions(dir, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_others_can_put_around_this_directory_is_not_taken() {
        let dir = tempfile::tempdir().unwrap();
        let shared = dir.path().join("shared");
        let stranger = checkout(&shared);
        let here = shared.join("mine");
        fs::create_dir_all(&here).unwrap();
        let places = Places { here, program: None };
        assert_eq!(dependency(None, &places), Ok(stranger));
        for open in [0o1777, 0o777] {
            mode(&shared, open);
            let message = dependency(None, &places).unwrap_err();
            assert!(message.starts_with(NOT_FOUND), "{message}");
            assert!(message.contains("shared/guest-sdk is not taken unless"), "{message}");
        }
        mode(&shared, 0o755);
        mode(&shared.join("guest-sdk"), 0o777);
        assert!(dependency(None, &places).is_err());
        // One that nobody else can write to is taken in its place, further up or down.
        let expected = checkout(&dir.path().join("tread"));
        assert_eq!(dependency(None, &places), Ok(expected));
        // A link does not make another place of it.
        let linked = dir.path().join("linked");
        fs::create_dir_all(&linked).unwrap();
        symlink(shared.join("guest-sdk"), linked.join("guest-sdk")).unwrap();
        assert!(!is_kept_by(&places.owners(), &linked.join("guest-sdk")));
    }

    #[test]
    fn a_directory_of_another_user_or_a_shared_group_is_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let owner = fs::metadata(dir.path()).unwrap().uid();
        let sdk = dir.path().join("guest-sdk");
        fs::create_dir_all(&sdk).unwrap();
        assert!(is_kept_by(&[owner], &sdk));
        assert!(!is_kept_by(&[owner + 1], &sdk));
        assert!(!is_kept_by(&[owner], &dir.path().join("nowhere")));
        for (mode, owner, group, kept) in [
            (0o755, 1000, 1000, true),
            (0o775, 1000, 1000, true),
            (0o775, 1000, 0, true),
            (0o775, 1000, 100, false),
            (0o755, 1000, 100, true),
            (0o757, 1000, 1000, false),
        ] {
            assert_eq!(is_owners_alone(mode, owner, group), kept, "{mode:o} {owner} {group}");
        }
    }

    #[test]
    fn a_program_that_was_installed_tells_where_from() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("a source");
        let expected = checkout(&tree);
        let root = dir.path().join("cargo");
        std::fs::create_dir_all(root.join("bin")).unwrap();
        let url = tree.join("host/tread").display().to_string().replace(' ', "%20");
        let git = "{ git = \"https://git.example.com/tread.git\", rev = \"0123abcd\" }".to_owned();
        let version = env!("CARGO_PKG_VERSION");
        for (source, expected) in [
            (format!("path+file://{url}"), Some(expected)),
            ("git+https://git.example.com/tread.git?branch=main#0123abcd".to_owned(), Some(git)),
            ("path+file:///not/there/any/more".to_owned(), None),
            ("path+file:///%zz".to_owned(), None),
            ("registry+https://registry.example.com".to_owned(), Some(quoted(version))),
            ("something+else".to_owned(), None),
        ] {
            let list = format!(
                "[v1]\n\"treadmill 1.0.0 (path+file:///x)\" = [\"treadmill\"]\n\
                 \"tread 0.1.0 ({source})\" = [\"kubectl-tread\", \"tread\"]\n"
            );
            std::fs::write(root.join(".crates.toml"), list).unwrap();
            let places = Places { program: Some(root.join("bin/tread")), ..nowhere() };
            let found = dependency(None, &places);
            assert_eq!(found, expected.ok_or_else(|| NOT_FOUND.to_owned()), "{source}");
        }
    }

    #[test]
    fn where_no_sdk_is_found_the_error_says_what_to_give() {
        let message = dependency(None, &nowhere()).unwrap_err();
        assert!(message.contains("--sdk DIR") && message.contains("--sdk URL#REVISION"));
    }
}
