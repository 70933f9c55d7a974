//! The whole way: orders over the wire, carried out on a machine with a real systemd.

use crate::cluster::{
    Cluster, LONG, Served, config, config_with_argument, operation, order, reload,
};
use crate::program::program;
use std::sync::Arc;
use std::time::Duration;
use tread_agent::start;
use tread_kube::agents::Instructions;
use tread_kube::api::node_update::{UpdateDisrupts, UpdatePhase, UpdateStage};
use tread_model::joining::{BOOTED, Booted};
use tread_model::plan::Step;
use tread_node::agent::Agent;
use tread_node::systemd::{Limits, Manager};
use tread_node::tree::Tree;
use tread_test_machine::{Builder, Machine};

/// How long a machine lives whose test takes as long as it may, however busy this one is.
const LIFETIME: Duration = Duration::from_secs(3600);

/// It says in its log what it read when, and what is odd it reads only when it starts.
const A_SERVICE: &str = "[Service]\n\
    Type=notify\n\
    NotifyAccess=all\n\
    ExecStart=/bin/sh -c 'echo start $(cat /etc/a.conf) >> /var/a.log; \
    systemd-notify --ready; exec sleep infinity'\n\
    ExecReload=/bin/sh -c 'echo reload $(cat /etc/a.conf) >> /var/a.log; ! grep -q odd /etc/a.conf'\n";

struct Bed {
    cluster: Cluster,
    machine: Machine,
    _served: Served,
}

impl Bed {
    async fn with(word: &str) -> Bed {
        Bed::of(Machine::build(), word).await
    }

    async fn of(machine: Builder, word: &str) -> Bed {
        let cluster = Cluster::with_a_node().await;
        let machine = machine
            .lifetime(LIFETIME)
            .unit_at_boot("a.service", A_SERVICE)
            .file("/etc/a.conf", word)
            .make()
            .unwrap();
        machine.reboots_by_itself(true);
        machine.start().unwrap();
        machine.wait_until_running().unwrap();
        let served = cluster.serves().await;
        Bed { cluster, machine, _served: served }
    }

    /// The agent of this boot serves until something has come.
    async fn serves<T>(&self, what: &str, until: impl Future<Output = T>) -> T {
        let tree = Tree::open(&self.machine.root().unwrap()).unwrap();
        let bus = format!("unix:path={}", self.machine.bus().unwrap().display());
        let manager = Manager::new(&bus, Limits::default());
        let wire = start(&tree, self.cluster.settings(), self.cluster.client().await).unwrap();
        let (orders, permits, reporter) = (&wire, &wire, &wire);
        let program = program();
        let agent = Agent { tree, manager: &manager, program, orders, permits, reporter };
        tokio::select! {
            never = agent.run() => match never {},
            came = tokio::time::timeout(LONG, until) => match came {
                Ok(came) => came,
                Err(_) => {
                    let status = self.cluster.update().await.status;
                    let progress = self.text("/var/lib/tread/node/progress");
                    panic!("waited in vain: {what}: {status:?}. {progress}. {}", self.machine.at_work())
                }
            },
        }
    }

    fn text(&self, path: &str) -> String {
        let at = self.machine.root().unwrap().join(path.trim_start_matches('/'));
        std::fs::read_to_string(at).unwrap_or_default()
    }

    fn put(&self, path: &str, text: &str) {
        let at = self.machine.root().unwrap().join(path.trim_start_matches('/'));
        std::fs::write(at, text).unwrap();
    }

    /// Waits until the boot with this number has begun.
    async fn boots(&self, number: usize) {
        while self.machine.boots().len() < number {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn becomes(&self, number: u32, phase: UpdatePhase) -> Option<String> {
        let is = |status: &tread_kube::api::node_update::NodeUpdateStatus| {
            let is = status.phase == Some(phase) && status.operation == Some(operation(number));
            is.then(|| status.message.clone())
        };
        self.cluster.says(&format!("{phase:?} of {number}"), is).await
    }

    async fn adopts(&self, word: &str) {
        let config = Some(Arc::new(config(word)));
        self.cluster.knows.instruct(Instructions {
            form: 1,
            adopt: true,
            config,
            ..Instructions::default()
        });
        let has = self.cluster.says("what it has", |status| status.current.clone());
        let has = self.serves("what it has", has).await;
        assert_eq!(has, crate::cluster::config(word).name);
    }
}

#[tokio::test]
async fn an_order_from_the_cluster_changes_a_file_and_its_unit_and_ends_as_done() {
    let bed = Bed::with("one").await;
    bed.adopts("one").await;
    bed.cluster.knows.permits(Ok(60_000));
    let go = order(1, UpdateStage::Go, ("one", "two"), &reload(), UpdateDisrupts::Softly);
    bed.cluster.knows.instruct(go);
    bed.serves("its end", bed.becomes(1, UpdatePhase::Done)).await;
    assert_eq!(bed.text("/etc/a.conf"), "two");
    assert_eq!(bed.text("/var/a.log").lines().last(), Some("reload two"));
    let status = bed.cluster.update().await.status.unwrap();
    assert_eq!(status.current, Some(config("two").name));
    let asked = bed.cluster.knows.asked.lock().unwrap().clone();
    let asked: Vec<_> = asked.iter().map(|ask| (ask.operation.clone(), ask.what)).collect();
    use tread_kube::agents::Asked::{Unit, Write};
    assert_eq!(asked, [(operation(1), Write), (operation(1), Unit)]);

    // One that begins elsewhere than the node is.
    let go = order(2, UpdateStage::Go, ("one", "three"), &reload(), UpdateDisrupts::Softly);
    bed.cluster.knows.instruct(go);
    let why = bed.serves("its end", bed.becomes(2, UpdatePhase::TurnedBack)).await;
    assert!(why.as_ref().is_some_and(|why| why.contains("plan")), "{why:?}");
    assert_eq!(bed.text("/etc/a.conf"), "two");
}

#[tokio::test]
async fn a_step_that_fails_waits_for_a_boot_that_the_cluster_permits() {
    let bed = Bed::with("one").await;
    bed.adopts("one").await;
    bed.cluster.knows.permits(Ok(60_000));
    let go = |stage, disrupts| order(1, stage, ("one", "odd"), &reload(), disrupts);
    let boots = bed.machine.boots().len();
    bed.cluster.knows.instruct(go(UpdateStage::Go, UpdateDisrupts::Softly));
    bed.serves("that it needs a boot", bed.becomes(1, UpdatePhase::NeedsBoot)).await;
    // While the node is prepared for the boot it stays up.
    bed.cluster.knows.instruct(go(UpdateStage::Prepare, UpdateDisrupts::Reboot));
    bed.serves("that it heard of it", bed.cluster.knows.is_heard()).await;
    assert_eq!(bed.machine.boots().len(), boots);
    bed.cluster.knows.instruct(go(UpdateStage::Go, UpdateDisrupts::Reboot));
    let boots_anew = async {
        while bed.machine.boots().len() == boots {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    bed.serves("its boot", boots_anew).await;
    bed.machine.wait_until_booted().unwrap();
    bed.serves("its end", bed.becomes(1, UpdatePhase::Done)).await;
    assert_eq!(bed.machine.boots().len(), boots + 1);
    assert_eq!(bed.text("/etc/a.conf"), "odd");
    assert_eq!(bed.text("/var/a.log").lines().last(), Some("start odd"));
    let status = bed.cluster.update().await.status.unwrap();
    assert_eq!(status.current, Some(config("odd").name));
    let boot = tread_node::systemd::boot_id_of(&Tree::open(&bed.machine.root().unwrap()).unwrap());
    assert_eq!(status.boot_id, Some(boot.unwrap()), "of the boot that it proved itself in");
}

#[tokio::test]
async fn a_plan_that_no_unit_can_carry_out_waits_for_a_boot_that_the_cluster_permits() {
    let bed = Bed::with("one").await;
    bed.adopts("one").await;
    bed.cluster.knows.permits(Ok(60_000));
    let steps = [reload(), vec![Step::Restart { unit: "missing.service".to_owned() }]].concat();
    let go = |disrupts| order(1, UpdateStage::Go, ("one", "two"), &steps, disrupts);
    bed.cluster.knows.instruct(go(UpdateDisrupts::Softly));
    let why = bed.cluster.says("why it needs a boot", |status| {
        let why = status.message.clone().filter(|it| it.contains("missing.service"));
        why.filter(|_| status.phase == Some(UpdatePhase::NeedsBoot))
    });
    let why = bed.serves("why it needs a boot", why).await;
    assert!(why.contains("the node boots instead"), "{why}");
    assert_eq!(bed.text("/var/a.log"), "start one\n", "no unit was told of anything");
    bed.cluster.knows.instruct(go(UpdateDisrupts::Reboot));
    bed.serves("its boot", bed.boots(2)).await;
    bed.machine.wait_until_booted().unwrap();
    bed.serves("its end", bed.becomes(1, UpdatePhase::Done)).await;
    assert_eq!(bed.text("/var/a.log"), "start one\nstart two\n");
}

#[tokio::test]
async fn a_node_that_is_degraded_is_tried_again_once_an_admin_asks_for_it() {
    let bed = Bed::with("one").await;
    bed.adopts("one").await;
    bed.cluster.knows.permits(Ok(60_000));
    let odd = |disrupts| order(1, UpdateStage::Go, ("one", "odd"), &reload(), disrupts);
    bed.cluster.knows.instruct(odd(UpdateDisrupts::Softly));
    bed.serves("that it needs a boot", bed.becomes(1, UpdatePhase::NeedsBoot)).await;
    // Somebody changes in the middle of it what was written.
    bed.put("/etc/a.conf", "by hand");
    bed.cluster.knows.instruct(odd(UpdateDisrupts::Reboot));
    bed.serves("its boot", bed.boots(2)).await;
    bed.machine.wait_until_booted().unwrap();
    let why = bed.serves("its end", bed.becomes(1, UpdatePhase::Degraded)).await;
    assert!(why.as_ref().is_some_and(|why| why.contains("/etc/a.conf")), "{why:?}");

    let again = |number, retries: Option<u32>| {
        let disrupts = UpdateDisrupts::Reboot;
        let mut instructions = order(number, UpdateStage::Go, ("odd", "two"), &[], disrupts);
        let order = instructions.order.as_mut().unwrap();
        (order.plan, order.retries, order.unwell) = (None, retries.map(operation), true);
        instructions
    };
    // Nobody asked for it: nothing is given up.
    bed.cluster.knows.instruct(again(2, None));
    let why = bed.serves("its end", bed.becomes(2, UpdatePhase::Degraded)).await;
    assert!(why.as_ref().is_some_and(|why| why.contains("settled first")), "{why:?}");
    // It is given up, and what somebody changed is not overwritten.
    bed.cluster.knows.instruct(again(3, Some(2)));
    let why = bed.serves("its end", bed.becomes(3, UpdatePhase::TurnedBack)).await;
    let named = ["/etc/a.conf", &operation(1), "was given up"];
    let why = why.unwrap_or_default();
    assert!(named.iter().all(|it| why.contains(it)), "{why}");
    assert_eq!(bed.text("/etc/a.conf"), "by hand");
    assert_eq!(bed.machine.boots().len(), 2);

    bed.put("/etc/a.conf", "odd");
    bed.cluster.knows.instruct(again(4, Some(3)));
    bed.serves("its boot", bed.boots(3)).await;
    bed.machine.wait_until_booted().unwrap();
    bed.serves("its end", bed.becomes(4, UpdatePhase::Done)).await;
    assert_eq!(bed.text("/etc/a.conf"), "two");
    let status = bed.cluster.update().await.status.unwrap();
    assert_eq!(status.current, Some(config("two").name));
    assert_eq!(bed.machine.boots().len(), 3);
}

#[tokio::test]
async fn a_node_that_is_made_anew_in_the_middle_of_an_operation_gets_the_rest_by_a_boot() {
    let bed = Bed::with("one").await;
    bed.adopts("one").await;
    bed.cluster.knows.permits(Ok(60_000));
    let softly = UpdateDisrupts::Softly;
    bed.cluster.knows.instruct(order(7, UpdateStage::Go, ("one", "odd"), &reload(), softly));
    bed.serves("that it needs a boot", bed.becomes(7, UpdatePhase::NeedsBoot)).await;
    let anew = |instructions: Instructions| Instructions {
        form: 1,
        uid: Some("another".to_owned()),
        ..instructions
    };
    let (adopt, config) = (true, Some(Arc::new(config("odd"))));
    bed.cluster.knows.instruct(anew(Instructions { adopt, config, ..Instructions::default() }));
    let why = bed.serves("its end", bed.becomes(7, UpdatePhase::Degraded)).await;
    assert!(why.as_ref().is_some_and(|why| why.contains("made anew")), "{why:?}");
    // Its disk is as the config says, and what runs is not.
    let part = bed.cluster.says("what it has", |status| {
        status.current.clone().filter(|current| current.digest.is_empty())
    });
    let part = bed.serves("what it has", part).await;
    assert_eq!(part.name, "part-of-rendered-worker-odd");
    assert_eq!(bed.text("/etc/a.conf"), "odd");
    assert_eq!(bed.machine.boots().len(), 1, "nothing boots without a permit");

    let mut instructions = order(1, UpdateStage::Go, ("one", "odd"), &[], UpdateDisrupts::Reboot);
    instructions.order.as_mut().unwrap().plan = None;
    bed.cluster.knows.instruct(anew(instructions));
    bed.serves("its boot", bed.boots(2)).await;
    bed.machine.wait_until_booted().unwrap();
    bed.serves("its end", bed.becomes(1, UpdatePhase::Done)).await;
    let status = bed.cluster.update().await.status.unwrap();
    assert_eq!(status.current, Some(crate::cluster::config("odd").name));
    assert_eq!(bed.text("/var/a.log").lines().last(), Some("start odd"));
    assert_eq!(bed.machine.boots().len(), 2);
}

/// What stands in for rpm-ostree, with what it does as the machine comes up and goes down.
const STAND_IN: &str = include_str!("../../node/tests/operation/os/stand-in.sh");
const STANDS_IN_AT_BOOT: &str = "[Unit]\nDefaultDependencies=no\nBefore=sysinit.target\n\
    [Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/libexec/stand-in boot\n";
const STANDS_IN_AT_ITS_END: &str = "[Unit]\nAfter=stand-in-boot.service\n\
    [Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n\
    ExecStop=/usr/libexec/stand-in finalize\n";

#[tokio::test]
async fn a_machine_that_joins_boots_once_for_what_it_could_not_boot_with() {
    let served = config_with_argument("one", "nosmt");
    let digest = tread_model::digest::Digest::parse(&served.name.digest).unwrap();
    let booted = Booted::with("infra", &served.name.name, digest);
    let deployment = "/var/lib/stand-in/deployments/os-0.0";
    let machine = Machine::build()
        .file_with_mode("/usr/libexec/stand-in", STAND_IN, 0o755)
        .link("/usr/bin/rpm-ostree", "/usr/libexec/stand-in")
        .unit_at_boot("stand-in-boot.service", STANDS_IN_AT_BOOT)
        .unit_at_boot("stand-in-finalize.service", STANDS_IN_AT_ITS_END)
        .file(format!("{deployment}/image"), "a.example/os@sha256:old\n")
        .file(format!("{deployment}/arguments"), "root=UUID=1 ro quiet\n")
        .file("/var/lib/stand-in/fetched", "")
        .file("/var/lib/stand-in/order", "os-0.0\n")
        .file(BOOTED, serde_json::to_vec(&booted).unwrap());
    let bed = Bed::of(machine, "one").await;
    let config = Some(Arc::new(served.clone()));
    let instructions =
        Instructions { form: 1, adopt: true, joins: true, config, ..Instructions::default() };
    bed.cluster.knows.instruct(instructions);
    // As long as it may not, nothing is done.
    let waits = bed.cluster.says("that it waits", |status| {
        status.message.as_ref().filter(|it| it.contains("waits for a permit")).cloned()
    });
    bed.cluster.knows.permits(Err("not yet"));
    bed.serves("that it waits", waits).await;
    assert_eq!(bed.machine.boots().len(), 1);
    bed.cluster.knows.permits(Ok(60_000));
    bed.serves("its boot", bed.boots(2)).await;
    bed.machine.wait_until_booted().unwrap();
    let has = bed.cluster.says("what it has", |status| status.current.clone());
    assert_eq!(bed.serves("what it has", has).await, served.name);
    assert_eq!(bed.machine.boots().len(), 2, "one boot, and no more");
    let said = bed.machine.run_well(["rpm-ostree", "status", "--json"]).unwrap();
    assert!(said.contains("os-1.0"), "{said}");
    let asked = bed.cluster.knows.asked.lock().unwrap().clone();
    assert!(asked.iter().any(|it| it.what == tread_kube::agents::Asked::Boot), "{asked:?}");
}
