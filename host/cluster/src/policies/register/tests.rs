use super::*;
use crate::policies::snapshot::{Allowed, Room};
use std::sync::Arc;

fn snapshot() -> Snapshot {
    Snapshot {
        own_namespace: "tread".to_owned(),
        allowed: Arc::new([("apps".to_owned(), Allowed::default())].into()),
        ..Snapshot::default()
    }
}

fn with_map(mut snapshot: Snapshot, namespace: &str, name: &str, uid: &str, at: i64) -> Snapshot {
    let map = PolicyMap { uid: uid.to_owned(), created: at, ..PolicyMap::default() };
    Arc::make_mut(&mut snapshot.config_maps).insert((namespace.to_owned(), name.to_owned()), map);
    snapshot
}

fn with_object(mut snapshot: Snapshot, mut object: DisruptionPolicy) -> Snapshot {
    let name = object.metadata.name.clone().unwrap();
    object.metadata.uid = Some(format!("uid of {name}"));
    snapshot.policies.insert(name, Arc::new(object));
    snapshot
}

/// Everything that was asked for has been done.
fn done(snapshot: Snapshot) -> Snapshot {
    let Registration { create, withdraw, .. } = register(&snapshot);
    let mut after = create.into_iter().fold(snapshot, with_object);
    for withdrawal in withdraw {
        after.policies.remove(&withdrawal.name);
    }
    after
}

fn created(snapshot: &Snapshot) -> Vec<String> {
    register(snapshot).create.into_iter().filter_map(|object| object.metadata.name).collect()
}

#[test]
fn a_config_map_of_an_allowed_namespace_registers_itself_once() {
    let before = with_map(with_map(snapshot(), "apps", "chrony", "1", 0), "tread", "own", "2", 0);
    assert_eq!(created(&before), ["apps.chrony", "tread.own"]);
    let object = &register(&before).create[0];
    assert_eq!(object.spec.layer(), Layer::Template);
    assert_eq!(registered_by(object), Some("1"));
    assert!(!object.spec.approved && !object.spec.may_relax && !object.spec.read_secrets);
    assert_eq!(register(&done(before)), Registration::default());
}

#[test]
fn a_config_map_of_another_namespace_is_ignored_and_told_how_to_be_allowed() {
    let found = register(&with_map(snapshot(), "other", "chrony", "1", 0));
    assert!(found.create.is_empty());
    assert_eq!(found.ignored[0].reason, Reason::NamespaceNotAllowed);
    assert_eq!(found.ignored[0].uid, "1");
    let words = "kubectl label namespace other tread.dev/policies=allowed";
    assert!(found.ignored[0].message.contains(words), "{found:?}");
}

#[test]
fn a_policy_goes_with_its_config_map_its_label_or_its_namespace() {
    let before = done(with_map(snapshot(), "apps", "chrony", "1", 0));
    let mut gone = before.clone();
    gone.config_maps = Arc::default();
    let mut forbidden = before.clone();
    forbidden.allowed = Arc::default();
    let anew = with_map(before.clone(), "apps", "chrony", "2", 9);
    for (after, word) in [(gone, "is gone"), (forbidden, "not allowed"), (anew, "made anew")] {
        let found = register(&after);
        assert_eq!(found.withdraw.len(), 1, "{word}");
        assert!(found.withdraw[0].why.contains(word), "{found:?}");
        assert_eq!(found.withdraw[0].uid, "uid of apps.chrony");
        assert!(found.create.is_empty(), "not before the old one is gone");
    }
}

#[test]
fn one_that_was_made_anew_registers_itself_without_what_an_admin_said_of_the_old_one() {
    let mut before = done(with_map(snapshot(), "apps", "chrony", "1", 0));
    let mut object = DisruptionPolicy::clone(&before.policies["apps.chrony"]);
    object.spec.approved = true;
    before.policies.insert("apps.chrony".to_owned(), Arc::new(object));
    let after = done(done(with_map(before, "apps", "chrony", "2", 9)));
    assert_eq!(registered_by(&after.policies["apps.chrony"]), Some("2"));
    assert!(!after.policies["apps.chrony"].spec.approved);
}

#[test]
fn what_an_admin_forbade_stays_forbidden_when_a_config_map_is_made_anew() {
    let set = |change: fn(&mut DisruptionPolicySpec)| {
        let mut before = done(with_map(snapshot(), "apps", "chrony", "1", 0));
        let mut object = DisruptionPolicy::clone(&before.policies["apps.chrony"]);
        change(&mut object.spec);
        before.policies.insert("apps.chrony".to_owned(), Arc::new(object));
        before
    };
    for before in [
        set(|it| it.mode = Mode::Disabled),
        set(|it| it.mode = Mode::Shadow),
        set(|it| {
            it.digest = Some("sha256:0".to_owned());
            it.may_relax = true;
        }),
    ] {
        let said = before.policies["apps.chrony"].spec.clone();
        let mut gone = before.clone();
        gone.config_maps = Arc::default();
        let mut forbidden = before.clone();
        forbidden.allowed = Arc::default();
        for (without, word) in [(&gone, "is gone"), (&forbidden, "not allowed")] {
            let found = register(without);
            assert_eq!((found.withdraw.len(), found.create.len()), (0, 0));
            assert!(found.idle["apps.chrony"].contains(word), "{found:?}");
        }
        let anew = done(with_map(gone, "apps", "chrony", "2", 9));
        assert_eq!(register(&anew), Registration::default());
        assert_eq!(anew.policies["apps.chrony"].spec, said);
    }
    let granted = set(|it| (it.approved, it.read_secrets) = (true, true));
    assert_eq!(register(&with_map(granted, "apps", "chrony", "2", 9)).withdraw.len(), 1);
}

#[test]
fn a_config_map_whose_name_an_admins_object_has_is_told_so() {
    let rules = DisruptionPolicy::new("apps.chrony", DisruptionPolicySpec::default());
    let found = register(&with_map(with_object(snapshot(), rules), "apps", "chrony", "1", 0));
    assert_eq!((found.create.len(), found.withdraw.len()), (0, 0));
    assert_eq!(found.ignored[0].reason, Reason::NameTaken);
}

#[test]
fn what_an_admin_wrote_is_never_touched() {
    let source = ConfigMapSource {
        namespace: "other".to_owned(),
        name: "chrony".to_owned(),
        ..Default::default()
    };
    let source = Source { config_map: Some(source), ..Source::default() };
    let mine = object("mine".to_owned(), Layer::Admin, source);
    let mine = DisruptionPolicy { metadata: kube::core::ObjectMeta::default(), ..mine };
    let mine = DisruptionPolicy {
        metadata: kube::core::ObjectMeta { name: Some("mine".to_owned()), ..mine.metadata },
        ..mine
    };
    // An admin may name a ConfigMap of any namespace, and one that is missing.
    assert_eq!(register(&with_object(snapshot(), mine.clone())), Registration::default());
    let there = with_map(with_object(snapshot(), mine.clone()), "other", "chrony", "1", 0);
    assert_eq!(register(&there), Registration::default());
    // What registered itself before makes way for it.
    let before = done(with_map(snapshot(), "apps", "chrony", "1", 0));
    let mut over = mine;
    over.spec.source.as_mut().unwrap().config_map.as_mut().unwrap().namespace = "apps".to_owned();
    let found = register(&with_object(before, over));
    assert_eq!(found.withdraw[0].name, "apps.chrony");
    assert!(found.withdraw[0].why.contains("Another DisruptionPolicy"), "{found:?}");
}

#[test]
fn what_comes_with_tread_comes_back() {
    let before =
        Snapshot { builtins: vec!["network".to_owned(), "registries".to_owned()], ..snapshot() };
    assert_eq!(created(&before), ["network", "registries"]);
    let mut after = done(before);
    assert_eq!(register(&after), Registration::default());
    assert_eq!(after.policies["network"].spec.layer(), Layer::Builtin);
    after.policies.remove("registries");
    assert_eq!(created(&after), ["registries"]);
    // Also if an admin has given its name to rules of their own.
    let rules = DisruptionPolicy::new("registries", DisruptionPolicySpec::default());
    let taken = with_object(after, rules);
    assert_eq!(created(&taken), ["tread.registries"]);
    let rules = DisruptionPolicy::new("tread.registries", DisruptionPolicySpec::default());
    assert_eq!(created(&with_object(taken, rules)), ["tread.registries.2"]);
}

#[test]
fn the_clusters_own_rules_are_listed_as_long_as_there_are_some() {
    let before = Snapshot { has_node_disruption_policy: true, ..snapshot() };
    assert_eq!(created(&before), [NODE_DISRUPTION_POLICY]);
    let after = done(before);
    assert_eq!(after.policies[NODE_DISRUPTION_POLICY].spec.layer(), Layer::Admin);
    assert_eq!(register(&after), Registration::default());
    let gone = register(&Snapshot { has_node_disruption_policy: false, ..after });
    assert_eq!(gone.withdraw[0].name, NODE_DISRUPTION_POLICY);
}

#[test]
fn who_came_first_stays_when_there_is_no_room() {
    let room = Room { registered: 3, registered_of_namespace: 2, ..Room::default() };
    let mut full = Snapshot { room, ..snapshot() };
    for (namespace, name, at) in
        [("apps", "c", 3), ("apps", "a", 2), ("apps", "b", 1), ("tread", "d", 5), ("tread", "e", 4)]
    {
        full = with_map(full, namespace, name, name, at);
    }
    let found = register(&full);
    let names: Vec<_> = found.create.iter().filter_map(|it| it.metadata.name.as_deref()).collect();
    assert_eq!(names, ["apps.a", "apps.b", "tread.e"]);
    let ignored: Vec<_> = found.ignored.iter().map(|it| (it.newest.as_str(), it.reason)).collect();
    assert_eq!(ignored, [("c", Reason::TooManyPolicies), ("d", Reason::TooManyPolicies)]);
    // And goes on to stay when others come.
    let later = with_map(done(full), "apps", "0", "0", 9);
    assert_eq!(register(&later).withdraw, []);
}

#[test]
fn a_name_that_is_too_long_or_reads_like_another_is_ignored() {
    let long = with_map(snapshot(), "apps", &"a".repeat(250), "1", 0);
    assert_eq!(register(&long).ignored[0].reason, Reason::NameTooLong);
    let mut both = with_map(snapshot(), "a", "b.c", "1", 0);
    both = with_map(both, "a.b", "c", "2", 1);
    for namespace in ["a", "a.b"] {
        Arc::make_mut(&mut both.allowed).insert(namespace.to_owned(), Allowed::default());
    }
    let found = register(&both);
    assert_eq!((found.create.len(), found.ignored[0].reason), (1, Reason::NameTaken));
    assert_eq!(found.ignored[0].namespace, "a.b");
}

#[test]
fn of_thousands_that_are_ignored_in_a_namespace_one_is_told_of() {
    let mut many = snapshot();
    for number in 0..3000 {
        let name = format!("m{number}");
        many = with_map(many, "elsewhere", &name, &name, number);
    }
    many = with_map(many, "other", "a", "a", 0);
    let mut found = register(&many).ignored;
    found.sort_by_key(|it| it.others);
    let newest: Vec<_> = found.iter().map(|it| (it.newest.as_str(), it.others)).collect();
    assert_eq!(newest, [("a", 0), ("m2999", 2999)]);
    assert!(found[1].message.ends_with(". So it is with 2999 more ConfigMaps here"), "{found:?}");
}
