//! The bindings that policies are built with are what wit-bindgen makes of the
//! contract. They are committed, so that whoever builds a policy compiles this
//! crate and not the tool: `TREAD_UPDATE=1 cargo test -p tread-guest-sdk --test
//! bindings` writes them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::fs;
use std::path::{Path, PathBuf};
use wit_bindgen_core::wit_parser::{Resolve, WorldId};
use wit_bindgen_core::{Files, WorldGenerator as _};
use wit_bindgen_rust::{Opts, WithOption};

fn tree() -> PathBuf {
    // The policies have this crate by a link. Asked when it runs: cargo takes what it built in one
    // checkout for another one's.
    let here = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).canonicalize().unwrap();
    here.parent().unwrap().to_owned()
}

fn contract() -> (Resolve, WorldId, String) {
    let path = tree().join("wit/policy.wit");
    let mut resolve = Resolve::default();
    let text = fs::read_to_string(&path).unwrap();
    let package = resolve.push_str("policy.wit", &text).unwrap();
    let world = resolve.select_world(&[package], Some("declaring-policy")).unwrap();
    let types = resolve.packages[package].interfaces["types"];
    let types = resolve.id_of(types).unwrap();
    (resolve, world, types)
}

fn generated() -> String {
    let (mut resolve, world, types) = contract();
    let options = Opts {
        with: vec![(types, WithOption::Path("crate::component::wire".to_owned()))],
        runtime_path: Some("crate::component::rt".to_owned()),
        export_macro_name: Some("export_component".to_owned()),
        pub_export_macro: true,
        default_bindings_module: Some("tread_guest_sdk::component::bindings".to_owned()),
        ..Opts::default()
    };
    let mut files = Files::default();
    options.build().generate(&mut resolve, world, &mut files).unwrap();
    let (_, code) = files.iter().next().expect("one file");
    String::from_utf8(code.to_vec()).unwrap()
}

#[test]
fn the_committed_bindings_are_what_wit_bindgen_makes_of_the_contract() {
    let path = tree().join("guest-sdk/src/component/bindings.rs");
    let expected = generated();
    if std::env::var_os("TREAD_UPDATE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &expected).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "{} is not what wit-bindgen makes of wit/policy.wit: run this test again with \
         TREAD_UPDATE=1, then `cargo run --release -- policy prebuilt`",
        path.display()
    );
}
