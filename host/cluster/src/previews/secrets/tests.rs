use crate::policies::current::Current;
use crate::pools::Pool;
use crate::previews::{
    Asked, Bodies, BodyKey, Parsed, Part, Piece, Side, Way, Work, compute, warnings,
};
use serde_json::{Value, json};
use std::sync::Arc;
use tread_engine::planner::Answers;
use tread_engine::policy::PolicySet;
use tread_engine::sandbox::{Options, Sandbox};
use tread_kube::api::disruption_plan::{Cause, CauseEvent, Nodes};
use tread_model::operator;

const NEW: &str = "50-guess";

fn config(name: &str, spec: &Value) -> Arc<[u8]> {
    let object = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": name}, "spec": {"config": spec},
    });
    object.to_string().into_bytes().into()
}

fn file(path: &str, mode: u32, text: &str) -> Value {
    let source = format!("data:,{text}");
    json!({"ignition": {"version": "3.4.0"}, "storage": {"files": [
        {"path": path, "mode": mode, "overwrite": true, "contents": {"source": source}}]}})
}

fn password(hash: &str) -> Value {
    json!({"ignition": {"version": "3.4.0"},
        "passwd": {"users": [{"name": "core", "passwordHash": hash}]}})
}

/// What is said of a config by which nodes that have one are to get another.
fn said(there: &Value, asked: &Value, operated: bool, hides_secrets: bool) -> Vec<String> {
    said_above(None, there, asked, operated, hides_secrets)
}

/// The same where the pool has another config below it.
fn said_above(
    below: Option<&Value>,
    there: &Value,
    asked: &Value,
    operated: bool,
    hides_secrets: bool,
) -> Vec<String> {
    let key: BodyKey = ("rendered-worker-1".into(), "1".into());
    let other: BodyKey = ("40-below".into(), "1".into());
    let mut bodies = Bodies::from([(key.clone(), config(&key.0, there).into())]);
    bodies.extend(below.map(|below| (other.clone(), config(&other.0, below).into())));
    let below = below.map(|_| Piece::Stored(other));
    let given = Piece::given(NEW.to_owned(), config(NEW, asked));
    let cause = Cause {
        kind: "MachineConfig".to_owned(),
        name: NEW.to_owned(),
        event: CauseEvent::Changed,
    };
    let nodes = Nodes { count: 3, ..Nodes::default() };
    let work = Work {
        pool: Arc::new(Pool { name: "worker".to_owned(), ..Pool::default() }),
        ways: vec![Way {
            from: Some(Side::rendered(key.clone())),
            from_name: key.0.to_string(),
            nodes,
        }],
        to: Side { configs: below.into_iter().chain([given.clone()]).collect(), ..Side::default() },
        to_name: String::new(),
        target: None,
        parts: vec![Part { cause: cause.clone(), body: Some(given), mirrors: false }],
        operated,
        rollout_paused: false,
        single_replica: false,
        since: String::new(),
        doubt: None,
    };
    let current = Current::new(PolicySet::new(Vec::new()).unwrap(), None, true);
    let sandbox = Sandbox::new(Options::default()).unwrap();
    let asked = Asked {
        bodies: &bodies,
        current: &current,
        operator: &operator::Policies::of(None),
        sandbox: &sandbox,
        answers: &Answers::default(),
        parsed: &Parsed::default(),
        hides_secrets,
    };
    warnings(&[compute(work, &asked)], &cause)
}

#[test]
fn whether_a_guess_is_right_is_not_told_of_a_secret() {
    const PULL_SECRET: &str = "/var/lib/kubelet/config.json";
    let cases: [(&str, [Value; 3]); 4] = [
        ("file:/etc/a", ["right", "right", "wrong"].map(|text| file("/etc/a", 0o600, text))),
        // Whoever asks may give it another mode.
        (
            "file:/etc/a",
            [(0o600, "right"), (0o644, "right"), (0o644, "wrong")]
                .map(|(mode, text)| file("/etc/a", mode, text)),
        ),
        (
            "file:/var/lib/kubelet/config.json",
            ["right", "right", "wrong"].map(|text| file(PULL_SECRET, 0o644, text)),
        ),
        ("password:core", ["$6$right", "$6$right", "$6$wrong"].map(password)),
    ];
    for (id, [there, right, wrong]) in cases {
        for operated in [true, false] {
            let hidden = [&right, &wrong].map(|asked| said(&there, asked, operated, true));
            assert_eq!(hidden[0], hidden[1], "{id} {operated}");
            let [line, note] = hidden[0].as_slice() else { panic!("{id}: {hidden:?}") };
            assert!(line.contains("pool worker, 3 nodes"), "{line}");
            assert!(note.contains(&format!("whether {id} changes is not told")), "{note}");
        }
        if there != right {
            continue;
        }
        // Whoever may read what is there is told.
        assert_ne!(said(&there, &right, true, false), said(&there, &wrong, true, false), "{id}");
    }
}

/// A config with another Ignition config around what it holds.
fn ignition(held: &Value) -> Value {
    let mut config = json!({"ignition": {"version": "3.4.0"}});
    for (part, fields) in held.as_object().unwrap() {
        for (field, value) in fields.as_object().unwrap() {
            config[part][field] = value.clone();
        }
    }
    config
}

#[test]
fn whether_a_guess_is_right_is_not_told_of_what_only_provisioning_can_set() {
    let header = |secret: &str| {
        json!([{"source": "https://a.example/b",
            "httpHeaders": [{"name": "Authorization", "value": secret}]}])
    };
    type Part = (&'static str, fn(&str, &dyn Fn(&str) -> Value) -> Value);
    let parts: [Part; 5] = [
        ("storage:luks", |secret, _| {
            let key = json!({"source": format!("data:,{secret}")});
            json!({"storage": {"luks": [{"name": "a", "device": "/dev/a", "keyFile": key}]}})
        }),
        (
            "users:groups",
            |secret, _| json!({"passwd": {"groups": [{"name": "a", "passwordHash": secret}]}}),
        ),
        (
            "ignition:config",
            |secret, header| json!({"ignition": {"config": {"merge": header(secret)}}}),
        ),
        (
            "ignition:security",
            |secret, header| json!({"ignition": {"security": {"tls": {"certificateAuthorities": header(secret)}}}}),
        ),
        (
            "ignition:proxy",
            |secret, _| json!({"ignition": {"proxy": {"httpProxy": format!("http://a:{secret}@b.example")}}}),
        ),
    ];
    for (id, part) in parts {
        let [there, right, wrong] =
            ["right", "right", "wrong"].map(|secret| ignition(&part(secret, &header)));
        for (below, operated) in [(None, true), (None, false), (Some(&there), true)] {
            let hidden =
                [&right, &wrong].map(|asked| said_above(below, &there, asked, operated, true));
            assert_eq!(hidden[0], hidden[1], "{id} {operated}");
            let [line, note] = hidden[0].as_slice() else { panic!("{id}: {hidden:?}") };
            assert!(line.contains("pool worker, 3 nodes"), "{line}");
            // Of groups alone the operator's daemon looks at what changes.
            assert!(line.contains(id) || operated && id != "users:groups", "{line}");
            assert!(note.contains(&format!("whether {id} changes is not told")), "{note}");
            // It is what is said of any other secret there.
            let known = said_above(below, &there, &wrong, operated, false);
            assert_eq!(known.as_slice(), std::slice::from_ref(line), "{id}");
        }
        assert_eq!(said(&there, &right, true, false), Vec::<String>::new(), "{id}");
    }
}

#[test]
fn what_only_provisioning_can_set_and_holds_no_secret_does_not_count_as_new() {
    let directory = json!([{"path": "/var/a"}]);
    let parts = [
        json!({"storage": {"directories": directory}}),
        json!({"storage": {"disks": [{"device": "/dev/a"}]}}),
        json!({"storage": {"links": [{"path": "/etc/a", "target": "/etc/b"}]}}),
        json!({"ignition": {"timeouts": {"httpTotal": 30}}}),
    ];
    for part in parts {
        let there = ignition(&part);
        assert_eq!(said(&there, &there, true, true), Vec::<String>::new(), "{part}");
    }
    // Nor does what nobody asks about.
    let luks = json!({"storage": {"luks": [{"name": "a", "keyFile": {"source": "data:,a"}}]}});
    let lines = said(&ignition(&luks), &file("/etc/a", 0o644, "a"), false, true);
    assert!(!lines.iter().any(|line| line.contains("is a secret")), "{lines:?}");
}

#[test]
fn whether_a_guessed_hash_of_a_secret_is_right_is_not_told() {
    // Of `right` and of something else.
    let hashes = [
        "sha256-27042f4e6eca7d0b2a7ee4026df2ecfa51d3339e6d122aa099118ecd8563bad9",
        "sha256-0000000000000000000000000000000000000000000000000000000000000000",
    ];
    let there = file("/etc/a", 0o600, "right");
    let asked = hashes.map(|hash| {
        json!({"ignition": {"version": "3.4.0"}, "storage": {"files": [
            {"path": "/etc/a", "contents": {"verification": {"hash": hash}}}]}})
    });
    for operated in [true, false] {
        let [right, wrong] =
            asked.clone().map(|asked| said_above(Some(&there), &there, &asked, operated, true));
        assert_eq!(right, wrong, "{operated}");
    }
    let said = asked.map(|asked| said_above(Some(&there), &there, &asked, false, false));
    assert_ne!(said[0], said[1], "whoever may read it is told");
}

#[test]
fn of_what_is_no_secret_it_is_told_whether_it_changes() {
    let [there, same, other] = ["a", "a", "b"].map(|text| file("/etc/a", 0o644, text));
    assert_eq!(said(&there, &same, true, true), Vec::<String>::new());
    let [line] = said(&there, &other, true, true).try_into().unwrap();
    assert!(line.contains("file:/etc/a") && !line.contains("secret"), "{line}");
    // Nor is anything hidden that nobody asks about.
    let there = file("/etc/secret", 0o600, "a");
    let lines = said(&there, &other, false, true);
    assert!(!lines.iter().any(|line| line.contains("secret:")), "{lines:?}");
}
