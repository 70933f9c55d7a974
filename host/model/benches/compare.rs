//! What comparing two parsed configs costs: `cargo bench --profile dist -p tread-model --bench
//! compare`. Prints medians.
#![allow(clippy::print_stdout)]

use std::borrow::Cow;
use std::hint::black_box;
use std::time::Instant;
use tread_model::config::{File, NodeConfig, Origin, Source, Unit};
use tread_model::config_digest::{digests, digests_of_pair};
use tread_model::contents::Decoder;
use tread_model::diff::{compare, compare_digested, unchanged};
use tread_model::digest::Digest;
use tread_model::touch::{OwnUnits, ROOM};

/// The text of an entry, as a reader would have kept it.
fn texts(files: usize, units: usize) -> (Vec<String>, Vec<String>) {
    // Sizes from 0.2 to 8 KB, the same in each run.
    let size = |index: usize| 200 + index * 7919 % 7800;
    let line = |index: usize| format!("key{index} = value of some length {}\n", index * 31);
    let url = |index: usize| {
        let text: String = (index..).map(line).take(size(index) / 30).collect();
        format!("data:;base64,{}", base64_simd::STANDARD.encode_to_string(text))
    };
    let unit = |index: usize| {
        format!(
            "[Unit]\nDescription=Service {index}\nAfter=network-online.target\nWants=network-online.target\n\
             \n[Service]\nType=oneshot\n{}\n[Install]\nWantedBy=multi-user.target\n",
            format!("ExecStart=/bin/{index}\n").repeat(5)
        )
    };
    ((0..files).map(url).collect(), (0..units).map(unit).collect())
}

fn config<'a>((urls, texts): &'a (Vec<String>, Vec<String>)) -> NodeConfig<'a> {
    let file = |(index, url): (usize, &'a String)| File {
        path: Cow::Owned(format!("/etc/some/directory/{index:06}.conf")),
        contents: Source { url: Some(Cow::Borrowed(url)), gzip: false },
        mode: Some(0o644),
        user: "root".into(),
        group: "root".into(),
        appends: false,
        needs_source: false,
        raw: url.as_bytes(),
        origin: Origin::default(),
    };
    let unit = |(index, text): (usize, &'a String)| Unit {
        name: Cow::Owned(format!("unit{index:06}.service")),
        contents: Some(Cow::Borrowed(text)),
        enabled: Some(true),
        mask: None,
        dropins: Vec::new(),
        raw: text.as_bytes(),
        origin: Origin::default(),
    };
    NodeConfig {
        files: urls.iter().enumerate().map(file).collect(),
        units: texts.iter().enumerate().map(unit).collect(),
        ..NodeConfig::default()
    }
}

fn median(name: &str, mut work: impl FnMut()) {
    let mut time = || {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64() * 1e6
    };
    let mut times: Vec<f64> = (0..400).map(|_| time()).collect();
    times.sort_by(f64::total_cmp);
    println!("  {name:<46} {:>9.1} µs", times.get(200).copied().unwrap_or_default());
}

fn main() {
    for (name, files, units) in [("small", 20, 10), ("typical", 150, 60), ("large", 2000, 400)] {
        let old = texts(files, units);
        let mut new = old.clone();
        if let Some(last) = new.0.last_mut() {
            *last = "data:,changed".to_owned();
        }
        let (apart, shared) = (config(&new), config(&old));
        let old = config(&old);
        // A reader that walks both sides together shares what is equal.
        let mut shared = NodeConfig { files: shared.files, ..old.clone() };
        if let (Some(last), Some(other)) = (shared.files.last_mut(), apart.files.last()) {
            last.clone_from(other);
        }
        let decoded: usize = {
            let mut decoder = Decoder::default();
            let len = |file: &File| decoder.decode(&file.contents).ok().flatten().map(<[u8]>::len);
            old.files.iter().filter_map(len).sum()
        };
        println!("{name}: {files} files ({decoded} bytes), {units} units, one changed");
        let Ok((from, to)) = digests_of_pair(&old, &shared) else { return };
        let mut decoder = Decoder::default();
        median("decode one side", || {
            for file in &old.files {
                let _ = black_box(decoder.decode(&file.contents));
            }
        });
        let bytes = vec![7; decoded];
        median("BLAKE3 of as many bytes at once", || {
            black_box(Digest::of(&bytes));
        });
        median("digests of one side", || drop(black_box(digests(&old))));
        median("digests of a pair, equal entries shared", || {
            drop(black_box(digests_of_pair(&old, &shared)));
        });
        median("compare, equal entries shared", || drop(black_box(compare(&old, &shared))));
        median("compare, equal entries apart", || drop(black_box(compare(&old, &apart))));
        median("compare, digests known", || {
            drop(black_box(compare_digested(&old, &from, &shared, &to)));
        });
        median("what the units say of one that is touched", || {
            let units = OwnUnits::of(&old, &shared);
            black_box(units.why_not_gentle("crio.service", &mut ROOM.clone()));
        });
        median("unchanged, none matches", || {
            drop(black_box(unchanged(&old, &shared, |id| id == "file:/etc/a")));
        });
        median("unchanged, all match", || drop(black_box(unchanged(&old, &shared, |_| true))));
    }
}
