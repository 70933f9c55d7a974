use super::*;

const SDK: &str = "{ path = \"/sdk\" }";

fn args(name: &str, claims: &[&str]) -> NewArgs {
    NewArgs {
        name: name.to_owned(),
        claims: claims.iter().map(|claim| (*claim).to_owned()).collect(),
        sdk: None,
    }
}

fn made(name: &str, claims: &[&str]) -> BTreeMap<String, String> {
    files(&args(name, claims), SDK).unwrap().into_iter().collect()
}

#[test]
fn of_a_crate_that_cannot_be_written_whole_nothing_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("chrony");
    let files = ["a", "a/b"].map(|name| (name.to_owned(), String::new()));
    assert!(write(&path, &files).is_err());
    assert!(!path.exists());
    // What was there before is not touched.
    fs::create_dir(&path).unwrap();
    assert!(write(&path, &files).is_err());
    assert!(path.exists());
}

#[test]
fn a_crate_has_all_that_it_needs_and_no_place_that_was_left_open() {
    let every = [
        "file:/etc/a.conf",
        "file:/etc/b.d/**",
        "unit:a.service",
        "ssh-keys:core",
        "password:*",
        "kernel-arguments",
        "extensions",
        "kernel-type",
        "os-image",
    ];
    for claims in every.iter().map(|claim| vec![*claim]).chain([vec![], every.to_vec()]) {
        let files = made("chrony", &claims);
        for path in ["Cargo.toml", ".gitignore", "README.md", "src/lib.rs"] {
            assert!(files.contains_key(path), "{path} of {claims:?}");
        }
        let cases = files.keys().filter(|path| path.starts_with("cases/")).count();
        assert_eq!(cases, claims.len().max(1), "{claims:?}");
        for (path, text) in &files {
            let open = text.split('@').skip(1).step_by(1).find(|piece| {
                !piece.is_empty() && piece.bytes().all(|byte| byte.is_ascii_uppercase())
            });
            assert_eq!(open, None, "{path} of {claims:?}");
        }
    }
}

#[test]
fn the_manifest_stands_alone_and_names_the_sdk() {
    let manifest = made("chrony", &[]).remove("Cargo.toml").unwrap();
    for line in [
        "name = \"chrony\"".to_owned(),
        "[workspace]".to_owned(),
        "crate-type = [\"cdylib\", \"rlib\"]".to_owned(),
        "panic = \"abort\"".to_owned(),
        "overflow-checks = true".to_owned(),
        format!("tread-guest-sdk = {SDK}"),
    ] {
        assert!(manifest.lines().any(|found| found == line), "{line}\n{manifest}");
    }
}

#[test]
fn its_readme_says_what_makes_a_good_policy() {
    let readme = made("chrony", &[]).remove("README.md").unwrap();
    for part in ["Claim narrowly.", "Compare meaning", "Abstain when unsure.", "a tired admin"] {
        assert!(readme.contains(part), "{part}\n{readme}");
    }
}

#[test]
fn a_file_is_for_the_service_that_is_claimed_beside_it() {
    for (claims, service) in [
        (&["file:/etc/chrony.conf"][..], "chrony.service"),
        (&["file:/etc/chrony.conf", "unit:chronyd.service"], "chronyd.service"),
        (&["file:/etc/chrony.conf", "unit:chrony-wait.timer"], "chrony.service"),
        (&["file:/etc/chrony.conf", "unit:chrony*"], "chrony.service"),
    ] {
        let source = made("chrony", claims).remove("src/lib.rs").unwrap();
        assert!(
            source.contains(&format!("service: String = \"{service}\"")),
            "{claims:?}\n{source}"
        );
    }
}

#[test]
fn of_several_files_each_is_for_the_service_that_its_path_names() {
    let claims = [
        "file:/etc/chrony.conf",
        "file:/etc/keepalived/*.conf",
        "file:/etc/chrony.keys",
        "file:/etc/other.conf",
        "unit:chronyd.service",
        "unit:keepalived.service",
    ];
    let files = made("chrony", &claims);
    let source = &files["src/lib.rs"];
    for row in [
        "(\"/etc/chrony.conf\", Some(\"chronyd.service\"))",
        "(\"/etc/keepalived/*.conf\", Some(\"keepalived.service\"))",
        "(\"/etc/other.conf\", None)",
    ] {
        assert!(source.contains(row), "{row}\n{source}");
    }
    for (file, words) in [
        ("file", "actions: [reload chronyd.service]"),
        ("file-2", "actions: [reload keepalived.service]"),
        ("file-2", "restart: [keepalived.service]"),
        // What stands in a secret is shown to no policy.
        ("file-3", "/etc/chrony.keys: {answer: abstain}"),
        ("file-4", "answer: abstain, reason: which service reads it"),
    ] {
        let cases = &files[&format!("cases/{file}.yaml")];
        assert!(cases.contains(words), "{words}\n{cases}");
    }
}

#[test]
fn a_unit_that_no_policy_may_touch_is_left_to_others() {
    for unit in ["dbus.service", "var.mount", "tread-operation.service", "a.target"] {
        let files = made("mine", &[&format!("unit:{unit}")]);
        assert!(files["cases/unit.yaml"].contains("{answer: abstain}\n---"), "{unit}");
        assert!(!files["cases/unit.yaml"].contains("restart"), "{unit}");
    }
    for (claim, unit) in [("unit:a*.mount", "aexample.mount"), ("unit:b.*", "b.service")] {
        assert!(made("mine", &[claim])["cases/unit.yaml"].contains(unit), "{claim}");
    }
}

#[test]
fn names_and_claims_that_cannot_be_are_errors_that_say_why() {
    for (name, claims, part) in [
        ("Chrony", &[][..], "lower-case"),
        ("", &[], "lower-case"),
        ("1st", &[], "a letter first"),
        ("chrony-", &[], "no - last"),
        ("../chrony", &[], "lower-case"),
        ("test", &[], "longer name"),
        ("registries", &[], "the name of a built-in one"),
        ("chrony", &["file:etc/chrony.conf"], "begins with /"),
        ("chrony", &["files:/etc/chrony.conf"], "did you mean \"file\""),
        ("chrony", &["file:/etc/a", "file:/etc/a"], "twice"),
        ("chrony", &["fips"], "cannot be claimed"),
        ("chrony", &["ssh-keys:bob"], "ssh-keys:core"),
        ("chrony", &["password:b*"], "password:core"),
        ("chrony", &["unit:app@.service"], "unit:app@*.service"),
        ("chrony", &["unit:*.conf"], "names of units end in .service"),
    ] {
        let message = files(&args(name, claims), SDK).unwrap_err();
        assert!(message.contains(part), "{part:?} in {message}");
    }
    let long = "a".repeat(64);
    assert!(files(&args(&long, &[]), SDK).is_err());
    assert!(files(&args(long.strip_suffix('a').unwrap(), &[]), SDK).is_ok());
}

#[test]
fn a_directory_that_is_there_is_never_touched() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("chrony");
    let files = files(&args("chrony", &[]), SDK).unwrap();
    write(&place, &files).unwrap();
    fs::write(place.join("src/lib.rs"), "mine").unwrap();
    let error = write(&place, &files).unwrap_err().to_string();
    assert!(error.contains("is there already"), "{error}");
    assert_eq!(fs::read_to_string(place.join("src/lib.rs")).unwrap(), "mine");
    // Not even a file of that name.
    let file = dir.path().join("other");
    fs::write(&file, "mine").unwrap();
    assert!(write(&file, &files).is_err());
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn a_value_is_never_taken_for_a_place_of_the_template() {
    let values = Values::from([("A", "@B@".to_owned()), ("B", "b".to_owned())]);
    assert_eq!(fill("@A@ a@b @B@@C@ @", &values), "@B@ a@b b@C@ @");
}

#[test]
fn no_template_is_a_manifest_to_cargo_which_reads_all_of_a_git_checkout() {
    let mut left = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut seen = 0;
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            assert!(!path.ends_with("Cargo.toml"), "{}", path.display());
            seen += 1;
            left.extend(path.is_dir().then_some(path));
        }
    }
    assert!(seen > 50, "{seen} files and directories");
}
