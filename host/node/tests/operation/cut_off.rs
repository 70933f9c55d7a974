//! A config that cuts the node off from its API server.

use crate::node::{Bed, config, config_with, unit_with};
use crate::reload;
use futures::future::LocalBoxFuture;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::cell::Cell;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tread_model::plan::Step;
use tread_node::operation::{Ended, OperationError};
use tread_node::permits::{Act, NoPermit, Permit, Permits};
use tread_node::terms::Terms;
use tread_test_machine::{End, Machine};

/// An API server that answers while the machine's file does not say what cuts it off; the
/// root of the machine's disk, and where it listens.
fn api_server(
    disk: PathBuf,
    mut lets_through: impl FnMut(&str) -> bool + Send + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let word = std::fs::read_to_string(disk.join("etc/a.conf")).unwrap_or_default();
            if lets_through(&word) {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 64]);
                let _ = stream.write_all(b"HTTP/1.0 400 Bad Request\r\n\r\n");
            }
        }
    });
    address
}

fn bed(lets_through: impl FnMut(&str) -> bool + Send + 'static) -> Bed {
    let mut bed = Bed::with("one", &unit_with("/bin/true"));
    let address = api_server(bed.machine.disk(), lets_through);
    bed.terms = Terms { api_server: Some(address), cut_off: 1, ..bed.terms };
    bed
}

fn why(ended: Ended) -> String {
    let Ended::WentBack { because } = ended else { panic!("it did not go back: {ended:?}") };
    because
}

#[test]
fn a_config_that_cuts_the_node_off_is_gone_back_from_by_the_same_units() {
    let bed = bed(|word| word == "one");
    let because = why(bed.carry_out(&config("two"), &reload()).unwrap());
    assert!(because.contains("was reached before, and since then for 1 s"), "{because}");
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("one"));
    assert_eq!(bed.log(), ["start one", "reload two", "reload one"]);
    assert_eq!(bed.progress().warning, "");
    assert_eq!(bed.machine.boots().len(), 1);
    assert_eq!(bed.go_on().unwrap(), Ended::Nothing, "it is not tried again");
}

#[test]
fn what_a_mount_covers_on_the_way_back_is_named() {
    let machine = Arc::new(AtomicI32::new(0));
    let mounts = {
        let machine = Arc::clone(&machine);
        // While it is waited for the API server, after the proof.
        move || {
            let pid = machine.load(Ordering::SeqCst).to_string();
            let mount = ["mount", "-t", "tmpfs", "none", "/etc/deep"];
            let done = Command::new("nsenter").args(["-t", &pid, "-m"]).args(mount).status();
            assert!(done.unwrap().success());
        }
    };
    let mut mounts = Some(mounts);
    let bed = bed(move |word| {
        if word == "two"
            && let Some(mounts) = mounts.take()
        {
            mounts();
        }
        word == "one"
    });
    machine.store(bed.machine.pid().unwrap(), Ordering::SeqCst);
    let file = r#"{"path": "/etc/deep/new", "contents": {"source": "data:,new"}},"#;
    let because = why(bed.carry_out(&config_with("two", file, ""), &reload()).unwrap());
    assert!(because.contains("a mount that came since covers /etc/deep/new"), "{because}");
    assert!(bed.progress().message.contains("covers /etc/deep/new: unmount it"));
    bed.machine.run_well(["umount", "/etc/deep"]).unwrap();
    assert_eq!(bed.text("/etc/deep/new").as_deref(), Some("new"), "it was true");
}

#[test]
fn a_planned_boot_after_which_the_node_is_cut_off_is_gone_back_from_by_one_more() {
    let bed = bed(|word| word == "one");
    let steps = [Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];
    assert_eq!(bed.until_it_boots(&config("two"), &steps), End::Reboot);
    bed.boot();
    assert_eq!(bed.until_it_boots_again(), End::Reboot);
    bed.boot();
    why(bed.go_on().unwrap());
    assert_eq!(bed.log(), ["start one", "start two", "start one"]);
}

#[test]
fn a_node_that_is_cut_off_goes_back_although_somebody_changed_a_name_meanwhile() {
    let bed = bed(|word| word == "one");
    let steps = [Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];
    let file = r#"{"path": "/etc/b.conf", "contents": {"source": "data:,ours"}},"#;
    assert_eq!(bed.until_it_boots(&config_with("two", file, ""), &steps), End::Reboot);
    bed.boot();
    std::fs::write(bed.machine.root().unwrap().join("etc/b.conf"), "theirs").unwrap();
    assert_eq!(bed.until_it_boots_again(), End::Reboot);
    bed.boot();
    let because = why(bed.go_on().unwrap());
    assert!(because.contains("was reached before, and since then for 1 s"), "{because}");
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("one"));
}

/// Permits this many units, and has whoever asks for more ask again later.
struct NotYetAfter(Cell<usize>);

impl Permits for NotYetAfter {
    fn ask(&self, act: Act) -> LocalBoxFuture<'_, Result<Permit, NoPermit>> {
        let left = self.0.get();
        let is_unit = matches!(act, Act::Unit { .. });
        self.0.set(left.saturating_sub(usize::from(is_unit)));
        let is_permitted = !is_unit || left > 0;
        let not_yet = || NoPermit::NotNow("not yet".to_owned());
        Box::pin(async move { is_permitted.then_some(Permit::FOREVER).ok_or_else(not_yet) })
    }
}

#[test]
fn a_node_that_is_cut_off_goes_back_without_a_boot_although_somebody_changed_a_name() {
    let with = |word: &str, text: &str| {
        let file = r#"{"path": "/etc/b.conf", "contents": {"source": "data:,TEXT"}},"#;
        config_with(word, &file.replace("TEXT", text), "")
    };
    let other = unit_with("/bin/true").replace("a.log", "b.log");
    let machine = Machine::build().unit_at_boot("b.service", &other).file("/etc/b.conf", "its-own");
    let mut bed = Bed::of(machine, "one", &unit_with("/bin/true"), &with("one", "its-own"));
    let address = api_server(bed.machine.disk(), |word| word == "one");
    bed.terms = Terms { api_server: Some(address), cut_off: 1, ..bed.terms };
    let reload = |unit: &str| Step::Reload { unit: unit.to_owned() };
    let steps = [Step::Write, reload("a.service"), reload("b.service")];
    let permits = NotYetAfter(Cell::new(1));
    let ended = bed.carry_out_with(&permits, &with("two", "ours"), &steps);
    assert!(matches!(ended, Err(OperationError::Forbidden(_))), "{ended:?}");
    // As a unit that writes its own file when it is told.
    std::fs::write(bed.machine.root().unwrap().join("etc/b.conf"), "its-own").unwrap();
    let because = why(bed.go_on().unwrap());
    assert!(because.contains("somebody else changed /etc/b.conf"), "{because}");
    assert!(because.contains("was reached before, and since then for 1 s"), "{because}");
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("one"));
    assert_eq!(bed.text("/etc/b.conf").as_deref(), Some("its-own"));
    assert_eq!(bed.log(), ["start one", "reload two", "reload one"]);
    assert_eq!(bed.machine.boots().len(), 1);
}

#[test]
fn an_api_server_that_comes_again_in_time_is_waited_for() {
    let mut asked = 0;
    let mut bed = bed(move |word| {
        asked += usize::from(word == "two");
        word == "one" || asked > 2
    });
    bed.terms.cut_off = 600;
    assert_eq!(bed.carry_out(&config("two"), &reload()).unwrap(), Ended::Done);
    assert_eq!(bed.log(), ["start one", "reload two"]);
}

#[test]
fn an_api_server_that_was_not_reached_before_is_not_missed() {
    let bed = bed(|_| false);
    assert_eq!(bed.carry_out(&config("two"), &reload()).unwrap(), Ended::Done);
    let warning = bed.progress().warning;
    assert!(warning.contains("was not reached before the first write"), "{warning}");
    assert!(warning.contains("will not go back"), "{warning}");
    // It is about one operation.
    let mut bed = bed;
    bed.terms.api_server = None;
    assert_eq!(bed.carry_out(&config("three"), &reload()).unwrap(), Ended::Done);
    assert_eq!(bed.progress().warning, "");
}

/// An API server that is cut off by the file once and for all.
fn never_again() -> impl FnMut(&str) -> bool + Send + 'static {
    let mut was_cut_off = false;
    move |word| {
        was_cut_off |= word == "two";
        !was_cut_off
    }
}

/// Whoever gives permits is not reached any more once this many units were permitted, and permits no
/// boot at all.
struct CutOffAfter(Cell<usize>);

impl Permits for CutOffAfter {
    fn ask(&self, act: Act) -> LocalBoxFuture<'_, Result<Permit, NoPermit>> {
        let is_reached = match act {
            Act::Write => true,
            Act::Unit { .. } => {
                let left = self.0.get();
                self.0.set(left.saturating_sub(1));
                left > 0
            }
            Act::Boot { .. } => false,
        };
        Box::pin(async move {
            if !is_reached {
                std::future::pending::<()>().await;
            }
            Ok(Permit::FOREVER)
        })
    }
}

#[test]
fn a_node_that_is_cut_off_before_the_permit_for_its_next_unit_goes_back() {
    let other = "[Service]\nExecStart=/bin/sleep infinity\n\
        ExecReload=/bin/sh -c 'echo other $(cat /etc/a.conf) >> /var/a.log'\n";
    let machine = Machine::build().unit_at_boot("b.service", other);
    let mut bed = Bed::of(machine, "one", &unit_with("/bin/true"), &config("one"));
    let address = api_server(bed.machine.disk(), |word| word == "one");
    bed.terms = Terms { api_server: Some(address), cut_off: 1, ..bed.terms };
    let reload = |unit: &str| Step::Reload { unit: unit.to_owned() };
    let steps = [Step::Write, reload("a.service"), reload("b.service")];
    let permits = CutOffAfter(Cell::new(1));
    let because = why(bed.carry_out_with(&permits, &config("two"), &steps).unwrap());
    assert!(because.contains("was reached before, and since then for 1 s"), "{because}");
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("one"));
    // The other one was told nothing.
    assert_eq!(bed.log(), ["start one", "reload two", "reload one"]);
    assert_eq!(bed.machine.boots().len(), 1);
}

#[test]
fn a_node_that_is_cut_off_before_anything_is_permitted_goes_back_without_telling_any_unit() {
    let boot = vec![Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];
    for steps in [reload(), boot] {
        let bed = bed(|word| word == "one");
        let permits = CutOffAfter(Cell::new(0));
        let because = why(bed.carry_out_with(&permits, &config("two"), &steps).unwrap());
        assert!(because.contains("was reached before, and since then for 1 s"), "{because}");
        assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("one"));
        assert_eq!(bed.log(), ["start one"]);
        assert_eq!(bed.machine.boots().len(), 1);
    }
}

#[test]
fn a_node_that_is_cut_off_and_whose_unit_fails_goes_back_by_one_boot_that_needs_no_permit() {
    let mut bed = Bed::with("one", &unit_with("/bin/false"));
    let address = api_server(bed.machine.disk(), never_again());
    bed.terms = Terms { api_server: Some(address), cut_off: 1, ..bed.terms };
    let permits = CutOffAfter(Cell::new(1));
    assert_eq!(bed.until_it_boots_with(&permits, &config("two"), &reload()), End::Reboot);
    bed.boot();
    let because = why(bed.go_on().unwrap());
    assert!(because.contains("was reached before, and since then for 1 s"), "{because}");
    assert_eq!(bed.log(), ["start one", "start one"]);
    assert_eq!(bed.machine.boots().len(), 2);
}

/// Permits units, and a boot to who asks for the second time.
struct SecondBoot(Cell<usize>);

impl Permits for SecondBoot {
    fn ask(&self, act: Act) -> LocalBoxFuture<'_, Result<Permit, NoPermit>> {
        let asked = self.0.get() + usize::from(matches!(act, Act::Boot { .. }));
        self.0.set(asked);
        let is_permitted = asked != 1 || !matches!(act, Act::Boot { .. });
        Box::pin(async move {
            if !is_permitted {
                std::future::pending::<()>().await;
            }
            Ok(Permit::FOREVER)
        })
    }
}

#[test]
fn a_node_that_reaches_its_api_server_again_on_the_way_back_asks_before_it_boots() {
    // Its reload fails, with either config.
    let mut bed = Bed::with("one", &unit_with("/bin/false"));
    let address = api_server(bed.machine.disk(), |word| word == "one");
    bed.terms = Terms { api_server: Some(address), cut_off: 1, ..bed.terms };
    let permits = SecondBoot(Cell::new(0));
    assert_eq!(bed.until_it_boots_with(&permits, &config("two"), &reload()), End::Reboot);
    assert_eq!(permits.0.get(), 2);
}

#[test]
fn a_node_that_is_cut_off_after_a_boot_of_somebody_else_goes_back_by_one_that_needs_no_permit() {
    let bed = bed(never_again());
    let steps = [Step::Drain, Step::Write, Step::Reboot, Step::Uncordon];
    bed.until_staged(&config("two"), &steps);
    bed.reboot();
    let permits = CutOffAfter(Cell::new(0));
    assert_eq!(bed.until_it_boots_again_with(&permits), End::Reboot);
    bed.boot();
    why(bed.go_on().unwrap());
    assert_eq!(bed.log(), ["start one", "start two", "start one"]);
}

/// Permits a unit only once something is so.
struct Once(Arc<AtomicBool>);

impl Permits for Once {
    fn ask(&self, act: Act) -> LocalBoxFuture<'_, Result<Permit, NoPermit>> {
        Box::pin(async move {
            while matches!(act, Act::Unit { .. }) && !self.0.load(Ordering::SeqCst) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Ok(Permit::FOREVER)
        })
    }
}

#[test]
fn a_node_that_reaches_its_api_server_waits_for_the_permit_alone() {
    let answered = Arc::new(AtomicBool::new(false));
    let bed = {
        let answered = Arc::clone(&answered);
        bed(move |word| {
            // It answers while the permit is waited for, and once the unit was told.
            answered.fetch_or(word == "two", Ordering::SeqCst);
            true
        })
    };
    let ended = bed.carry_out_with(&Once(answered), &config("two"), &reload());
    assert_eq!(ended.unwrap(), Ended::Done);
    assert_eq!(bed.log(), ["start one", "reload two"]);
}

/// Something changes while the permit to write is waited for.
struct Meanwhile<F: Fn()>(F);

impl<F: Fn()> Permits for Meanwhile<F> {
    fn ask(&self, act: Act) -> LocalBoxFuture<'_, Result<Permit, NoPermit>> {
        if act == Act::Write {
            (self.0)();
        }
        Box::pin(async { Ok(Permit::FOREVER) })
    }
}

#[test]
fn after_a_long_wait_for_a_permit_it_counts_what_is_reached_then() {
    let answers = Arc::new(AtomicBool::new(true));
    let mut bed = {
        let answers = Arc::clone(&answers);
        bed(move |word| word == "one" && answers.load(Ordering::SeqCst))
    };
    bed.patience.recently = Duration::ZERO;
    let gone = Meanwhile(|| answers.store(false, Ordering::SeqCst));
    assert_eq!(bed.carry_out_with(&gone, &config("two"), &reload()).unwrap(), Ended::Done);
    let warning = bed.progress().warning;
    assert!(warning.contains("was not reached before the first write"), "{warning}");
    assert_eq!(bed.carry_out(&config("one"), &reload()).unwrap(), Ended::Done);
    let comes = Meanwhile(|| answers.store(true, Ordering::SeqCst));
    answers.store(false, Ordering::SeqCst);
    why(bed.carry_out_with(&comes, &config("two"), &reload()).unwrap());
    assert_eq!(bed.progress().warning, "");
    assert_eq!(bed.text("/etc/a.conf").as_deref(), Some("one"));
}

/// Of which the kubelet's kubeconfig knows the authority; once the machine's file says
/// something else than `one`, a proxy answers in its place.
async fn serve_or_let_a_proxy_answer(disk: PathBuf, listener: TcpListener, acceptor: TlsAcceptor) {
    listener.set_nonblocking(true).unwrap();
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let word = std::fs::read_to_string(disk.join("etc/a.conf")).unwrap_or_default();
        if word == "one" {
            let _ = acceptor.accept(stream).await;
        } else {
            let _ = stream.read(&mut [0; 64]).await;
            let _ = stream.write_all(b"HTTP/1.0 503 Service Unavailable\r\n\r\n").await;
        }
    }
}

#[test]
fn the_answer_of_a_proxy_in_the_place_of_the_api_server_is_none() {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    let tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let kubeconfig = format!(
        "clusters:\n- name: a\n  cluster:\n    server: https://{}\n    certificate-authority: /etc/kubernetes/ca.crt\n",
        listener.local_addr().unwrap()
    );
    let machine = Machine::build()
        .file("/etc/kubernetes/ca.crt", authority.pem())
        .file("/etc/kubernetes/real.conf", kubeconfig);
    let mut bed = Bed::of(machine, "one", &unit_with("/bin/true"), &config("one"));
    // As a kubelet may have it.
    let kubeconfig = bed.machine.disk().join("etc/kubernetes/kubeconfig");
    std::os::unix::fs::symlink("/etc/kubernetes/real.conf", kubeconfig).unwrap();
    bed.terms.cut_off = 1;
    let (disk, acceptor) = (bed.machine.disk(), TlsAcceptor::from(Arc::new(tls)));
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(serve_or_let_a_proxy_answer(disk, listener, acceptor));
    });
    let because = why(bed.carry_out(&config("two"), &reload()).unwrap());
    assert!(because.contains("was reached before, and since then for 1 s"), "{because}");
    assert_eq!(bed.log(), ["start one", "reload two", "reload one"]);
}
