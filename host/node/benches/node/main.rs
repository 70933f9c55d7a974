//! What changing files on a node costs: `cargo bench --profile dist -p tread-node --bench node`, as root.
//! `TREAD_DISK` names a folder on the disk to be measured. Prints medians, each beside a
//! floor: the same bytes read or written plainly, with one sync for each file.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark fails by panicking")]

mod floor;
mod syncs;

use floor::Floor;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use syncs::Syncs;
use tread_model::plan::{Step, VerifiablePlan};
use tread_node::applied::Applied;
use tread_node::change::{Order, change, wanted};
use tread_node::documents::{Document, Documents, digest};
use tread_node::drift::{Accepted, drift};
use tread_node::host::ThisHost;
use tread_node::journal::Journal;
use tread_node::prepare::{Ready, prepare};
use tread_node::tree::Tree;

/// A config with as many files and units; `word` stands in as many of them, from the first.
struct Shape {
    name: &'static str,
    files: usize,
    units: usize,
    changed: usize,
    rounds: usize,
}

const SHAPES: [Shape; 3] = [
    Shape { name: "one of 150 files, 60 units", files: 150, units: 60, changed: 1, rounds: 20 },
    Shape { name: "one of 2,000 files", files: 2000, units: 0, changed: 1, rounds: 10 },
    Shape { name: "2,000 of 2,000 files", files: 2000, units: 0, changed: 2000, rounds: 3 },
];

fn path(index: usize) -> String {
    format!("/etc/some{:02}/directory/{index:06}.conf", index / 50)
}

/// From 0.2 to 8 KB, the same in each run, with the word in the first line.
fn text(index: usize, word: &str) -> String {
    let line = |at: usize| format!("key{at} = value of some length {}\n", at * 31);
    let lines = (200 + index * 7919 % 7800) / 30;
    let rest: String = (index..).map(line).take(lines).collect();
    format!("# {word}\n{rest}")
}

impl Shape {
    fn texts(&self, word: &str) -> Vec<(String, String)> {
        let text = |index| text(index, if index < self.changed { word } else { "same" });
        (0..self.files).map(|index| (path(index), text(index))).collect()
    }

    fn documents(&self, word: &str) -> Documents {
        let file = |(path, text): (String, String)| {
            let url = format!("data:;base64,{}", base64_simd::STANDARD.encode_to_string(text));
            serde_json::json!({"path": path, "mode": 420, "contents": {"source": url}})
        };
        let unit = |index: usize| {
            let text = format!(
                "[Service]\nExecStart=/bin/{index}\n[Install]\nWantedBy=multi-user.target\n"
            );
            serde_json::json!({"name": format!("u{index}.service"), "enabled": true, "contents": text})
        };
        let files: Vec<_> = self.texts(word).into_iter().map(file).collect();
        let units: Vec<_> = (0..self.units).map(unit).collect();
        let role = "machineconfiguration.openshift.io/role";
        let config = serde_json::json!({
            "apiVersion": "machineconfiguration.openshift.io/v1",
            "kind": "MachineConfig",
            "metadata": {"name": "rendered-worker-1", "labels": {role: "worker"}},
            "spec": {"config": {
                "ignition": {"version": "3.4.0"},
                "storage": {"files": files},
                "systemd": {"units": units},
            }},
        });
        Documents(vec![Document { name: "config".to_owned(), text: config.to_string() }])
    }
}

/// A tree on a disk, on which a config was applied.
struct Bed {
    folder: tempfile::TempDir,
    syncs: Arc<Syncs>,
    tree: Tree,
    host: ThisHost,
    now: Documents,
}

impl Bed {
    fn new(disk: &Path, first: Documents) -> Bed {
        let folder = tempfile::tempdir_in(disk).unwrap();
        let put = |path: &str, text: &str| std::fs::write(folder.path().join(path), text).unwrap();
        std::fs::create_dir_all(folder.path().join("etc")).unwrap();
        put("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n");
        put("etc/group", "root:x:0:\n");
        let syncs = Arc::new(Syncs::default());
        let tree = Tree::witnessed(folder.path(), syncs.clone()).unwrap();
        let host = ThisHost::read(&tree, false).unwrap();
        let mut bed = Bed { folder, syncs, tree, host, now: Documents::default() };
        let empty = Shape { name: "", files: 0, units: 0, changed: 0, rounds: 0 }.documents("");
        let journal = Journal::open(&bed.tree).unwrap();
        let target =
            Applied::new(empty.clone(), Accepted::new(), std::collections::BTreeMap::new())
                .target();
        let ready = prepare(&bed.tree, "adopt", vec![target], &|_, _| Ok(None)).unwrap();
        journal.write(&ready.record, &ready.new).unwrap();
        journal.finish().unwrap();
        drop(journal);
        bed.now = empty;
        bed.apply(&first);
        bed
    }

    /// How long each part takes, with the syncs in it.
    fn apply(&mut self, to: &Documents) -> Vec<Part> {
        let digest = |documents: &Documents| digest(&documents.config().unwrap()).unwrap();
        let mut plan = VerifiablePlan::always_allowed(digest(&self.now), digest(to));
        plan.steps = vec![Step::Write, Step::DaemonReload];
        plan.digest = plan.computed_digest();
        let order = Order {
            id: "1".to_owned(),
            documents: to.clone(),
            plan,
            accept: Vec::new(),
            others: Vec::new(),
        };
        let (tree, host) = (&self.tree, &self.host);
        let journal = Journal::open(tree).unwrap();
        let mut parts = Vec::new();
        let label = |path: &str, kind| host.label(path, kind);
        let Ready { mut record, new } =
            self.part(&mut parts, || change(tree, host, &label, &order).unwrap().ready);
        // What has an order stands until it is finished.
        record.order = "benchmark".into();
        self.part(&mut parts, || journal.write(&record, &new).unwrap());
        self.part(&mut parts, || journal.settle().unwrap());
        self.part(&mut parts, || journal.finish().unwrap());
        self.now = to.clone();
        parts
    }

    fn part<T>(&self, parts: &mut Vec<Part>, done: impl FnOnce() -> T) -> T {
        let (syncs, began) = (self.syncs.so_far(), Instant::now());
        let value = done();
        let took = began.elapsed();
        let (count, synced) = self.syncs.so_far();
        parts.push(Part {
            own: took.saturating_sub(synced - syncs.1),
            synced: synced - syncs.1,
            syncs: count - syncs.0,
        });
        value
    }
}

/// A part of an operation: the time without the syncs, and that in them.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    own: Duration,
    synced: Duration,
    syncs: usize,
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The median of each time, and the most syncs.
fn middle(parts: impl Iterator<Item = Part> + Clone) -> Part {
    Part {
        own: median(parts.clone().map(|part| part.own).collect()),
        synced: median(parts.clone().map(|part| part.synced).collect()),
        syncs: parts.map(|part| part.syncs).max().unwrap_or_default(),
    }
}

fn show(name: &str, part: Part, floor: Part) {
    let ratio = |one: Duration, other: Duration| one.as_secs_f64() / other.as_secs_f64();
    println!(
        "  {name:<44} {:>9.2} ms own ({:>5.1} × floor) {:>9.1} ms in all ({:>5.1} ×) {:>5} syncs",
        millis(part.own),
        ratio(part.own, floor.own),
        millis(part.own + part.synced),
        ratio(part.own + part.synced, floor.own + floor.synced),
        part.syncs,
    );
}

fn writing(disk: &Path, shape: &Shape) {
    let (one, two) = (shape.documents("one"), shape.documents("two"));
    let mut bed = Bed::new(disk, one.clone());
    let floor = Floor::new(disk);
    let (mut all, mut floors) = (Vec::new(), Vec::new());
    for round in 0..shape.rounds {
        let (word, to) = if round % 2 == 0 { ("two", &two) } else { ("one", &one) };
        all.push(bed.apply(to));
        let texts = shape.texts(word);
        floors.push(floor.write(texts.get(..shape.changed).unwrap_or_default()));
    }
    println!("{}:", shape.name);
    let floor = middle(floors.iter().copied());
    show("floor: written and synced plainly", floor, floor);
    let of = |index: usize| all.iter().filter_map(move |parts| parts.get(index)).copied();
    for (index, name) in
        ["checked and prepared", "written and committed", "settled", "finished"].iter().enumerate()
    {
        show(name, middle(of(index)), floor);
    }
    let sum = |parts: &Vec<Part>| {
        parts.iter().fold(Part::default(), |sum, part| Part {
            own: sum.own + part.own,
            synced: sum.synced + part.synced,
            syncs: sum.syncs + part.syncs,
        })
    };
    show("all of it", middle(all.iter().map(sum)), floor);
}

/// A full check, and settling where nothing was cut short.
fn checking(disk: &Path) {
    let shape = Shape { name: "", files: 2000, units: 0, changed: 0, rounds: 0 };
    let bed = Bed::new(disk, shape.documents(""));
    let time = |work: &mut dyn FnMut()| {
        let began = Instant::now();
        work();
        Part { own: began.elapsed(), ..Part::default() }
    };
    let paths: Vec<PathBuf> = shape
        .texts("")
        .iter()
        .map(|(path, _)| bed.folder.path().join(path.trim_start_matches('/')))
        .collect();
    let config = bed.now.config().unwrap();
    let desired = wanted(&config, &bed.host).unwrap();
    let journal = Journal::open(&bed.tree).unwrap();
    let mut all: [Vec<Part>; 4] = Default::default();
    for _ in 0..20 {
        let [floors, checks, whole, nothing] = &mut all;
        floors.push(time(&mut || floor::read(&paths)));
        checks.push(time(&mut || {
            assert!(drift(&bed.tree, &desired, &Accepted::new()).unwrap().is_empty());
        }));
        whole.push(time(&mut || {
            let applied = Applied::read(&bed.tree).unwrap().unwrap();
            let config = applied.documents.config().unwrap();
            let desired = wanted(&config, &bed.host).unwrap();
            assert!(drift(&bed.tree, &desired, &applied.accepted).unwrap().is_empty());
        }));
        nothing.push(time(&mut || assert!(journal.settle().unwrap().is_none())));
    }
    println!("a full check of 2,000 files:");
    let [floor, check, whole, nothing] = all.map(|parts| middle(parts.into_iter()));
    show("floor: their bytes and states read plainly", floor, floor);
    show("checked against a config in memory", check, floor);
    show("the same from the config last applied", whole, floor);
    show("settled where nothing was cut short", nothing, floor);
}

fn main() {
    let disk = std::env::var_os("TREAD_DISK").map_or_else(std::env::temp_dir, PathBuf::from);
    println!("on {} ({}):", disk.display(), floor::file_system(&disk));
    checking(&disk);
    for shape in &SHAPES {
        writing(&disk, shape);
    }
}
