//! Permits that end before they are used.

use crate::node::{Bed, config, unit_with};
use crate::{reload, restart};
use futures::future::LocalBoxFuture;
use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;
use tread_model::plan::Step;
use tread_node::operation::{Ended, OperationError};
use tread_node::permits::{Act, NoPermit, Permit, Permits};
use tread_node::progress::{Phase, StepState};
use tread_test_machine::End;

fn since_boot() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(now.tv_sec.try_into().unwrap(), now.tv_nsec.try_into().unwrap())
}

/// Gives permits of which those for some acts have ended.
struct Ended0(fn(&Act) -> bool);

impl Permits for Ended0 {
    fn ask(&self, act: Act) -> LocalBoxFuture<'_, Result<Permit, NoPermit>> {
        let permit = if self.0(&act) { Permit::until(Duration::ZERO) } else { Permit::FOREVER };
        Box::pin(async move { Ok(permit) })
    }
}

#[test]
fn a_permit_that_ended_is_used_for_nothing_and_the_operation_goes_on_with_the_next_one() {
    let bed = Bed::with("one", &unit_with("/bin/true"));
    let has_no_permit = |ended: Result<Ended, OperationError>| {
        let error = ended.unwrap_err().to_string();
        assert!(error.contains("the permit ended before it was used"), "{error}");
    };
    let write = Ended0(|act| matches!(act, Act::Write));
    has_no_permit(bed.carry_out_with(&write, &config("two"), &reload()));
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("one"), "no name has changed");
    assert_eq!(bed.go_on().unwrap(), Ended::Nothing);
    let unit = Ended0(|act| matches!(act, Act::Unit { .. }));
    has_no_permit(bed.carry_out_with(&unit, &config("two"), &reload()));
    assert_eq!(bed.log(), ["start one"], "no unit was told");
    assert_eq!(bed.go_on().unwrap(), Ended::Done);
    assert_eq!(bed.log(), ["start one", "reload two"]);
    let boot = Ended0(|act| matches!(act, Act::Boot { .. }));
    let steps = [Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];
    has_no_permit(bed.carry_out_with(&boot, &config("three"), &steps));
    assert_eq!(bed.machine.boots().len(), 1, "no boot was asked for");
    assert_eq!(bed.until_it_boots_again(), End::Reboot);
    bed.boot();
    assert_eq!(bed.go_on().unwrap(), Ended::Done);
}

/// An admin lets a user read the file while the write waits for its permit.
struct LetIn(PathBuf);

/// What `setfacl -m u:1234:r` makes of a file with mode 0644.
const LIST: [u8; 44] = [
    2, 0, 0, 0, // the version
    1, 0, 6, 0, 255, 255, 255, 255, // its owner
    2, 0, 4, 0, 0xd2, 4, 0, 0, // the user 1234
    4, 0, 4, 0, 255, 255, 255, 255, // its group
    16, 0, 4, 0, 255, 255, 255, 255, // what all but the owner may at most
    32, 0, 4, 0, 255, 255, 255, 255, // everybody else
];
const ACCESS_LIST: &str = "system.posix_acl_access";

impl Permits for LetIn {
    fn ask(&self, act: Act) -> LocalBoxFuture<'_, Result<Permit, NoPermit>> {
        if matches!(act, Act::Write) {
            let flags = rustix::fs::XattrFlags::empty();
            rustix::fs::setxattr(&self.0, ACCESS_LIST, &LIST, flags).unwrap();
        }
        Box::pin(async { Ok(Permit::FOREVER) })
    }
}

#[test]
fn whom_an_admin_lets_in_while_a_permit_is_waited_for_may_read_what_is_written() {
    let bed = Bed::with("one", &unit_with("/bin/true"));
    let at = bed.machine.root().unwrap().join("etc/a.conf");
    let ended = bed.carry_out_with(&LetIn(at.clone()), &config("two"), &reload());
    assert_eq!(ended.unwrap(), Ended::Done);
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("two"));
    let mut list = [0; 100];
    let length = rustix::fs::getxattr(&at, ACCESS_LIST, &mut list).unwrap();
    assert_eq!(list[..length], LIST);
}

/// Nobody permits what comes after the write, now or later.
struct Gone;

impl Permits for Gone {
    fn ask(&self, act: Act) -> LocalBoxFuture<'_, Result<Permit, NoPermit>> {
        Box::pin(async move {
            match act {
                Act::Write => Ok(Permit::FOREVER),
                Act::Unit { .. } | Act::Boot { .. } => {
                    Err(NoPermit::Never("the node is gone".to_owned()))
                }
            }
        })
    }
}

#[test]
fn what_is_permitted_nothing_more_for_ever_ends_as_degraded_and_stands() {
    let bed = Bed::with("one", &unit_with("/bin/true"));
    let because = "the node is gone".to_owned();
    let degraded = Ended::Degraded { because: because.clone() };
    assert_eq!(bed.carry_out_with(&Gone, &config("two"), &reload()).unwrap(), degraded);
    let progress = bed.progress();
    assert_eq!((progress.phase, progress.message), (Phase::Degraded, because));
    assert_eq!(progress.steps[1].state, StepState::Waiting, "{:?}", progress.steps);
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("two"), "what was written stays");
    assert_eq!(bed.log(), ["start one"], "no unit was told");
    // What stands there can be gone on with by whoever has to ask nobody.
    assert_eq!(bed.go_on().unwrap(), Ended::Done);
    assert_eq!(bed.log(), ["start one", "reload two"]);
    let steps = [Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];
    assert_eq!(bed.carry_out_with(&Gone, &config("three"), &steps).unwrap(), degraded);
    assert_eq!(bed.machine.boots().len(), 1, "no boot was asked for");
}

/// The first permit for a boot ends while somebody inhibits that, who goes only then.
struct EndsMeanwhile {
    go: PathBuf,
    asked: RefCell<Vec<bool>>,
}

impl Permits for EndsMeanwhile {
    fn ask(&self, act: Act) -> LocalBoxFuture<'_, Result<Permit, NoPermit>> {
        let permit = match act {
            Act::Boot { .. } => {
                self.asked.borrow_mut().push(self.go.exists());
                // However slow it is, it is used with a later one.
                let first = self.asked.borrow().len() == 1;
                let lasts = Duration::from_secs(if first { 3 } else { 3600 });
                let permit = Permit::until(since_boot() + lasts);
                let go = self.go.clone();
                if first {
                    std::thread::spawn(move || {
                        while permit.holds() {
                            std::thread::sleep(Duration::from_millis(10));
                        }
                        let _ = std::fs::write(go, "");
                    });
                }
                permit
            }
            Act::Write | Act::Unit { .. } => Permit::FOREVER,
        };
        Box::pin(async move { Ok(permit) })
    }
}

#[test]
fn a_permit_for_a_boot_that_ends_while_somebody_inhibits_it_is_asked_for_anew() {
    let bed = Bed::with("one", &unit_with("/bin/true"));
    let root = bed.machine.root().unwrap();
    let held = "touch /run/held; until [ -e /run/go ]; do sleep 0.05; done";
    let inhibit = ["systemd-run", "systemd-inhibit", "--what=shutdown", "--mode=block", "sh", "-c"];
    bed.machine.run_well(inhibit.into_iter().chain([held])).unwrap();
    bed.machine.wait_for("the inhibitor", || root.join("run/held").exists()).unwrap();
    let permits = EndsMeanwhile { go: root.join("run/go"), asked: RefCell::default() };
    let steps = [Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];
    assert_eq!(bed.until_it_boots_with(&permits, &config("two"), &steps), End::Reboot);
    let asked = permits.asked.borrow();
    assert!(asked.len() >= 2, "{asked:?}");
    assert_eq!(asked[..2], [false, true], "again once nobody inhibited it");
    bed.boot();
    assert_eq!(bed.go_on().unwrap(), Ended::Done);
    assert_eq!(bed.machine.boots().len(), 2);
}

#[test]
fn once_it_was_reported_as_degraded_it_boots_no_more_without_a_permit() {
    let mut bed = Bed::with("one", &unit_with("/bin/true"));
    bed.terms.proof = 1;
    let steps = [Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];
    assert_eq!(bed.until_it_boots(&config("two"), &steps), End::Reboot);
    bed.boot();
    // It goes back, and neither logind nor systemd boots it.
    let ended = bed.go_on_without_a_bus().unwrap();
    assert!(matches!(ended, Ended::Degraded { .. }), "{ended:?}");
    // By then its slot may be somebody else's.
    let ended = bed.go_on_without_a_permit_to_boot();
    assert!(matches!(ended, Err(OperationError::Forbidden(_))), "{ended:?}");
    assert_eq!(bed.machine.boots().len(), 2);
    bed.reboot();
    let ended = bed.go_on().unwrap();
    assert!(matches!(ended, Ended::WentBack { .. }), "{ended:?}");
}

#[test]
fn a_permitted_boot_that_an_admin_brings_about_covers_the_one_by_which_the_node_goes_back() {
    let bed = Bed::with("one", &unit_with("/bin/true"));
    // With this config the unit does not start, so the node has to boot.
    bed.until_staged(&config("bad"), &restart());
    // The boot is permitted, and neither logind nor systemd boots the node.
    let ended = bed.go_on_without_a_bus().unwrap();
    assert!(matches!(ended, Ended::Degraded { .. }), "{ended:?}");
    bed.reboot();
    // With that config nobody could reach the node to permit another boot.
    assert_eq!(bed.until_it_boots_without_a_permit(), End::Reboot);
    bed.boot();
    let ended = bed.go_on().unwrap();
    assert!(matches!(ended, Ended::WentBack { .. }), "{ended:?}");
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("one"));
    assert_eq!(bed.machine.boots().len(), 3);
}
