//! What is looked up in place of all names that are written nowhere.

use tread_guest_sdk::{Action, test};
use tread_policy_registries::{Registries, Settings};

const MAIN: &str = "/etc/containers/registries.conf";

/// Whether the node is drained, and why.
fn drains(before: &str, after: &str) -> (bool, String) {
    let change = test::file(MAIN, before, after);
    let verdict =
        test::verdicts::<Registries>(&Settings::default(), vec![change], vec![]).remove(0);
    (verdict.actions().contains(&Action::Drain), verdict.reason().to_string())
}

fn entry(prefix: &str, location: &str, mirror: &str) -> String {
    let own = format!("[[registry]]\nprefix = {prefix:?}\nlocation = {location:?}\n");
    match mirror {
        "" => own,
        mirror => {
            own + &format!(
                "[[registry.mirror]]\nlocation = {mirror:?}\npull-from-mirror = \"digest-only\"\n"
            )
        }
    }
}

/// A mirror with a path makes no name of a name with a port.
const CHANGES: [(&str, &str); 2] = [("*.corp.example", ""), ("a.io", "a.io")];

#[test]
fn what_other_entries_are_named_hides_no_harm() {
    let long = |start: &str, more: &str| [start, &more.repeat(300)].concat();
    let written = ["any", "anyy", "any0", "any1", "9", "99", "90", "91"];
    let mut others: Vec<String> = written.iter().map(|word| format!("z.io/{word}")).collect();
    others.extend(written.iter().map(|word| format!("{word}.z.io")));
    others.extend(["9", "99", "90", "9999999"].map(|port| format!("z.io:{port}")));
    others.extend([long("z.io/any", "y"), long("z.io:9", "9"), long("any", "y") + ".io"]);
    others.extend([long("z.io/any", "0"), long("z.io:9", "0"), long("z.io/", "any/")]);
    let all: String = others.iter().map(|other| entry(other, other, "")).collect();
    for other in others.iter().map(|other| entry("x.io", other, "")).chain([all]) {
        for (prefix, location) in CHANGES {
            let before = entry(prefix, location, "") + &other;
            let after = entry(prefix, location, "m.io/cache") + &other;
            let (drains, reason) = drains(&before, &after);
            assert!(drains, "{prefix} beside\n{other}{reason}");
        }
    }
}
