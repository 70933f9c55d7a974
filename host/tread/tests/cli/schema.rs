//! The plan as JSON, held against its schema to the letter.

use crate::configs::{config, file, samples};
use crate::support::{Bench, Ran};
use serde_json::{Map, Value};

const STEPS: [&str; 8] = [
    "drain",
    "write",
    "update-ca-trust",
    "daemon-reload",
    "reload",
    "restart",
    "reboot",
    "uncordon",
];

const EFFECTS: [&str; 6] = ["none", "reload", "restart", "drain", "reboot", "refuse"];

const LAYERS: [&str; 3] = ["admin", "template", "builtin"];

/// Fails where a plan is not exactly what the schema says, or contradicts
/// itself.
#[track_caller]
pub fn check(plan: &Value) {
    if let Err(problem) = plan_is_valid(plan) {
        panic!("{problem}\n{plan:#}");
    }
}

/// The plan that was printed as JSON, checked.
#[track_caller]
pub fn checked(ran: &Ran) -> Value {
    let plan = ran.json();
    check(&plan);
    plan
}

type Checked = Result<(), String>;

fn plan_is_valid(plan: &Value) -> Checked {
    let required = [
        "changes",
        "deciders",
        "digest",
        "drain",
        "effect",
        "from",
        "outcome",
        "policies",
        "read",
        "reboot",
        "reproducible",
        "schema",
        "steps",
        "summary",
        "to",
    ];
    let plan = keys("plan", plan, &required, &["shadow", "timings", "warnings"])?;
    ensure(plan["schema"] == "tread.dev/plan/v1", "the schema is another one")?;
    one_of("effect", &plan["effect"], &EFFECTS)?;
    one_of("outcome", &plan["outcome"], &["nothing", "apply", "refuse"])?;
    for name in ["digest", "from", "to"] {
        digest(name, &plan[name], "blake3:")?;
    }
    line("summary", &plan["summary"])?;
    ensure(plan["reproducible"].is_boolean(), "reproducible is no boolean")?;
    if let Some(warnings) = plan.get("warnings") {
        ensure(!list("warnings", warnings)?.is_empty(), "empty warnings are left out")?;
        list("warnings", warnings)?.iter().try_for_each(|warning| line("a warning", warning))?;
    }
    let policies = list("policies", &plan["policies"])?;
    policies.iter().try_for_each(identity)?;
    let order = |it: &Value| {
        let layer = LAYERS.iter().position(|layer| it["layer"] == *layer);
        (layer, it["policy"].as_str().map(str::to_owned))
    };
    ensure(policies.is_sorted_by_key(order), "policies are not in order of layer and name")?;
    let changes = list("changes", &plan["changes"])?;
    changes.iter().try_for_each(|it| change(it, policies))?;
    ensure(changes.is_sorted_by_key(|it| it["id"].as_str()), "changes are not in order of id")?;
    steps(plan)?;
    read(&plan["read"])?;
    plan.get("shadow").map_or(Ok(()), |it| shadow(plan, it))?;
    let refused = changes.iter().any(|change| change["outcome"] == "refused");
    let outcome = match (refused, changes.is_empty()) {
        (true, _) => "refuse",
        (false, true) => "nothing",
        (false, false) => "apply",
    };
    ensure(plan["outcome"] == outcome, "the outcome does not follow from the changes")?;
    // Whoever carries it out verifies it from this JSON alone.
    let json = serde_json::to_vec(plan).map_err(|error| error.to_string())?;
    let verified = tread_model::plan::VerifiablePlan::read(&json);
    verified.map(drop).map_err(|fault| fault.to_string())
}

/// What was read on each side.
fn read(read: &Value) -> Checked {
    let read = keys("read", read, &["new", "old", "samePlace"], &[])?;
    ensure(read["samePlace"].is_boolean(), "samePlace is no boolean")?;
    for side in ["old", "new"] {
        let side = keys(side, &read[side], &["from", "objects"], &["pool"])?;
        for from in list("from", &side["from"])? {
            line("path", &keys("from", from, &["path"], &["files"])?["path"])?;
        }
        for objects in list("objects", &side["objects"])? {
            let objects = keys("objects", objects, &["count", "kind"], &["names"])?;
            line("kind", &objects["kind"])?;
            ensure(objects["count"].as_u64().is_some_and(|it| it > 0), "count is no number")?;
        }
    }
    Ok(())
}

/// How much differs, and in what.
fn difference(difference: &Value) -> Checked {
    let difference = keys("difference", difference, &["secret"], &["attributes", "contents"])?;
    ensure(difference["secret"].is_boolean(), "secret is no boolean")?;
    let of = |name: &str| difference.get(name).and_then(Value::as_array).cloned();
    for contents in of("contents").unwrap_or_default() {
        let pair: &[&str] = match &contents {
            it if it.get("addedLines").is_some() => &["addedLines", "removedLines"],
            it if it.get("linesBefore").is_some() => &["linesAfter", "linesBefore"],
            _ => &["bytesAfter", "bytesBefore"],
        };
        let contents = keys("contents", &contents, pair, &["dropin"])?;
        ensure(pair.iter().all(|it| contents[*it].is_u64()), "an amount is no number")?;
    }
    for attribute in of("attributes").unwrap_or_default() {
        let attribute = keys("attribute", &attribute, &["after", "before", "name"], &[])?;
        one_of("name", &attribute["name"], &["enabled", "group", "masked", "mode", "user"])?;
        ensure(attribute["before"] != attribute["after"], "an attribute does not differ")?;
    }
    Ok(())
}

/// What policies in the shadow would make of it, and that this agrees with it.
fn shadow(plan: &Map<String, Value>, shadow: &Value) -> Checked {
    let required = ["added", "asToday", "changes", "plan", "policies", "saved", "summary"];
    let shadow = keys("shadow", shadow, &required, &["warnings"])?;
    line("the summary of the shadow", &shadow["summary"])?;
    for policy in list("policies", &shadow["policies"])? {
        let optional = ["failure", "message", "settingsDigest", "version"];
        let policy = keys("policy", policy, &["digest", "layer", "policy", "replaces"], &optional)?;
        one_of("layer", &policy["layer"], &LAYERS)?;
        digest("digest", &policy["digest"], "sha256:")?;
        ensure(policy["replaces"].is_boolean(), "replaces is no boolean")?;
    }
    let required =
        ["digest", "drain", "effect", "outcome", "reboot", "reproducible", "steps", "summary"];
    let would = keys("plan", &shadow["plan"], &required, &[])?;
    digest("digest", &would["digest"], "blake3:")?;
    steps(would)?;
    let (mine, theirs) = (list("steps", &plan["steps"])?, list("steps", &would["steps"])?);
    let without = |one: &[Value], other: &[Value]| -> Vec<Value> {
        one.iter().filter(|step| !other.contains(step)).cloned().collect()
    };
    ensure(shadow["saved"] == Value::from(without(mine, theirs)), "saved is not the difference")?;
    ensure(shadow["added"] == Value::from(without(theirs, mine)), "added is not the difference")?;
    let listed = list("changes", &shadow["changes"])?;
    for change in listed {
        let change = keys("change", change, &["answers", "id", "today", "would"], &[])?;
        for side in ["today", "would"] {
            let required = ["actions", "decidedBy", "outcome", "reason"];
            actions(&keys(side, &change[side], &required, &[])?["actions"])?;
        }
        list("answers", &change["answers"])?.iter().try_for_each(answer)?;
    }
    let all = list("changes", &plan["changes"])?.len();
    let rest = shadow["asToday"].as_u64().map(|rest| rest + listed.len() as u64);
    ensure(rest == Some(all as u64), "the changes of the shadow are not those of the plan")
}

/// The steps of a plan are in order, and all that is said of them is true.
fn steps(plan: &Map<String, Value>) -> Checked {
    let steps = list("steps", &plan["steps"])?;
    steps.iter().try_for_each(step)?;
    let words: Vec<&str> = steps.iter().filter_map(|step| step["do"].as_str()).collect();
    let rank = |word: &str| match word {
        // In order of unit name, whatever is done to them.
        "restart" => rank_of("reload"),
        word => rank_of(word),
    };
    ensure(words.iter().is_sorted_by_key(|word| rank(word)), "the steps are not in their order")?;
    let units: Vec<&str> = steps.iter().filter_map(|step| step["unit"].as_str()).collect();
    ensure(units.is_sorted_by(|a, b| a < b), "a unit stands twice, or before its place")?;
    let has = |word| words.contains(&word);
    ensure(plan["drain"] == has("drain"), "drain is not what the steps say")?;
    ensure(plan["reboot"] == has("reboot"), "reboot is not what the steps say")?;
    ensure(has("drain") == has("uncordon"), "what is drained is uncordoned, and nothing else")?;
    ensure(has("write") == (plan["outcome"] == "apply"), "what is applied is written")?;
    let most = words.iter().map(|word| match *word {
        "write" | "uncordon" => 0,
        "update-ca-trust" | "daemon-reload" | "reload" => 1,
        "restart" => 2,
        "drain" => 3,
        _ => 4,
    });
    let effect = match plan["outcome"] == "refuse" {
        true => "refuse",
        false => EFFECTS[most.max().unwrap_or(0)],
    };
    ensure(plan["effect"] == effect, "the effect is not that of the steps")
}

fn rank_of(word: &str) -> Option<usize> {
    STEPS.iter().position(|known| *known == word)
}

fn change(change: &Value, policies: &[Value]) -> Checked {
    let required = ["actions", "decidedBy", "edit", "id", "outcome", "reason"];
    let change =
        keys("change", change, &required, &["advice", "answers", "difference", "insteadOf"])?;
    change.get("difference").map_or(Ok(()), difference)?;
    line("id", &change["id"])?;
    line("reason", &change["reason"])?;
    one_of("edit", &change["edit"], &["added", "changed", "removed"])?;
    let outcomes = ["decided", "fallback", "failed", "refused"];
    one_of("outcome", &change["outcome"], &outcomes)?;
    actions(&change["actions"])?;
    match &change["decidedBy"] {
        Value::Null => ensure(
            ["fallback", "refused"].iter().any(|it| change["outcome"] == *it)
                || change["actions"] == serde_json::json!([]),
            "only a fallback, and what the host refuses or settles, are decided by nobody",
        )?,
        by => {
            identity(by)?;
            ensure(policies.contains(by), "who decided is none of the policies")?;
            ensure(change["outcome"] != "fallback", "a fallback is decided by nobody")?;
        }
    }
    let only_reboots = change["actions"] == serde_json::json!([{"do": "reboot"}]);
    let costs_a_reboot = ["fallback", "failed"].iter().any(|it| change["outcome"] == *it);
    ensure(!costs_a_reboot || only_reboots, "what nobody answers costs a reboot")?;
    let refused_by_policy = change["outcome"] == "refused" && !change["decidedBy"].is_null();
    ensure(
        (costs_a_reboot || refused_by_policy) == change.contains_key("advice"),
        "advice stands where there is something to do, and only there",
    )?;
    if let Some(advice) = change.get("advice") {
        line("advice", advice)?;
    }
    if let Some(overruled) = change.get("insteadOf") {
        ensure(change["decidedBy"]["layer"] == "admin", "only an admin stands in place of others")?;
        let required = ["actions", "decidedBy", "outcome", "reason"];
        let overruled = keys("insteadOf", overruled, &required, &[])?;
        one_of("outcome", &overruled["outcome"], &outcomes)?;
        actions(&overruled["actions"])?;
        line("reason", &overruled["reason"])?;
        let by = &overruled["decidedBy"];
        ensure(by["layer"] != "admin", "an admin overrules others")?;
        if !by.is_null() {
            identity(by)?;
        }
    }
    match change.get("answers") {
        None => Ok(()),
        Some(answers) => {
            ensure(list("answers", answers)?.len() > 1, "answers stand where several spoke")?;
            list("answers", answers)?.iter().try_for_each(answer)
        }
    }
}

fn answer(answer: &Value) -> Checked {
    let required = ["actions", "answer", "counted", "layer", "policy", "reason"];
    let answer = keys("answer", answer, &required, &[])?;
    one_of("layer", &answer["layer"], &LAYERS)?;
    line("policy", &answer["policy"])?;
    line("answer", &answer["answer"])?;
    ensure(answer["reason"].is_string(), "a reason is no text")?;
    ensure(answer["counted"].is_boolean(), "counted is no boolean")?;
    actions(&answer["actions"])
}

fn actions(actions: &Value) -> Checked {
    let actions = list("actions", actions)?;
    actions.iter().try_for_each(step)?;
    let host_does = |step: &Value| ["write", "uncordon"].iter().any(|word| step["do"] == *word);
    ensure(!actions.iter().any(host_does), "no policy asks to write or to uncordon")
}

fn step(step: &Value) -> Checked {
    let word = step["do"].as_str().unwrap_or_default();
    let has_unit = ["reload", "restart"].contains(&word);
    let step = keys("step", step, if has_unit { &["do", "unit"] } else { &["do"] }, &[])?;
    one_of("do", &step["do"], &STEPS)?;
    step.get("unit").map_or(Ok(()), |unit| line("unit", unit))
}

fn identity(policy: &Value) -> Checked {
    let required = ["digest", "layer", "policy", "settingsDigest", "version"];
    let policy = keys("policy", policy, &required, &[])?;
    one_of("layer", &policy["layer"], &LAYERS)?;
    line("policy", &policy["policy"])?;
    line("version", &policy["version"])?;
    digest("digest", &policy["digest"], "sha256:")?;
    digest("settingsDigest", &policy["settingsDigest"], "sha256:")
}

fn keys<'v>(
    what: &str,
    value: &'v Value,
    required: &[&str],
    optional: &[&str],
) -> Result<&'v Map<String, Value>, String> {
    let object = value.as_object().ok_or_else(|| format!("{what} is no object"))?;
    for key in required {
        ensure(object.contains_key(*key), &format!("{what} has no {key}"))?;
    }
    let known = |key: &String| [required, optional].concat().contains(&key.as_str());
    match object.keys().find(|key| !known(key)) {
        Some(key) => Err(format!("{what} has {key}, which the schema does not know")),
        None => Ok(object),
    }
}

fn list<'v>(what: &str, value: &'v Value) -> Result<&'v Vec<Value>, String> {
    value.as_array().ok_or_else(|| format!("{what} is no list"))
}

fn line(what: &str, value: &Value) -> Checked {
    let text = value.as_str().ok_or_else(|| format!("{what} is no text"))?;
    ensure(!text.is_empty() && !text.contains(char::is_control), &format!("{what} is no line"))
}

fn one_of(what: &str, value: &Value, known: &[&str]) -> Checked {
    let found = known.iter().any(|known| value == known);
    ensure(found, &format!("{what} is {value}, which is none of {known:?}"))
}

fn digest(what: &str, value: &Value, algorithm: &str) -> Checked {
    let hex = value.as_str().and_then(|text| text.strip_prefix(algorithm)).unwrap_or_default();
    let is_hex = hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    ensure(hex.len() == 64 && is_hex, &format!("{what} is no digest"))
}

fn ensure(holds: bool, otherwise: &str) -> Checked {
    if holds { Ok(()) } else { Err(otherwise.to_owned()) }
}

/// A YAML document as JSON.
pub fn from_yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn every_kind_of_plan_keeps_the_schema() {
    let bench = Bench::new();
    for sample in samples() {
        let plan = checked(&sample.plan(&bench, &["-o", "json"]));
        assert_eq!(plan["summary"], sample.first_line);
        assert_eq!(plan["effect"], sample.effect.unwrap_or("refuse"));
    }
}

#[test]
fn what_a_person_is_shown_of_both_sides_a_script_can_read() {
    let bench = Bench::new();
    let unit = |limit: &str, enabled: bool| {
        let dropins = serde_json::json!([{"name": "10-a.conf", "contents": limit}]);
        serde_json::json!([{"name": "a.service", "enabled": enabled, "contents": "[Unit]\n",
            "dropins": dropins}])
    };
    let side = |text: &str, mode, limit: &str, enabled| {
        let files = [
            file("/etc/plain", &format!("same\n{text}\n"), 0o644),
            file("/etc/opened", "password\n", mode),
            file("/etc/secret", text, 0o600),
        ];
        config(serde_json::json!({"storage": {"files": files},
            "systemd": {"units": unit(limit, enabled)}}))
    };
    let (old, new) = (side("a", 0o600, "x\n", true), side("b\nc", 0o644, "x\ny\n", false));
    let plan = checked(&bench.plan(old, new, &["-o", "json"]));
    let of = |id: &str| {
        let changes = plan["changes"].as_array().unwrap();
        changes.iter().find(|it| it["id"] == id).unwrap()["difference"].clone()
    };
    let lines = |added: u64, removed: u64| serde_json::json!([{"addedLines": added, "removedLines": removed}]);
    assert_eq!(
        of("file:/etc/plain"),
        serde_json::json!({"secret": false, "contents": lines(2, 1)})
    );
    assert_eq!(
        of("file:/etc/secret"),
        serde_json::json!({"secret": true, "contents": lines(2, 1)})
    );
    assert_eq!(
        of("file:/etc/opened"),
        serde_json::json!({"secret": true,
            "attributes": [{"name": "mode", "before": "0600", "after": "0644"}]}),
        "a secret that everybody can read from now on"
    );
    assert_eq!(
        of("unit:a.service"),
        serde_json::json!({"secret": false,
            "contents": [{"dropin": "10-a.conf", "addedLines": 1, "removedLines": 0}],
            "attributes": [{"name": "enabled", "before": "enabled", "after": "disabled"}]})
    );
    assert_eq!(plan["read"]["samePlace"], false);
    assert_eq!(plan["read"]["old"]["from"], serde_json::json!([{"path": "old.json"}]));
    assert_eq!(plan["read"]["old"]["objects"][0]["kind"], "MachineConfig");
    assert_eq!(plan["read"]["old"]["objects"][0]["count"], 1);
    let same = checked(&bench.tread(&["plan", "old.json", "old.json", "-o", "json"]));
    assert_eq!(same["read"]["samePlace"], true);
}

#[test]
fn of_what_is_added_or_removed_all_is_told_that_is_not_the_default() {
    let bench = Bench::new();
    let unit =
        |name: &str, field: &str, value: bool| serde_json::json!({"name": name, field: value});
    let mut owned = file("/etc/owned", "x\n", 0o755);
    owned["user"] = serde_json::json!({"name": "chrony"});
    owned["group"] = serde_json::json!({"name": "chrony"});
    let with = config(serde_json::json!({
        "storage": {"files": [file("/etc/plain", "x\n", 0o644), owned]},
        "systemd": {"units": [
            unit("chronyd.service", "enabled", true),
            unit("crond.service", "enabled", false),
            unit("dnsmasq.service", "mask", false),
            unit("sshd.service", "mask", true),
            {"name": "plain.service", "contents": "[Unit]\n"},
        ]},
    }));
    let without = config(serde_json::json!({}));
    let expected = [
        ("file:/etc/owned", vec![("mode", "0755"), ("user", "chrony"), ("group", "chrony")]),
        ("file:/etc/plain", vec![]),
        ("unit:chronyd.service", vec![("enabled", "enabled")]),
        ("unit:crond.service", vec![("enabled", "disabled")]),
        ("unit:dnsmasq.service", vec![("masked", "unmasked")]),
        ("unit:plain.service", vec![]),
        ("unit:sshd.service", vec![("masked", "yes")]),
    ];
    for (is_added, old, new) in [(true, &without, &with), (false, &with, &without)] {
        let plan = checked(&bench.plan(old.clone(), new.clone(), &["-o", "json"]));
        let text = bench.plan(old.clone(), new.clone(), &[]).out();
        let changes = plan["changes"].as_array().unwrap();
        for (id, attributes) in &expected {
            let change = changes.iter().find(|it| it["id"] == *id).unwrap();
            let in_json = attributes.iter().map(|(name, value)| match is_added {
                true => serde_json::json!({"name": name, "before": "", "after": value}),
                false => serde_json::json!({"name": name, "before": value, "after": ""}),
            });
            let in_json: Vec<Value> = in_json.collect();
            let told = change["difference"].get("attributes").and_then(Value::as_array);
            assert_eq!(told.cloned().unwrap_or_default(), in_json, "{change:#}");
            for (name, value) in attributes {
                let line = match is_added {
                    true => format!("{name}: {value}\n"),
                    false => format!("{name}: was {value}\n"),
                };
                assert!(text.contains(&line), "{line} in {text}");
            }
        }
    }
}

#[test]
fn yaml_says_the_same_as_json() {
    let bench = Bench::new();
    for sample in samples() {
        let json = sample.plan(&bench, &["-o", "json"]);
        let yaml = sample.plan(&bench, &["-o", "yaml"]);
        assert_eq!(from_yaml(&yaml.out()), json.json(), "{}", yaml.out());
        assert_eq!(yaml.code(), json.code());
        assert!(yaml.out().ends_with('\n') && json.out().ends_with('\n'));
    }
}

#[test]
fn only_timings_add_a_field() {
    let bench = Bench::new();
    for sample in samples() {
        let mut with = checked(&sample.plan(&bench, &["-o", "json", "--timings"]));
        let without = checked(&sample.plan(&bench, &["-o", "json"]));
        assert!(with.as_object_mut().unwrap().remove("timings").is_some());
        assert_eq!(with, without);
    }
}

#[test]
fn the_checker_finds_what_breaks_the_schema() {
    let bench = Bench::new();
    let sample = samples().swap_remove(6);
    let good = checked(&sample.plan(&bench, &["-o", "json"]));
    for (pointer, bad) in [
        ("/schema", Value::from("tread.dev/plan/v2")),
        ("/drain", Value::from(false)),
        ("/reboot", Value::from(true)),
        ("/effect", Value::from("reload")),
        ("/outcome", Value::from("refuse")),
        ("/digest", Value::from("blake3:12")),
        ("/steps/0/do", Value::from("reboot")),
        ("/steps/1", serde_json::json!({"do": "write", "unit": "a.service"})),
        ("/changes/0/decidedBy", Value::Null),
        ("/changes/0/decidedBy/version", Value::from("9.9.9")),
        ("/changes/0/outcome", Value::from("fallback")),
        ("/changes/0/actions", Value::from("drain")),
        ("/changes/0", serde_json::json!({})),
    ] {
        let mut plan = good.clone();
        *plan.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer} in {good:#}")) = bad;
        assert!(plan_is_valid(&plan).is_err(), "{pointer} passes");
    }
    let mut more = good;
    more.as_object_mut().unwrap().insert("extra".to_owned(), Value::Null);
    assert!(plan_is_valid(&more).is_err());
}
