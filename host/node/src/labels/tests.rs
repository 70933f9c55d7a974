#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use proptest::prelude::*;

/// As Fedora has them, and some that are there for the rules.
const CONTEXTS: &str = r"
# all the rest
/.*	system_u:object_r:default_t:s0
/[^/]+	--	system_u:object_r:etc_runtime_t:s0
/etc/.*	system_u:object_r:etc_t:s0
/etc	-d	system_u:object_r:etc_t:s0
/etc/systemd/system(/.*)?	system_u:object_r:systemd_unit_file_t:s0
/etc/crio(/.*)?		system_u:object_r:container_config_t:s0
/etc/crio/.*\.sock	-s	system_u:object_r:crio_sock_t:s0
/etc/mtab	-l	system_u:object_r:mtab_t:s0
/etc/mtab	--	system_u:object_r:etc_runtime_t:s0
/usr/bin	-d	system_u:object_r:bin_t:s0
/usr/bin/.*	system_u:object_r:bin_t:s0
/usr/(s)?bin/kubelet	--	system_u:object_r:kubelet_exec_t:s0
/var/lib/kubelet(/.*)?	system_u:object_r:kubelet_var_lib_t:s0
/var/lib/kubelet/pods?/secret	--	system_u:object_r:secret_t:s0
/var/tmp/.*	<<none>>
/home/[^/]+/\.ssh(/.*)?	unconfined_u:object_r:ssh_home_t:s0
/a|.*/b	system_u:object_r:both_t:s0
/both/.*	system_u:object_r:first_t:s0
/both/.*	system_u:object_r:second_t:s0
/lib\.so	system_u:object_r:lib_t:s0
";

const LOCAL: &str = "/etc/crio/mine.conf	system_u:object_r:mine_t:s0
/etc/mtab.*	system_u:object_r:local_t:s0
";

fn policy(contexts: &[u8], local: &str) -> (tempfile::TempDir, Tree) {
    let dir = tempfile::tempdir().unwrap();
    let files = dir.path().join("etc/selinux/targeted/contexts/files");
    std::fs::create_dir_all(&files).unwrap();
    std::fs::write(dir.path().join("etc/selinux/config"), "SELINUX=enforcing\n").unwrap();
    std::fs::write(files.join("file_contexts"), contexts).unwrap();
    std::fs::write(files.join("file_contexts.local"), local).unwrap();
    std::fs::write(files.join("file_contexts.subs"), "/srv/nodes /var/lib/kubelet\n").unwrap();
    let shipped = "# ostree\n/var/home /home\n/var/usrlocal /usr\n/run /var/run\n/sysroot /\n";
    std::fs::write(files.join("file_contexts.subs_dist"), shipped).unwrap();
    let tree = Tree::open(dir.path()).unwrap();
    (dir, tree)
}

fn labels(contexts: &str, local: &str) -> Labels {
    let (_dir, tree) = policy(contexts.as_bytes(), local);
    Labels::read(&tree).unwrap().unwrap()
}

#[test]
fn a_path_has_the_label_that_libselinux_gives_it() {
    use Kind::{File, Folder, Link};
    let cases = [
        ("/etc/foo.conf", File, "etc_t"),
        ("/etc", Folder, "etc_t"),
        ("/vmlinuz", File, "etc_runtime_t"),
        ("/vmlinuz", Link, "default_t"),
        ("/etc/systemd/system", Folder, "systemd_unit_file_t"),
        ("/etc/systemd/system/a.service", File, "systemd_unit_file_t"),
        ("/etc/systemd/systemd", File, "etc_t"),
        ("/etc/crio/crio.conf", File, "container_config_t"),
        // Only a socket is a socket.
        ("/etc/crio/crio.sock", File, "container_config_t"),
        // Who names the whole path wins, for the kinds that it speaks of.
        ("/etc/crio/mine.conf", File, "local_t"),
        ("/etc/mtab", Link, "mtab_t"),
        ("/etc/mtab", File, "etc_runtime_t"),
        ("/etc/mtab", Folder, "local_t"),
        ("/usr/bin/kubelet", File, "kubelet_exec_t"),
        ("/usr/sbin/kubelet", File, "kubelet_exec_t"),
        ("/usr/bin/kubelet", Link, "bin_t"),
        ("/var/lib/kubelet/pod/secret", File, "secret_t"),
        ("/var/lib/kubelet/pods/secret", File, "secret_t"),
        ("/var/tmp/new", File, ""),
        ("/var/home/core/.ssh/authorized_keys", File, "ssh_home_t"),
        ("/var/home/core/.ssh", Folder, "ssh_home_t"),
        ("/var/homes/core/.ssh", Folder, "default_t"),
        ("/var/usrlocal/bin/tool", File, "bin_t"),
        ("/sysroot/etc/foo", File, "etc_t"),
        ("/srv/nodes/config.json", File, "kubelet_var_lib_t"),
        // Each end of an expression holds for one side of a `|` only.
        ("/abc", Folder, "both_t"),
        ("/opt/b", File, "both_t"),
        ("/both/a", File, "second_t"),
        ("/lib.so", File, "lib_t"),
    ];
    let labels = labels(
        CONTEXTS,
        &LOCAL
            .replace("mine.conf\tsystem_u:object_r:mine_t", "mine.conf\tsystem_u:object_r:local_t"),
    );
    for (path, kind, expected) in cases {
        let label = labels.label(path, kind).unwrap().unwrap_or_default();
        let kept = label.split(':').nth(2).unwrap_or_default();
        assert_eq!(kept, expected, "{path} {kind:?}");
    }
}

#[test]
fn a_label_is_set_with_the_byte_that_ends_it() {
    let labels = labels(CONTEXTS, "");
    let attribute = labels.attribute("/etc/a", Kind::File).unwrap().unwrap();
    assert_eq!(attribute.name, b"security.selinux");
    assert_eq!(attribute.value, b"system_u:object_r:etc_t:s0\0");
    assert_eq!(labels.attribute("/var/tmp/a", Kind::File).unwrap(), None);
}

#[test]
fn a_host_without_a_policy_has_no_labels() {
    let dir = tempfile::tempdir().unwrap();
    let tree = Tree::open(dir.path()).unwrap();
    let disabled = || Labels::of_host(&tree).unwrap().unwrap_err();
    assert_eq!(disabled(), Disabled::NoConfig);
    std::fs::create_dir_all(dir.path().join("etc/selinux")).unwrap();
    let config = dir.path().join("etc/selinux/config");
    std::fs::write(&config, "SELINUX=disabled\n").unwrap();
    assert_eq!(disabled(), Disabled::ByConfig);
    std::fs::write(&config, "SELINUX=enforcing\n").unwrap();
    assert_eq!(disabled(), Disabled::NoPolicy);
    std::fs::write(&config, "SELINUX=enforcing\nSELINUXTYPE=../..\n").unwrap();
    let error = Labels::of_host(&tree).unwrap_err().to_string();
    assert!(error.contains("SELINUXTYPE=`../..` is no name of a policy"), "{error}");
}

#[test]
fn labels_are_said_where_the_file_system_keeps_them() {
    let (dir, tree) = policy(CONTEXTS.as_bytes(), "");
    let etc = std::fs::File::open(dir.path().join("etc")).unwrap();
    let label = b"system_u:object_r:etc_t:s0\0";
    let kept =
        rustix::fs::fsetxattr(&etc, "security.selinux", label, rustix::fs::XattrFlags::empty());
    let host = Labels::of_host(&tree).unwrap();
    match kept {
        Err(rustix::io::Errno::OPNOTSUPP) => assert_eq!(host.unwrap_err(), Disabled::NoAttributes),
        _ => assert!(host.is_ok()),
    }
}

#[test]
fn a_line_that_says_nothing_is_named() {
    let cases: [(&[u8], &str); 4] = [
        (b"/a x:y:z\n/b\n", "line 2 has no label"),
        (b"/a -x x:y:z\n", "line 1 names no kind of file"),
        (b"\n\n/\xc3\xa4 x:y:z\n", "line 3 has letters that are not ASCII"),
        (b"/\xff x:y:z\n", "line 1 is not valid text"),
    ];
    for (contexts, expected) in cases {
        let (_dir, tree) = policy(contexts, "");
        let error = Labels::read(&tree).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(error.contains("/etc/selinux/targeted/contexts/files/file_contexts"), "{error}");
    }
}

#[test]
fn an_expression_that_cannot_be_used_harms_only_what_it_may_match() {
    let labels = labels("/etc/.*	system_u:object_r:etc_t:s0\n", "/etc/crio/(?!x).*	a:b:c\n");
    assert!(labels.label("/etc/a", Kind::File).unwrap().is_some());
    let error = labels.label("/etc/crio/a", Kind::File).unwrap_err().to_string();
    assert!(error.contains("`/etc/crio/(?!x).*` in file_contexts.local"), "{error}");
    assert!(error.contains("without look-around"), "{error}");
}

#[test]
fn only_the_expressions_near_a_path_are_compiled() {
    let labels = labels(CONTEXTS, "");
    labels.label("/etc/systemd/system/a.service", Kind::File).unwrap();
    let compiled = labels.expressions.iter().filter(|it| it.matches.is_compiled()).count();
    assert!(compiled <= 4, "{compiled} of {} were compiled", labels.expressions.len());
}

proptest! {
    #[test]
    fn no_file_of_contexts_makes_it_panic(
        contexts in "([/a.*+?(){}\\[\\]|\\\\^$]{0,8}[ \t](-[-dlx] )?[a:]{0,4}\n|\\PC|\n){0,12}",
        path in "/[a./]{0,8}",
    ) {
        let mut labels = Labels::default();
        if labels.add("file_contexts", contexts.as_bytes()).is_ok() {
            let _ = labels.label(&path, Kind::File);
        }
    }

    /// What an expression begins with is never longer than what it matches.
    #[test]
    fn no_path_that_matches_is_passed_by(
        text in "/([ab]|\\(|\\)|\\||\\?|\\*|\\.|\\[ab\\]|\\[\\^\\]\\(\\]|\\\\\\.){0,8}",
        path in "/?[ab.]{0,5}",
    ) {
        let expression = Expression::new(&text);
        if expression.matches(&path) == Ok(true) {
            prop_assert!(expression.may_match(&path), "{text} {path}");
        }
        if let Some(literal) = Expression::literal(&text) {
            prop_assert_eq!(expression.matches(&literal), Ok(true));
        }
    }
}
