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
use tread_model::read::{Input, MirrorObject, diagnosed, fast_only};
use tread_model::rules;
use tread_model::touch::{OwnUnits, ROOM};

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

#[test]
fn files_and_links_with_long_paths_are_compared() {
    let config = |size: usize| {
        let long = "/a".repeat(size);
        let file = format!("{{\"path\":\"/etc{long}/file\"}}");
        let link = format!("{{\"path\":\"/etc{long}/link\",\"target\":\"/x\"}}");
        machine_config("a", &format!(",\"storage\":{{\"files\":[{file}],\"links\":[{link}]}}"))
    };
    is_steady(5_000, config, |text| {
        let input = [Input { name: "a.json", bytes: text.as_bytes() }];
        let (old, new) = diagnosed(&input, &input).unwrap();
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

fn mirror_objects(mirrors: &str) -> String {
    format!(
        "{{\"apiVersion\":\"config.openshift.io/v1\",\"kind\":\"ImageDigestMirrorSet\",\
         \"metadata\":{{\"name\":\"m\"}},\"spec\":{{\"imageDigestMirrors\":[{mirrors}]}}}}"
    )
}

/// Objects, read as those of a side.
fn objects(mirrors: &str) -> Vec<MirrorObject> {
    let text = machine_config("a", "") + &mirror_objects(mirrors);
    let input = [Input { name: "a.json", bytes: text.as_bytes() }];
    diagnosed(&input, &input).unwrap().0.mirrors
}

#[test]
fn entries_with_long_scopes_are_rendered() {
    let set = |source: &str| format!("{{\"source\":\"{source}\",\"mirrors\":[\"m.io\"]}}");
    let long = format!("z.io{}", "/a".repeat(500));
    let objects = objects(&[set("a.io"), set(&long)].join(","));
    let conf = |size: usize| {
        let host = "b.".repeat(size);
        let path = "/a".repeat(size);
        format!(
            "[[registry]]\nlocation = \"{host}io{path}\"\n[[registry]]\nlocation = \"a.io{path}\"\n"
        )
    };
    is_steady(20_000, conf, |text| {
        mirrors::rerender(Some(text), None, |_| true, &objects).unwrap();
    });
}

#[test]
fn mirrors_are_rendered_anew() {
    let make = |size: usize| {
        let mut conf = String::new();
        for n in 0..size {
            // Entries of objects, those in doubt, and those of the image configuration.
            write!(
                conf,
                "[[registry]]\nlocation = \"a.io/b{n}\"\nblocked = true\n\
                 [[registry.mirror]]\nlocation = \"m.io/{n}\"\npull-from-mirror = \"digest-only\"\n\
                 [[registry]]\nlocation = \"c{n}.io\"\ninsecure = true\n\
                 [[registry]]\nlocation = \"d{n}.io\"\nblocked = true\n\
                 [[registry]]\nlocation = \"c{n}.io/e\"\ninsecure = true\n\
                 [[registry.mirror]]\nlocation = \"c{n}.io/m\"\npull-from-mirror = \"tag-only\"\n"
            )
            .unwrap();
        }
        let mirror = |n: usize| {
            format!("{{\"source\":\"q.io/{n}\",\"mirrors\":[\"c{n}.io/x\",\"n.io/{n}\"]}}")
        };
        (conf, objects(&list(size, mirror)))
    };
    is_steady(250, make, |(conf, objects)| {
        let rendered = mirrors::rerender(Some(conf), None, |_| false, objects).unwrap();
        assert!(rendered.doubts.len() >= 250, "{}", rendered.doubts.len());
    });
}

#[test]
fn mirrors_that_leave_a_file_are_taken_out() {
    let side = |conf: &str, sets: &str| {
        let conf: String = conf.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let conf = format!(
            ",\"storage\":{{\"files\":[{{\"path\":\"/etc/containers/registries.conf\",\
             \"contents\":{{\"source\":\"data:,{conf}\"}}}}]}}"
        );
        machine_config("a", &conf) + &mirror_objects(sets)
    };
    let make = |size: usize| {
        let many = list(size, |n| format!("\"m{n}.io\""));
        let each = |n: usize| format!("{{\"source\":\"a.io/b{n}\",\"mirrors\":[\"n.io\"]}}");
        let sets = list(size, each) + &format!(",{{\"source\":\"q.io\",\"mirrors\":[{many}]}}");
        let rendered = mirrors::rerender(None, Some(""), |_| true, &objects(&sets)).unwrap();
        let conf = rendered.text.unwrap();
        (side(&conf, &sets), side(&conf, "{\"source\":\"z.io\",\"mirrors\":[\"n.io\"]}"))
    };
    is_steady(250, make, |(old, new)| {
        let input = |text| [Input { name: "a.json", bytes: str::as_bytes(text) }];
        let (old, new) = (input(old), input(new));
        let (old, mut new) = diagnosed(&old, &new).unwrap();
        mirrors::take_out_what_leaves(&old, &mut new);
        let file = new.config.files.iter().find(|file| file.path == mirrors::REGISTRIES_CONF);
        let left = tread_model::contents::decode(&file.unwrap().contents).unwrap().unwrap().len();
        assert!(left < 1_000, "{left} bytes are left");
    });
}

/// Whatever a config says of units, no look at one takes more than there is room for.
#[test]
fn units_with_long_names_and_values_are_looked_at() {
    let file = |path: &str, text: &str| {
        let text: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
        format!("{{\"path\":\"{path}\",\"contents\":{{\"source\":\"data:,{text}\"}}}}")
    };
    let dropin = |text: &str| file("/etc/systemd/system/a.service.d/x.conf", text);
    let of_files =
        |files: String| machine_config("a", &format!(",\"storage\":{{\"files\":[{files}]}}"));
    let dashes =
        |size: usize| of_files(dropin(&format!("[Unit]\nWants={}b.service\n", "a-".repeat(size))));
    let begun = |size: usize| {
        let command = format!("/usr/bin/systemctl start {}b", "a-".repeat(size));
        of_files(dropin(&format!("[Service]\nExecStart={command}\n")))
    };
    let specifiers = |size: usize| {
        let path = format!("/etc/systemd/system/{}.service", "a".repeat(size));
        of_files(file(&path, &format!("[Unit]\nRequires={}\n", "%n".repeat(size))))
    };
    let instances = |size: usize| {
        let path = format!("/etc/systemd/system/{}.service", "%N%p%J".repeat(size.min(40)));
        of_files(file(&path, &format!("[Unit]\nPartOf={}\n", "%n".repeat(size))))
    };
    let commands = |size: usize| {
        let command = format!("ExecStartPre=/bin/app {}\n", "%n,".repeat(200));
        of_files(dropin(&format!("[Service]\n{}", command.repeat(size / 100))))
    };
    let globs = |size: usize| {
        let words = "/proc/{,a}{,b}{c,d}*/*x ".repeat(size);
        of_files(dropin(&format!("[Service]\nExecStart=/bin/sh -c 'nice {words}'\n")))
    };
    let link = |size: usize| {
        let link =
            |path: &str, target: &str| format!("{{\"path\":\"{path}\",\"target\":\"{target}\"}}");
        let links =
            [link("/etc/systemd/system/x", &"/o".repeat(size)), link(&"/o".repeat(size / 2), "/p")];
        machine_config("a", &format!(",\"storage\":{{\"links\":[{}]}}", links.join(",")))
    };
    for make in [
        &dashes as &dyn Fn(usize) -> String,
        &begun,
        &specifiers,
        &instances,
        &commands,
        &globs,
        &link,
    ] {
        is_steady(1_000, make, |text| {
            let input = [Input { name: "a.json", bytes: text.as_bytes() }];
            let (side, _) = diagnosed(&input, &input).unwrap();
            let units = OwnUnits::of(&side.config, &side.config);
            let _ = units.why_not_gentle("a.service", &mut { ROOM });
        });
    }
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
