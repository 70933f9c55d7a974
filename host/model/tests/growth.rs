//! Whatever is read, compared or rendered takes time in proportion to its size:
//! nobody can make tread stand still with a large input.
//!
//! Processor time of this thread is measured, not the clock, and only how it
//! grows: eight times the input may cost five times as much for each part of it
//! (caches are smaller where others are busy), where a quadratic algorithm would
//! cost eight times as much.

// Helpers of tests may fail as tests do.
#![allow(clippy::panic, clippy::unwrap_used, clippy::indexing_slicing)]

use std::fmt::Write as _;
use tread_model::claim::Router;
use tread_model::description::Claim;
use tread_model::diff::{compare, unchanged};
use tread_model::effect::Effect;
use tread_model::mirrors;
use tread_model::read::{Input, diagnosed, fast_only};
use tread_model::rules;

const TIMES: usize = 8;
const MOST: f64 = 40.0;

/// Nanoseconds, of which a tick has a few million.
const TICKS: u64 = 40_000_000;

/// Nanoseconds that this thread has run.
fn processor_time() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split(' ').next().unwrap().parse().unwrap()
}

/// How many times longer it takes for an input that is eight times as large.
fn growth<T>(size: usize, make: impl Fn(usize) -> T, work: impl Fn(&T)) -> f64 {
    let (small, large) = (make(size), make(size * TIMES));
    let time = |input: &T| {
        // The system counts in ticks: as often as it takes to see some.
        let (start, mut runs) = (processor_time(), 0.0);
        loop {
            work(input);
            runs += 1.0;
            let spent = processor_time() - start;
            if spent > TICKS {
                return spent as f64 / runs;
            }
        }
    };
    work(&small);
    // What disturbs a measurement only makes it longer, so the best of all those
    // that were made counts. The two sizes take turns: what lasts disturbs both.
    let (mut best_small, mut best_large) = (f64::MAX, f64::MAX);
    for round in 1..=15 {
        best_small = best_small.min(time(&small));
        best_large = best_large.min(time(&large));
        // A disturbed small one makes a growth look better than it is: what is
        // not clearly steady is measured again.
        if round >= 3 && best_large / best_small < MOST / 2.0 {
            break;
        }
    }
    best_large / best_small.max(1.0)
}

#[track_caller]
fn is_steady<T>(size: usize, make: impl Fn(usize) -> T, work: impl Fn(&T)) {
    let growth = growth(size, make, work);
    assert!(growth < MOST, "{TIMES} times the size takes {growth:.0} times as long");
}

#[test]
fn the_measure_knows_what_is_quadratic() {
    let make = |size: usize| (0..size as u64).collect::<Vec<_>>();
    let quadratic = |numbers: &Vec<u64>| {
        let pairs = numbers
            .iter()
            .filter(|a| numbers.iter().all(|b| std::hint::black_box(*b) != **a + 1_000_000));
        assert_eq!(pairs.count(), numbers.len());
    };
    let growth = growth(1_000, make, quadratic);
    assert!(growth > MOST, "{growth}");
}

/// A MachineConfig as JSON; `config` begins with a comma.
fn machine_config(name: &str, config: &str) -> String {
    format!(
        "{{\"apiVersion\":\"machineconfiguration.openshift.io/v1\",\"kind\":\"MachineConfig\",\
         \"metadata\":{{\"name\":\"{name}\"}},\"spec\":{{\"config\":\
         {{\"ignition\":{{\"version\":\"3.4.0\"}}{config}}}}}}}\n"
    )
}

fn list(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(",")
}

fn read(text: &String) {
    let input = [Input { name: "a.json", bytes: text.as_bytes() }];
    // What is wrong is found at a price, too.
    let _ = diagnosed(&input, &input);
}

fn files(count: usize, contents: usize) -> String {
    let file =
        |n| format!("{{\"path\":\"/etc/d/{n}\",\"contents\":{{\"source\":\"data:,{contents}\"}}}}");
    machine_config("a", &format!(",\"storage\":{{\"files\":[{}]}}", list(count, file)))
}

fn units(count: usize, contents: usize) -> String {
    let unit = |n| format!("{{\"name\":\"u{n}.service\",\"contents\":\"{contents}\"}}");
    machine_config("a", &format!(",\"systemd\":{{\"units\":[{}]}}", list(count, unit)))
}

#[test]
fn many_configs_with_many_dropins_of_one_unit_are_merged() {
    let config = |name: &str, count: usize| {
        let dropin = |n| format!("{{\"name\":\"{name}{n}.conf\",\"contents\":\"x\"}}");
        let unit = format!("{{\"name\":\"a.service\",\"dropins\":[{}]}}", list(count, dropin));
        machine_config(name, &format!(",\"systemd\":{{\"units\":[{unit}]}}"))
    };
    is_steady(2_000, |size| config("a", size) + &config("b", size), read);
}

#[test]
fn many_configs_are_merged() {
    let one = |n: usize| {
        let user =
            format!("{{\"name\":\"core\",\"groups\":[\"g{n}\"],\"sshAuthorizedKeys\":[\"k{n}\"]}}");
        let file = format!("{{\"path\":\"/etc/{n}\"}}");
        let config = format!(
            ",\"passwd\":{{\"users\":[{user}]}},\"storage\":{{\"files\":[{file}],\
             \"disks\":[{{\"device\":\"/dev/{n}\"}}]}}"
        );
        machine_config(&format!("c{n}"), &config)
    };
    is_steady(500, |size| (0..size).map(one).collect::<String>(), read);
}

#[test]
fn long_lists_of_names_are_united() {
    let config = |name: &str, size: usize| {
        let groups = list(size, |n| format!("\"{name}{n}\""));
        let user = format!("{{\"name\":\"core\",\"groups\":[{groups}]}}");
        machine_config(name, &format!(",\"passwd\":{{\"users\":[{user}]}}"))
    };
    is_steady(2_000, |size| config("a", size) + &config("b", size), read);
}

#[test]
fn problems_are_collected() {
    let config = |size| {
        let files = list(size, |n| format!("{{\"path\":\"etc/{n}\",\"mode\":-1,\"x{n}\":1}}"));
        machine_config("a", &format!(",\"storage\":{{\"files\":[{files}]}}"))
    };
    is_steady(1_000, config, read);
}

#[test]
fn files_and_units_are_read_and_compared() {
    for make in [files, units] {
        let pair = |size: usize| (make(size, 1), make(size, 2));
        is_steady(1_000, pair, |(old, new)| {
            let input = |text| [Input { name: "a.json", bytes: str::as_bytes(text) }];
            let (old, new) = (input(old), input(new));
            let (old, new) = fast_only(&old, &new).unwrap();
            let compared = compare(&old.config, &new.config).unwrap();
            assert!(compared.changes.len() >= 1_000);
            let same = unchanged(&old.config, &new.config, |_| true).unwrap();
            assert!(same.iter().all(|entry| entry.id == "kernel-type"), "{same:?}");
        });
    }
}

#[test]
fn files_that_begin_with_each_other_are_compared() {
    let config = |size: usize| {
        let file = |n: usize| format!("{{\"path\":\"/etc/{}{}\"}}", "a/".repeat(n % 40), n);
        machine_config("a", &format!(",\"storage\":{{\"files\":[{}]}}", list(size, file)))
    };
    is_steady(1_000, config, |text| {
        let input = [Input { name: "a.json", bytes: text.as_bytes() }];
        let (old, new) = fast_only(&input, &input).unwrap();
        compare(&old.config, &new.config).unwrap();
    });
}

/// What Ignition writes of units is held against all files.
#[test]
fn files_beside_units_and_their_dropins_are_compared() {
    let dropin = |name: &str| format!("{{\"name\":\"{name}.conf\",\"contents\":\"x\"}}");
    let unit = |name: &str, dropins: String| {
        format!("{{\"name\":\"{name}.service\",\"dropins\":[{dropins}]}}")
    };
    let config = |units: String, files: String| {
        machine_config(
            "a",
            &format!(",\"systemd\":{{\"units\":[{units}]}},\"storage\":{{\"files\":[{files}]}}"),
        )
    };
    let file = |path: String| format!("{{\"path\":\"/etc/systemd/system/{path}\"}}");
    let many_units = |size: usize| {
        config(
            list(size, |n| unit(&format!("u{n}"), dropin("a"))),
            list(size, |n| file(format!("v{n}.service.d"))),
        )
    };
    let many_dropins = |size: usize| {
        config(
            unit("u", list(size, |n| dropin(&format!("a{n}")))),
            list(size, |n| file(format!("u.service.d/b{n}.conf"))),
        )
    };
    for make in [&many_units as &dyn Fn(usize) -> String, &many_dropins] {
        is_steady(5_000, make, |text| {
            let input = [Input { name: "a.json", bytes: text.as_bytes() }];
            let (old, new) = fast_only(&input, &input).unwrap();
            compare(&old.config, &new.config).unwrap();
        });
    }
}

#[test]
fn mirrors_are_rendered() {
    let object = |size: usize| {
        let mirror = |n: usize| {
            let source =
                if n.is_multiple_of(2) { format!("a.io/b/c{n}") } else { format!("*.h{n}.io") };
            format!("{{\"source\":\"{source}\",\"mirrors\":[\"m.io/{n}\",\"n.io/{n}\"]}}")
        };
        let many = list(size, |n| format!("\"m{n}.io\""));
        let all = list(size, mirror) + &format!(",{{\"source\":\"q.io\",\"mirrors\":[{many}]}}");
        let mut conf = String::new();
        for n in 0..size {
            write!(conf, "[[registry]]%0Alocation%20=%20%22a.io/b/c{n}/d%22%0A").unwrap();
        }
        let conf = format!(
            ",\"storage\":{{\"files\":[{{\"path\":\"/etc/containers/registries.conf\",\
             \"contents\":{{\"source\":\"data:,{conf}\"}}}}]}}"
        );
        format!(
            "{}{{\"apiVersion\":\"config.openshift.io/v1\",\"kind\":\"ImageDigestMirrorSet\",\
             \"metadata\":{{\"name\":\"m\"}},\"spec\":{{\"imageDigestMirrors\":[{all}]}}}}",
            machine_config("a", &conf)
        )
    };
    is_steady(300, object, |text| {
        let input = [Input { name: "a.json", bytes: text.as_bytes() }];
        let (side, _) = diagnosed(&input, &input).unwrap();
        let mut config = side.config;
        mirrors::apply(&mut config, &side.mirrors).unwrap();
    });
}

#[test]
fn rules_are_read_and_routed() {
    let text = |size: usize| -> String {
        let policy = |n: usize| {
            format!(
                "---\napiVersion: tread.dev/v1alpha1\nkind: DisruptionPolicy\nmetadata: {{name: p{n}}}\n\
                 spec: {{rules: [{{match: [\"file:/etc/{n}/**\"], actions: []}}]}}\n"
            )
        };
        (0..size).map(policy).collect()
    };
    is_steady(200, text, |text| {
        let policies = rules::read(&Input { name: "a.yaml", bytes: text.as_bytes() }).unwrap();
        let claims = policies.iter().enumerate().map(|(at, policy)| (at, policy.claims.as_slice()));
        let router = Router::new(claims).unwrap();
        for n in 0..policies.len() {
            assert!(router.is_claimed(&format!("file:/etc/{n}/x")));
        }
    });
}

#[test]
fn changes_are_routed_whatever_is_claimed() {
    let claim = |changes: String| Claim::on(changes, Effect::None, Effect::Reboot);
    let claims: Vec<Claim> =
        (0..256).map(|n| claim(format!("file:/etc/{}*{n}", "a".repeat(n)))).collect();
    let router = Router::new([(0, claims.as_slice())]).unwrap();
    let ids = |size: usize| -> Vec<String> {
        (0..size).map(|n| format!("file:/etc/{}/{n}", "a".repeat(200))).collect()
    };
    is_steady(200, ids, |ids| {
        assert!(ids.iter().all(|id| !router.is_claimed(id)));
    });
}

#[test]
fn an_id_is_routed_in_proportion_to_its_length() {
    let claims: Vec<Claim> =
        ["file:/**/a*a*a*a*b", "file:/**/*a/**/*a/**/c", "file:/{a,b,*}/**/?b"]
            .map(|changes| Claim::on(changes, Effect::None, Effect::Reboot))
            .to_vec();
    let router = Router::new([(0, claims.as_slice())]).unwrap();
    for part in ["a", "a/"] {
        is_steady(
            5_000,
            |size| format!("file:/{}x", part.repeat(size)),
            |id| {
                assert!(!router.is_claimed(id));
            },
        );
    }
}
