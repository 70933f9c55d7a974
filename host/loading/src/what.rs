//! What a file is, for somebody who thought that it was a policy.

use serde_json::Value;
use std::path::Path;
use tread_engine::inspect::Inspection;
use tread_model::read::{Input, document_values};
use tread_model::verdict::FailureKind;
use wasmparser::{Encoding, Parser, Payload};

/// What a file is, and what to do with it.
#[derive(Debug, PartialEq, Eq)]
pub struct What {
    /// A stable name: `policy`, `core-module`, `gzip`, …
    pub kind: &'static str,
    /// What it is, in words: "a file compressed with gzip".
    pub title: String,
    /// How to get a policy, if it is none.
    pub advice: Option<String>,
}

impl What {
    fn new(kind: &'static str, title: impl Into<String>, advice: impl Into<String>) -> What {
        What { kind, title: title.into(), advice: Some(advice.into()) }
    }
}

/// Built, or to be built.
const BUILD: &str = "`tread policy build` makes a policy of a crate; name the .wasm file it writes";

/// Says what the file at `path` is.
pub fn what(path: &Path, bytes: &[u8], inspection: &Inspection) -> What {
    let name = path.display().to_string();
    match bytes {
        [] => What::new("empty", "an empty file", "write it again: nothing is in it"),
        [0, b'a', b's', b'm', ..] => wasm(&name, bytes, inspection),
        _ => by_its_start(&name, bytes)
            .or_else(|| text(&name, bytes))
            .unwrap_or_else(|| What::new("data", "data of an unknown form", BUILD)),
    }
}

fn wasm(name: &str, bytes: &[u8], inspection: &Inspection) -> What {
    if inspection.contract.is_some() {
        return What { kind: "policy", title: "a policy".to_owned(), advice: None };
    }
    if Parser::is_core_wasm(bytes) {
        return core_module(name, bytes);
    }
    if !Parser::is_component(bytes) {
        let title = "the beginning of a WebAssembly file, or one of an unknown version";
        return What::new("broken-wasm", title, "copy or build it again");
    }
    match inspection.problems.first().map(|problem| problem.kind) {
        Some(FailureKind::TooLarge) => {
            let title = "a WebAssembly component that is too large to look into";
            let advice = "build it with opt-level = \"s\", lto = true and strip = true";
            return What::new("component", title, advice);
        }
        Some(FailureKind::NotAComponent) => {
            let title = "a WebAssembly component that is broken";
            return What::new("broken-wasm", title, "copy or build it again");
        }
        _ => {}
    }
    let exports = match inspection.exports.as_slice() {
        [] => "nothing".to_owned(),
        some => some.join(", "),
    };
    What::new(
        "component",
        format!("a WebAssembly component of another world: it exports {exports}"),
        format!("a policy exports tread:policy/classifier; {BUILD}"),
    )
}

/// A core module: perhaps that of a policy, perhaps one for another system.
fn core_module(name: &str, bytes: &[u8]) -> What {
    let Some((imports, exports)) = names(bytes) else {
        let title = "a WebAssembly core module that is broken";
        return What::new("core-module", title, "copy or build it again");
    };
    let of_policy = |name: &String| name.starts_with("tread:policy/classifier");
    if exports.iter().any(of_policy) {
        return What::new(
            "core-module",
            "the core module of a policy: the compiler made it, but it is no component yet",
            format!("make a component of it: tread policy build --from {name}"),
        );
    }
    let systems = ["wasi_snapshot_preview1", "wasi_unstable", "env", "wbg"];
    let system = imports.iter().find(|import| systems.contains(&import.as_str()));
    let (title, advice) = match system.map(String::as_str) {
        Some(system @ ("wasi_snapshot_preview1" | "wasi_unstable")) => (
            format!("a WebAssembly core module for WASI: it imports {system}"),
            "a policy has no system to call: build it for wasm32-unknown-unknown, as \
             `tread policy build` does",
        ),
        Some(system) => (
            format!("a WebAssembly core module for a host of another kind: it imports {system}"),
            BUILD,
        ),
        None => ("a WebAssembly core module that is no policy".to_owned(), BUILD),
    };
    What::new("core-module", title, advice)
}

/// The modules that a core module imports from, and the names that it exports.
fn names(bytes: &[u8]) -> Option<(Vec<String>, Vec<String>)> {
    let (mut imports, mut exports) = (Vec::new(), Vec::new());
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.ok()? {
            Payload::Version { encoding: Encoding::Component, .. } => return None,
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    imports.push(import.ok()?.module.to_owned());
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    exports.push(export.ok()?.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Some((imports, exports))
}

/// Files that begin in a way of their own: start, kind, in words, what to do.
const STARTS: &[(&[u8], &str, &str, &str)] = &[
    (b"\x7fELF", "native-binary", "a native program or library for Linux (ELF)", BUILD),
    (b"MZ", "native-binary", "a native program or library for Windows (PE)", BUILD),
    (b"\xcf\xfa\xed\xfe", "native-binary", "a native program or library for macOS", BUILD),
    (b"\xca\xfe\xba\xbe", "native-binary", "a native program for macOS, or a Java class", BUILD),
    (b"!<arch>\n", "library", "a static library (.a or .rlib)", BUILD),
    (b"\x1f\x8b", "gzip", "a file compressed with gzip", "unpack it: gunzip -c FILE > policy.wasm"),
    (b"\x28\xb5\x2f\xfd", "zstd", "a file compressed with zstd", "unpack it: zstd -d FILE"),
    (b"\xfd7zXZ\0", "xz", "a file compressed with xz", "unpack it: xz -d FILE"),
    (b"BZh", "bzip2", "a file compressed with bzip2", "unpack it: bunzip2 FILE"),
    (b"PK\x03\x04", "zip", "a zip archive", "unpack it: unzip FILE"),
    (b"\xff\xfe", "utf-16", "text in UTF-16", BUILD),
    (b"\xfe\xff", "utf-16", "text in UTF-16", BUILD),
];

fn by_its_start(name: &str, bytes: &[u8]) -> Option<What> {
    // Where wasmtime writes that an ELF file is its own.
    if bytes.starts_with(b"\x7fELF") && bytes.get(7) == Some(&200) {
        let title = "machine code that wasmtime compiled (.cwasm), for one machine only";
        let advice = "name the component that it was compiled from";
        return Some(What::new("compiled-module", title, advice));
    }
    if bytes.get(257..262) == Some(b"ustar") {
        return Some(What::new("tar", "a tar archive", format!("unpack it: tar -xf {name}")));
    }
    let found = STARTS.iter().find(|(start, ..)| bytes.starts_with(start));
    found.map(|(_, kind, title, advice)| What::new(kind, *title, advice.replace("FILE", name)))
}

fn text(name: &str, bytes: &[u8]) -> Option<What> {
    let text = std::str::from_utf8(bytes).ok()?;
    let odd = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{c}');
    if text.contains(odd) {
        return None;
    }
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let first = text.lines().next().unwrap_or_default();
    // Comments of the text format, which may stand first.
    let code = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with(";;"));
    let code = code.unwrap_or_default();
    Some(if text.is_empty() {
        What::new("empty", "a file of blanks", "write it again: nothing is in it")
    } else if code.starts_with("(module") || code.starts_with("(component") {
        let advice = format!("assemble it first: wasm-tools parse {name} -o policy.wasm");
        What::new("wat", "WebAssembly as text (WAT)", advice)
    } else if text.starts_with("AGFzbQ") {
        let advice = format!("decode it: base64 -d {name} > policy.wasm");
        What::new("base64", "WebAssembly in base64", advice)
    } else if first.starts_with("version https://git-lfs.github.com/") {
        let advice = "fetch what it stands for: git lfs pull";
        What::new("git-lfs-pointer", "a pointer of Git LFS, not the file itself", advice)
    } else if is_html(first) {
        let advice = "download it again: this is a page, perhaps one that asks to log in";
        What::new("html", "a web page", advice)
    } else if let Some(what) = manifest(name, bytes) {
        what
    } else if first.starts_with("#!") {
        What::new("script", "a script", BUILD)
    } else if name.ends_with(".wit") {
        What::new("wit", "an interface in WIT", BUILD)
    } else if name.ends_with(".rs") {
        What::new("rust", "Rust source", "name its crate: tread policy build DIR")
    } else if name.ends_with("Cargo.toml") {
        What::new("rust", "a crate's manifest", "name its directory: tread policy build DIR")
    } else {
        What::new("text", "a text", BUILD)
    })
}

fn is_html(first: &str) -> bool {
    let first = first.to_ascii_lowercase();
    first.starts_with("<!doctype html") || first.starts_with("<html")
}

/// A Kubernetes manifest, which may hold a policy or something else of tread's.
fn manifest(name: &str, bytes: &[u8]) -> Option<What> {
    let documents = document_values(&Input { name, bytes }).ok()?;
    let kind = |value: &Value| Some(value.get("kind")?.as_str()?.to_owned());
    let mut kinds: Vec<String> = documents.iter().filter_map(|it| kind(&it.value)).collect();
    kinds.dedup();
    let has = |kind: &str| kinds.iter().any(|it| it == kind);
    let title = format!("a Kubernetes manifest ({})", kinds.join(", "));
    Some(if kinds.is_empty() {
        return None;
    } else if has("ConfigMap") {
        What::new("manifest", title, format!("get the module out: tread policy unpack {name}"))
    } else if has("DisruptionPolicy") || has("MachineConfiguration") {
        What::new("manifest", title, format!("rules need no module: tread plan --rules {name}"))
    } else if has("MachineConfig") {
        What::new("manifest", title, format!("plan with it: tread plan {name} NEW"))
    } else {
        What::new("manifest", title, BUILD)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tread_engine::inspect::inspect;
    use tread_engine::limits::Limits;

    fn of(name: &str, bytes: &[u8]) -> What {
        what(Path::new(name), bytes, &inspect(bytes, &Limits::default()))
    }

    #[test]
    fn every_file_is_called_what_it_is() {
        let wat = |text: &str| wat::parse_str(text).unwrap();
        let mut tar = vec![b'a'; 257];
        tar.extend(b"ustar\x0000");
        let mut cwasm = b"\x7fELF\x02\x01\x01".to_vec();
        cwasm.extend([200, 0, 0]);
        let exporting = r#"(module (func (export "tread:policy/classifier@1.0.0#describe")))"#;
        let wasi = r#"(module (import "wasi_snapshot_preview1" "fd_write" (func)))"#;
        let other = r#"(component (component $c) (instance $i (instantiate $c))
                       (export "wasi:cli/run@0.2.0" (instance $i)))"#;
        let config_map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
        let table: Vec<(&str, Vec<u8>, &str, &str, &str)> = vec![
            ("p.wasm", vec![], "empty", "empty file", "again"),
            ("p.wasm", b" \n".to_vec(), "empty", "blanks", "again"),
            ("p.wasm", b"\0asm".to_vec(), "broken-wasm", "beginning", "again"),
            ("p.wasm", b"\0asm\x0d\0\x01\0\xff".to_vec(), "broken-wasm", "broken", "again"),
            ("p.wasm", b"\0asm\x01\0\0\0\x05\xff".to_vec(), "core-module", "broken", "again"),
            ("p.wasm", wat("(component)"), "component", "exports nothing", "classifier"),
            ("p.wasm", wat(other), "component", "wasi:cli/run@0.2.0", "classifier"),
            ("p.wasm", wat("(module)"), "core-module", "no policy", "policy build"),
            ("p.wasm", wat(exporting), "core-module", "of a policy", "build --from p.wasm"),
            ("p.wasm", wat(wasi), "core-module", "WASI", "wasm32-unknown-unknown"),
            ("p", b"\x7fELF\x02\x01\x01\0".to_vec(), "native-binary", "Linux", "policy build"),
            ("p", b"MZ\x90\0".to_vec(), "native-binary", "Windows", "policy build"),
            ("p", cwasm, "compiled-module", "wasmtime", "component"),
            ("p.rlib", b"!<arch>\nx\0".to_vec(), "library", "rlib", "policy build"),
            ("p.gz", b"\x1f\x8b\x08\0".to_vec(), "gzip", "gzip", "gunzip -c p.gz"),
            ("p.zst", b"\x28\xb5\x2f\xfd\0".to_vec(), "zstd", "zstd", "zstd -d p.zst"),
            ("p.zip", b"PK\x03\x04\0".to_vec(), "zip", "zip", "unzip p.zip"),
            ("p.tar", tar, "tar", "tar", "tar -xf p.tar"),
            ("p.wat", b";; mine\n(module)".to_vec(), "wat", "WAT", "wasm-tools parse p.wat"),
            ("p", b"AGFzbQ0AAQA=".to_vec(), "base64", "base64", "base64 -d p"),
            (
                "p.wasm",
                b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n".to_vec(),
                "git-lfs-pointer",
                "Git LFS",
                "git lfs pull",
            ),
            ("p.wasm", b"<!DOCTYPE html>\n<p>".to_vec(), "html", "web page", "download"),
            ("p.yaml", config_map.into(), "manifest", "ConfigMap", "policy unpack p.yaml"),
            ("p.json", br#"{"kind": "Pod"}"#.to_vec(), "manifest", "Pod", "policy build"),
            ("p", b"kind: DisruptionPolicy".to_vec(), "manifest", "Disruption", "--rules p"),
            ("p.sh", b"#!/bin/sh\n".to_vec(), "script", "script", "policy build"),
            ("lib.rs", b"fn main() {}\n".to_vec(), "rust", "Rust", "policy build DIR"),
            ("p.wasm", b"hello\n".to_vec(), "text", "a text", "policy build"),
            ("p.wasm", b"\x01\x02\x03\x04".to_vec(), "data", "unknown", "policy build"),
        ];
        for (name, bytes, kind, title, advice) in table {
            let found = of(name, &bytes);
            assert_eq!(found.kind, kind, "{name}: {found:?}");
            assert!(found.title.contains(title), "{title:?} in {found:?}");
            assert!(found.advice.as_deref().unwrap().contains(advice), "{advice:?} in {found:?}");
        }
    }

    #[test]
    fn any_cut_of_a_policy_is_called_something() {
        let good = include_bytes!("../../../policies/prebuilt/ssh-keys.wasm");
        assert_eq!(of("p.wasm", good).kind, "policy");
        for length in (0..good.len()).step_by(97) {
            let what = of("p.wasm", &good[..length]);
            assert!(!what.title.is_empty());
        }
    }
}
