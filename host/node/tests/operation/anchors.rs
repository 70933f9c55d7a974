//! What the host trusts, over a boot, where nothing at boot brings it up to date.

use crate::node::{Bed, config_with, unit_with};
use tread_model::plan::Step;
use tread_node::documents::Documents;
use tread_node::operation::Ended;
use tread_test_machine::{End, Machine};

const UPDATE: &str = "#!/bin/sh\ncat /etc/pki/ca-trust/source/anchors/a.pem > /etc/trusted\n";
/// Who waits for it knows that it has read what it trusts.
const CRIO: &str = "[Service]\nType=notify\nNotifyAccess=all\n\
    ExecStart=/bin/sh -c 'grep -q bad /etc/a.conf && exit 1; cat /etc/trusted >> /var/read; echo >> /var/read; \
    systemd-notify --ready; exec sleep infinity'\n";

fn config(word: &str) -> Documents {
    let anchor = format!(
        r#"{{"path": "/etc/pki/ca-trust/source/anchors/a.pem", "contents": {{"source": "data:,{word}"}}}},"#
    );
    config_with(word, &anchor, "")
}

/// Of CoreOS: it runs in the first boot alone.
const FIRST_BOOT: &str = "[Unit]\nConditionFirstBoot=true\n\
    ConditionDirectoryNotEmpty=/etc/pki/ca-trust/source/anchors/\n\
    [Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/update-ca-trust extract\n";

#[test]
fn a_boot_finds_new_anchors_trusted_also_where_the_host_does_not_see_to_that_itself() {
    let machine = Machine::build()
        .file_with_mode("/usr/bin/update-ca-trust", UPDATE, 0o755)
        .file("/etc/pki/ca-trust/source/anchors/a.pem", "one")
        .file("/etc/trusted", "one")
        .unit_at_boot("coreos-update-ca-trust.service", FIRST_BOOT)
        .unit_at_boot("crio.service", CRIO);
    let mut bed = Bed::of(machine, "one", &unit_with("/bin/true"), &config("one"));
    let planned = [Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];
    assert_eq!(bed.until_it_boots(&config("two"), &planned), End::Reboot);
    let at = bed.machine.disk().join("etc/trusted");
    assert_eq!(std::fs::read_to_string(&at).unwrap(), "two");
    bed.boot();
    assert_eq!(bed.text("/var/read").as_deref(), Some("one\ntwo\n"), "what runs trusts it");
    // As after a power cut that came before it was brought up to date.
    std::fs::write(&at, "one").unwrap();
    assert_eq!(bed.go_on().unwrap(), Ended::Done);
    assert_eq!(bed.text("/etc/trusted").as_deref(), Some("two"));
    assert_eq!(bed.machine.boots().len(), 2);
    // Long enough to see that the old one is well again.
    bed.terms.proof = 20;
    // The old anchors are trusted again where the node goes back.
    assert_eq!(bed.until_it_boots(&config("bad"), &planned), End::Reboot);
    bed.boot();
    assert_eq!(bed.until_it_boots_again(), End::Reboot);
    assert_eq!(std::fs::read_to_string(&at).unwrap(), "two");
    bed.boot();
    assert!(matches!(bed.go_on().unwrap(), Ended::WentBack { .. }));
}
