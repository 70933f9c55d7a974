//! What the API server cannot hold.

use crate::laws::rendered;
use serde_json::{Value, json};
use tread_model::rendering::{LARGEST, Large, Unrendered};

fn source(files: &[(&str, usize)], units: &[(&str, String)]) -> String {
    let file = |(path, size): &(&str, usize)| json!({"path": path, "contents": {"source": format!("data:,{}", "s".repeat(*size))}});
    let unit = |(name, text): &(&str, String)| json!({"name": name, "contents": text});
    json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"name": "50-a", "labels": {"machineconfiguration.openshift.io/role": "worker"}},
        "spec": {"config": {
            "ignition": {"version": "3.4.0"},
            "storage": {"files": files.iter().map(file).collect::<Vec<_>>()},
            "systemd": {"units": units.iter().map(unit).collect::<Vec<_>>()},
        }},
    })
    .to_string()
}

#[test]
fn one_that_the_api_server_cannot_hold_is_refused_with_its_size_and_what_is_largest() {
    let comments = format!("[Service]\n{}", "#<&>\n".repeat(30_000));
    let source = source(
        &[
            ("/etc/c", 300_000),
            ("/etc/a", 9),
            ("/etc/b", 900_000),
            ("/etc/d", 300_000),
            ("/etc/e", 20),
            ("/etc/f", 21),
        ],
        &[("big.service", comments)],
    );
    let why = rendered(&[source], &[]).unwrap_err();
    let text = why.to_string();
    let Unrendered::TooLarge(large) = why else { panic!("{text}") };
    assert!(large.size > LARGEST && large.size < LARGEST + 900_000, "{text}");
    let names: Vec<&str> = large.largest.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["/etc/b", "big.service", "/etc/c", "/etc/d", "/etc/f"]);
    let Some(Large { size, .. }) = large.largest.first() else { panic!("{text}") };
    assert!((900_000..900_200).contains(size), "{size}");
    // Of each of `<`, `>` and `&` the API server makes six.
    assert!(large.largest[1].size > 30_000 * (1 + 3 * 6), "{text}");
    assert!(!text.contains("sss") && !text.contains("#<"), "contents are not told");
    assert!(text.contains("/etc/b (900,0") && text.contains("1,556,480 bytes"), "{text}");
    assert!(text.len() < 600, "{text}");
}

#[test]
fn the_largest_that_the_api_server_holds_is_rendered() {
    let of = |size: usize| rendered(&[source(&[("/etc/a", size)], &[])], &[]);
    let empty: Value = of(0).unwrap().object;
    let rest = empty.to_string().len();
    assert!(of(LARGEST - rest).is_ok());
    let Err(Unrendered::TooLarge(large)) = of(LARGEST - rest + 1) else { panic!("one byte more") };
    assert_eq!(large.size, LARGEST + 1);
}
