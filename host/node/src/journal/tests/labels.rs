//! What is new has its label before it is in its place.

use super::*;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Mutex;

/// The label of what stands there, itself and not where it leads.
fn label_at(path: &Path) -> Option<String> {
    let mut label = Vec::with_capacity(100);
    let path = CString::new(path.as_os_str().as_bytes()).unwrap();
    let room = rustix::buffer::spare_capacity(&mut label);
    rustix::fs::lgetxattr(&path, "security.selinux", room).ok()?;
    String::from_utf8(label).ok()
}

/// Looks at each name when it gets into its place, and at what is around it never.
struct Look {
    root: std::path::PathBuf,
    seen: Mutex<Vec<(String, Option<String>)>>,
}

impl Witness for Look {
    fn before(&self, _: &Syscall<'_>) -> io::Result<()> {
        Ok(())
    }

    fn after(&self, syscall: &Syscall<'_>) -> io::Result<()> {
        let path = match syscall {
            Syscall::Link { to, .. } | Syscall::Rename { to, .. } => to,
            Syscall::Exchange { other, .. } => other,
            _ => return Ok(()),
        };
        if !path.contains("/.tread-") {
            let label = label_at(&self.root.join(path.trim_start_matches('/')));
            self.seen.lock().unwrap().push(((*path).to_owned(), label));
        }
        Ok(())
    }
}

#[test]
fn new_files_folders_and_links_have_their_label_when_they_get_into_their_place() {
    let bed = bed();
    let look = Arc::new(Look { root: bed.path("/"), seen: Mutex::default() });
    assert!(write(&bed, look.clone()));
    let mut seen = look.seen.lock().unwrap().clone();
    // A name that only goes is looked at in the stage, where nobody sees it.
    seen.retain(|(path, _)| bed.path(path).symlink_metadata().is_ok());
    let expected = [
        ("/etc/deep", "folder"),
        ("/etc/deep/er", "folder"),
        ("/etc/systemd/system/multi-user.target.wants", "folder"),
        ("/etc/changed.conf", ""),
        ("/etc/added.conf", "file"),
        ("/etc/deep/er/added.conf", "file"),
        ("/etc/systemd/system/masked.service", "link"),
        ("/etc/systemd/system/multi-user.target.wants/a.service", "link"),
        ("/etc/was-a-link", "file"),
        ("/var/usrlocal/bin/tool", "file"),
        ("/etc/shadow", ""),
    ];
    let expected: Vec<(String, Option<String>)> = expected
        .iter()
        .map(|(path, word)| {
            // What changes keeps what it had, and here that is none.
            let label = (!word.is_empty()).then(|| format!("u:r:{word}_t:s0\0"));
            ((*path).to_owned(), label)
        })
        .collect();
    assert_eq!(seen, expected);
}

#[test]
fn a_link_that_is_labelled_changes_nothing_where_it_leads() {
    let bed = bed();
    let target = bed.path("/etc/same.conf");
    let tree = bed.tree();
    let (folder, _) = tree.place("/etc/x").unwrap().unwrap();
    folder.symlink("x", "same.conf").unwrap();
    let label = a_label("/etc/x", Kind::Link).unwrap().unwrap();
    folder.label("x", &[label]).unwrap();
    assert_eq!(label_at(&bed.path("/etc/x")).as_deref(), Some("u:r:link_t:s0\0"));
    assert_eq!(label_at(&target), None);
}

#[test]
fn a_policy_that_cannot_be_read_for_a_folder_is_named_before_anything_is_written() {
    let bed = bed();
    let before = bed.snapshot();
    let label = |path: &str, kind| match kind {
        Kind::Folder => Err(format!("{path}: the policy is damaged")),
        _ => Ok(None),
    };
    let error = prepare(&bed.tree(), "1", targets(), &label).unwrap_err().to_string();
    assert!(error.contains("/etc/deep: the policy is damaged"), "{error}");
    assert_eq!(bed.snapshot(), before);
}

#[test]
fn a_folder_that_somebody_else_makes_meanwhile_stays_theirs_and_nothing_is_left_behind() {
    let bed = bed();
    struct First(std::path::PathBuf);
    impl Witness for First {
        fn before(&self, syscall: &Syscall<'_>) -> io::Result<()> {
            if matches!(syscall, Syscall::Rename { to, .. } if *to == "/etc/deep") {
                std::fs::create_dir(&self.0)?;
                std::fs::write(self.0.join("mine"), "mine")?;
            }
            Ok(())
        }

        fn after(&self, _: &Syscall<'_>) -> io::Result<()> {
            Ok(())
        }
    }
    assert!(write(&bed, Arc::new(First(bed.path("/etc/deep")))));
    assert_eq!(label_at(&bed.path("/etc/deep")), None);
    assert_eq!(bed.text("/etc/deep/er/added.conf").as_deref(), Some("deep"));
    settle(&bed);
    assert_eq!(bed.text("/etc/deep/mine").as_deref(), Some("mine"));
    assert_eq!(bed.names(STATE), ["lock"]);
}
