//! A host whose SELinux policy a config spoils, and corrects.

use crate::node::{Bed, config_with, unit_with};
use crate::restart;
use tread_model::plan::Step;
use tread_node::documents::Documents;
use tread_node::operation::Ended;
use tread_test_machine::{End, Machine};

const CONFIG: &str = "/etc/selinux/config";
const LOCAL: &str = "/etc/selinux/targeted/contexts/files/file_contexts.local";

/// A host with a policy, whose config has these texts for two of its files.
fn bed(selinux: &str, local: &str) -> Bed {
    let contexts = "/etc/selinux/targeted/contexts/files/file_contexts";
    let machine = Machine::build()
        .file(CONFIG, selinux)
        .file(contexts, "/.*    system_u:object_r:any_t:s0\n")
        .file(LOCAL, local);
    Bed::of(machine, "one", &unit_with("/bin/true"), &config("one", (selinux, local), ""))
}

fn config(word: &str, (selinux, local): (&str, &str), more: &str) -> Documents {
    let file = |(path, text): (&str, &str)| {
        let text = text.replace(' ', "%20").replace('\n', "%0A");
        format!(
            r#"{{"path": "{path}", "overwrite": true, "contents": {{"source": "data:,{text}"}}}},"#
        )
    };
    let files = [file((CONFIG, selinux)), file((LOCAL, local)), more.to_owned()];
    config_with(word, &files.concat(), "")
}

const TARGETED: &str = "SELINUX=permissive\nSELINUXTYPE=targeted\n";
const LINE: &str = "/var/a    system_u:object_r:a_t:s0\n";

#[test]
fn a_policy_that_nobody_can_read_does_not_stop_the_way_back() {
    let bed = bed(TARGETED, LINE);
    let spoils = config("bad", (TARGETED, "/var/a\n"), "");
    assert_eq!(bed.until_it_boots(&spoils, &restart()), End::Reboot);
    bed.boot();
    assert_eq!(bed.until_it_boots_again(), End::Reboot);
    bed.boot();
    let ended = bed.go_on().unwrap();
    assert!(matches!(ended, Ended::WentBack { .. }), "{ended:?}");
    assert_eq!(bed.text(LOCAL).as_deref(), Some(LINE));
}

#[test]
fn a_policy_that_nobody_can_read_does_not_stop_an_order_that_corrects_it() {
    let spoilt = [
        ((TARGETED, "/var/a\n"), "file_contexts.local: line 1"),
        (("SELINUX=permissive\nSELINUXTYPE=../a\n", LINE), "SELINUXTYPE=`../a`"),
    ];
    let new = r#"{"path": "/etc/new", "contents": {"source": "data:,new"}},"#;
    let (write, right) = ([Step::Write], (TARGETED, LINE));
    for (texts, named) in spoilt {
        let bed = bed(TARGETED, LINE);
        assert_eq!(bed.carry_out(&config("one", texts, ""), &write).unwrap(), Ended::Done);
        let error = bed.carry_out(&config("one", texts, new), &write).unwrap_err().to_string();
        assert!(error.contains("/etc/new") && error.contains(named), "{named}: {error}");
        assert_eq!(bed.text("/etc/new"), None, "{named}");
        assert_eq!(bed.carry_out(&config("one", right, ""), &write).unwrap(), Ended::Done);
        assert_eq!(bed.carry_out(&config("one", right, new), &write).unwrap(), Ended::Done);
    }
}
