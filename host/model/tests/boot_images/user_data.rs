use serde_json::{Value, json};
use tread_model::boot_images::user_data::problem;

fn certificate(body: &str) -> String {
    format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n")
}

fn stub(version: &str, authority: Option<&str>) -> Vec<u8> {
    let mut ignition = json!({"version": version, "config": {"merge": []}});
    if let Some(source) = authority {
        ignition["security"] = json!({"tls": {"certificateAuthorities": [{"source": source}]}});
    }
    json!({ "ignition": ignition }).to_string().into_bytes()
}

fn data_url(text: &str) -> String {
    let encoded = base64_simd::STANDARD.encode_to_string(text);
    format!("data:text/plain;charset=utf-8;base64,{encoded}")
}

#[test]
fn user_data_that_a_new_image_could_not_boot_with_is_told() {
    let now = [certificate("AAAA"), certificate("BBBB")].concat();
    let (known, gone) = (data_url(&certificate("BB\nBB")), data_url(&certificate("CCCC")));
    let percent = "data:,-----BEGIN%20CERTIFICATE-----%0ABBBB%0A-----END%20CERTIFICATE-----";
    for (user_data, authorities, says) in [
        (stub("3.2.0", Some(&known)), now.as_str(), None),
        (stub("3.2.0", Some(percent)), &now, None),
        (stub("3.2.0", None), &now, None),
        (stub("3.2.0", Some(&gone)), "", None),
        (stub("3.2.0", Some(&gone)), &now, Some("no longer has")),
        (stub("2.2.0", Some(&known)), &now, Some("Ignition 2")),
        (Value::Null.to_string().into_bytes(), &now, Some("Ignition 2")),
        (b"#!/bin/sh".to_vec(), &now, Some("no JSON")),
        (vec![0xff, 0xfe], &now, Some("no JSON")),
    ] {
        let found = problem(&user_data, authorities);
        match (found, says) {
            (None, None) => {}
            (Some(found), Some(says)) => assert!(found.contains(says), "{found}"),
            (found, says) => panic!("{found:?} where {says:?} was expected"),
        }
    }
}
