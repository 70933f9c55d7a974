//! The power of a whole machine is cut at random moments of an operation, and at the next
//! boot nothing reads half a config.

use crate::node::plan;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tread_model::plan::Step;
use tread_node::documents::{Document, Documents};
use tread_test_machine::{End, Machine};

const FILES: usize = 60;
/// How long a machine lives, however many cuts there are, and however busy this one is.
const LIFETIME: Duration = Duration::from_secs(4 * 3600);
const TREAD: &str = env!("CARGO_BIN_EXE_tread-node");

/// At boot, before anything else of the machine: what all files say, each word once; and a line of that
/// for each boot.
const READER: &str = "[Unit]\n\
    DefaultDependencies=no\n\
    After=sysinit.target\n\
    Before=basic.target\n\
    [Service]\n\
    Type=oneshot\n\
    ExecStart=/bin/sh -c 'cat /etc/many/* 2>/dev/null | sort -u | tr \"\\\\n\" \" \" > /var/read; \
    (cat /var/read; echo) >> /var/reads'\n";

/// A config with many files, which all say this.
fn config(word: &str) -> Documents {
    let file = |number| {
        format!(r#"{{"path": "/etc/many/{number}", "contents": {{"source": "data:,{word}%0A"}}}}"#)
    };
    config_of(&(0..FILES).map(file).collect::<Vec<String>>())
}

fn config_of(files: &[String]) -> Documents {
    let text = format!(
        r#"{{"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "metadata": {{"name": "rendered-worker-1",
                          "labels": {{"machineconfiguration.openshift.io/role": "worker"}}}},
            "spec": {{"config": {{"ignition": {{"version": "3.4.0"}},
                                  "storage": {{"files": [{}]}}}}}}}}"#,
        files.join(", ")
    );
    Documents(vec![Document { name: "config".to_owned(), text }])
}

struct Bed(Machine);

impl Bed {
    /// A machine that notes at each boot what the files say.
    fn that_is_read_at_boot() -> Bed {
        Bed::that_has_at_boot("reader.service", READER)
    }

    /// A machine with this unit, that goes on with what was cut short.
    fn that_has_at_boot(name: &str, unit: &str) -> Bed {
        let machine = Machine::build()
            .unit_at_boot(name, unit)
            .link(
                "/etc/systemd/system/tread-machine.target.wants/tread-resume.service",
                "/etc/systemd/system/tread-resume.service",
            )
            .lifetime(LIFETIME)
            .make()
            .unwrap();
        machine.start().unwrap();
        machine.wait_until_booted().unwrap();
        Bed(machine)
    }

    fn put(&self, path: &str, text: &str) {
        std::fs::write(self.0.root().unwrap().join(path), text).unwrap();
    }

    /// What all files say, each word once.
    fn words(&self) -> Vec<String> {
        let said = self.0.run_well(["sh", "-c", "cat /etc/many/* | sort -u"]).unwrap();
        said.lines().map(str::to_owned).collect()
    }

    /// Waits until no operation stands.
    fn is_settled(&self) {
        let ended = || {
            let operation = self.0.root().unwrap().join("var/lib/tread/node/operation");
            operation.symlink_metadata().is_err()
        };
        self.0.wait_for("the operation to end", ended).unwrap();
    }

    /// The same of a machine that may boot meanwhile by itself.
    fn is_over(&self) {
        let ended = || {
            let node = self.0.root().map(|root| root.join("var/lib/tread/node"));
            node.is_ok_and(|node| {
                node.is_dir() && node.join("operation").symlink_metadata().is_err()
            })
        };
        self.0.wait_for("the operation to end", ended).unwrap();
        self.0.wait_until_booted().unwrap();
    }

    /// The same, and nothing of tread's runs any more that could still write.
    fn is_at_rest(&self) {
        self.is_settled();
        let units = ["tread-settle", "tread-resume", "tread-operation", "tread-watch"];
        let _ = self.0.run(["systemctl", "stop", "tread-watch.service"]);
        let runs = |unit: &str| {
            let show = ["systemctl", "show", "-PActiveState", unit];
            let state = self.0.run_well(show).unwrap();
            !matches!(state.trim(), "inactive" | "failed")
        };
        let rests = || !units.iter().any(|unit| runs(&format!("{unit}.service")));
        self.0.wait_for("tread to be at rest", rests).unwrap();
    }

    /// What tread's own units said in this boot.
    fn journal(&self) -> String {
        let words = ["journalctl", "--no-pager", "-b", "--unit=tread-*", "--lines=60"];
        self.0.run(words).map(|said| said.out).unwrap_or_default()
    }

    fn tread(&self, args: &[&str]) -> String {
        let argv: Vec<&str> = [TREAD, "node"].iter().chain(args).copied().collect();
        self.0.run_well(argv).unwrap()
    }
}

#[test]
fn when_the_power_is_cut_at_any_moment_no_boot_reads_half_a_config() {
    let bed = Bed::that_is_read_at_boot();
    let empty = config_of(&[]);
    bed.put("var/empty.json", &empty.0[0].text);
    bed.tread(&["adopt", "--config", "/var/empty.json"]);

    let apply = |from: &Documents, to: &Documents| {
        bed.put("var/next.json", &to.0[0].text);
        let plan = plan(from, to, &[Step::Write]);
        bed.put("var/plan.json", &serde_json::to_string(&plan).unwrap());
        ["apply", "--config", "/var/next.json", "--plan", "/var/plan.json"]
    };
    let began = Instant::now();
    bed.tread(&apply(&empty, &config("one")));
    let whole = began.elapsed();
    assert_eq!(bed.words(), ["one"]);

    let cuts = std::env::var("TREAD_CUTS").ok().and_then(|it| it.parse().ok()).unwrap_or(6);
    let (mut there, mut next) = ("one", "two");
    for cut in 0..cuts {
        let args = apply(&config(there), &config(next));
        let argv = [TREAD, "node"].into_iter().chain(args);
        let mut tread = bed.0.command(argv).unwrap();
        let mut tread = tread.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Moments spread over the time that it took without a cut.
        let moment = whole.mul_f64(f64::from(cut * 2 + 1) / f64::from(cuts * 2));
        std::thread::sleep(moment);
        bed.0.cut_power().unwrap();
        let _ = tread.wait();
        bed.0.start().unwrap();
        bed.0.wait_until_booted().unwrap();
        let settled = ["systemctl", "is-failed", "tread-settle.service"];
        let settled = bed.0.run(settled).unwrap();
        let why = || format!("cut {cut} after {moment:?}\n{}", bed.journal());
        assert_ne!(settled.out.trim(), "failed", "{}", why());
        let read = std::fs::read_to_string(bed.0.root().unwrap().join("var/read")).unwrap();
        let read = read.trim();
        assert!(read == there || read == next, "a boot read {read:?}: {}", why());
        bed.is_at_rest();
        assert_eq!(bed.words(), [read], "{}", why());
        if read == next {
            (there, next) = (next, there);
        }
    }
}

/// A machine that boots for a config, and goes down before the network and whatever goes on with an
/// operation: as often as this, in this way.
fn that_goes_down(times: usize, how: &str) -> Bed {
    let unit = format!(
        "[Unit]\n\
         DefaultDependencies=no\n\
         After=sysinit.target\n\
         Before=basic.target\n\
         [Service]\n\
         Type=oneshot\n\
         ExecStart=/bin/sh -c 'grep -qs bad /etc/many/0 || exit 0; \
         [ $(wc -l </var/down) -lt {times} ] || exit 0; echo down >> /var/down; {how}; sleep infinity'\n"
    );
    let bed = Bed::that_has_at_boot("goes-down.service", &unit);
    bed.put("var/down", "");
    let (good, bad) = (config("good"), config("bad"));
    bed.put("var/good.json", &good.0[0].text);
    let files = "mkdir /etc/many; for n in $(seq 0 59); do echo good > /etc/many/$n; done";
    bed.0.run_well(["sh", "-ec", files]).unwrap();
    bed.tread(&["adopt", "--config", "/var/good.json"]);
    bed.put("var/bad.json", &bad.0[0].text);
    let boot = [Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];
    let plan = plan(&good, &bad, &boot);
    bed.put("var/plan.json", &serde_json::to_string(&plan).unwrap());
    let argv = ["systemd-run", "--no-block", TREAD, "node", "apply"];
    let args = ["--config", "/var/bad.json", "--plan", "/var/plan.json", "--no-drain"];
    bed.0.run_well([&argv[..], &args[..]].concat()).unwrap();
    bed
}

impl Bed {
    /// It goes down and comes again this often, and then an operation ends.
    fn boots(&self, times: usize) {
        for boot in 0..times {
            assert_eq!(self.0.wait_for_end().unwrap(), End::Reboot, "after {boot} boots");
            self.0.start().unwrap();
        }
        self.0.wait_until_booted().unwrap();
        self.is_at_rest();
        let down = std::fs::read_to_string(self.0.root().unwrap().join("var/down")).unwrap();
        assert_eq!(down.lines().count(), 3);
    }
}

#[test]
fn a_machine_that_goes_down_before_anything_is_resumed_goes_back_and_does_not_boot_for_ever() {
    let bed = that_goes_down(100, "systemctl reboot --force --force");
    // One boot for the plan, and one more once the old config is there again.
    bed.boots(5);
    assert_eq!(bed.words(), ["good"]);
    let status = bed.tread(&["status"]);
    let why = "the node went down in 3 boots before it had proved that it is well";
    assert!(status.contains(why), "{status}");
}

#[test]
fn boots_in_order_before_anything_is_resumed_send_no_node_back() {
    let bed = that_goes_down(3, "systemctl --no-block reboot");
    bed.boots(4);
    assert_eq!(bed.words(), ["bad"], "{}", bed.journal());
}

#[test]
fn when_the_power_is_cut_in_the_first_adoption_no_boot_reads_half_a_config() {
    let bed = Bed::that_is_read_at_boot();
    // One that reads half of it, before it is put back, boots once more.
    bed.0.reboots_by_itself(true);
    bed.put("var/two.json", &config("two").0[0].text);
    let sh = |text: &str| drop(bed.0.run_well(["sh", "-ec", text]).unwrap());
    // A node that tread never managed, and on which nothing of tread's runs any more.
    let reset = || {
        bed.is_at_rest();
        sh("rm -rf /var/lib/tread /var/reads; \
            rm -f /etc/systemd/system/tread-*.service /etc/systemd/system/*/tread-settle.service; \
            mkdir -p /etc/many; for n in $(seq 0 59); do echo one > /etc/many/$n; done");
    };
    let adopt = || {
        let words = ["adopt", "--config", "/var/two.json", "--overwrite", "--no-drain"];
        // The machine may go down in the middle of this, so it runs as a unit of it.
        let argv = ["systemd-run", "--no-block", TREAD, "node"].into_iter().chain(words);
        bed.0.run_well(argv.collect::<Vec<&str>>()).unwrap();
    };
    let cuts = std::env::var("TREAD_CUTS").ok().and_then(|it| it.parse().ok()).unwrap_or(5);
    let mut names: Vec<String> = (0..FILES).map(|number| number.to_string()).collect();
    names.sort();
    let mut went_back = 0;
    for cut in 0..cuts {
        reset();
        adopt();
        // However fast it is: once this is there.
        let at = match cut {
            0 => "etc/systemd/system/tread-settle.service".to_owned(),
            1 => "var/lib/tread/node/operation/record".to_owned(),
            _ => format!("etc/many/{}", names[(cut - 2) * FILES / (cuts - 2).max(1)]),
        };
        let is_there = || match bed.0.root() {
            Ok(root) if cut < 2 => root.join(&at).exists(),
            Ok(root) => std::fs::read_to_string(root.join(&at)).is_ok_and(|it| it == "two\n"),
            // It went down meanwhile.
            Err(_) => true,
        };
        bed.0.wait_for(&at, is_there).unwrap();
        // It may be on its way down by itself just then.
        if bed.0.cut_power().is_ok() {
            bed.0.start().unwrap();
        }
        bed.is_over();
        let text = |path: &str| std::fs::read_to_string(bed.0.root().unwrap().join(path)).unwrap();
        let (read, reads) = (text("var/read").trim().to_owned(), text("var/reads"));
        let why = || format!("cut {cut} at {at}: {reads:?}\n{}", bed.journal());
        let mut each = reads.lines().map(str::trim);
        assert!(each.all(|read| ["one", "two"].contains(&read)), "{}", why());
        bed.is_at_rest();
        assert_eq!(bed.words(), [read.as_str()], "{}", why());
        went_back += usize::from(read == "one");
    }
    assert!(went_back > 0, "no cut was before the end");
}

#[test]
fn while_names_may_be_mixed_no_kubelet_starts() {
    let kubelet = "[Service]\nExecStart=/bin/sleep infinity\n";
    let machine = Machine::build().unit_at_boot("kubelet.service", kubelet).make().unwrap();
    machine.start().unwrap();
    machine.wait_until_booted().unwrap();
    let bed = Bed(machine);
    bed.put("var/empty.json", &config_of(&[]).0[0].text);
    bed.tread(&["adopt", "--config", "/var/empty.json"]);
    let state = |bed: &Bed| {
        let said = bed.0.run(["systemctl", "is-active", "kubelet.service"]).unwrap();
        said.out.trim().to_owned()
    };
    bed.0.cut_power().unwrap();
    bed.0.start().unwrap();
    bed.0.wait_until_booted().unwrap();
    assert_eq!(state(&bed), "active", "nothing was to be settled");
    let operation = bed.0.root().unwrap().join("var/lib/tread/node/operation");
    std::fs::create_dir(&operation).unwrap();
    std::fs::write(operation.join("record"), "damaged").unwrap();
    std::fs::write(operation.join("log"), "{\"is\":\"staged\"}\n").unwrap();
    bed.0.cut_power().unwrap();
    bed.0.start().unwrap();
    bed.0.wait_until_booted().unwrap();
    assert_eq!(state(&bed), "inactive");
    let settled = bed.0.run(["systemctl", "is-failed", "tread-settle.service"]).unwrap();
    assert_eq!(settled.out.trim(), "failed");
}
