use super::*;
use tread_kube::api::disruption_policy::{ConfigMapSource, Source};
use tread_kube::api::{DisruptionPolicySpec, DisruptionPolicyStatus};
use tread_model::effect::Effect;

fn claim(changes: &str) -> Claim {
    Claim::on(changes, Effect::None, Effect::Restart)
}

fn version(bytes: &str, claims: &[&str]) -> Version {
    Version {
        name: "chrony".to_owned(),
        version: "1.0.0".to_owned(),
        summary: String::new(),
        claims: claims.iter().map(|it| claim(it)).collect(),
        digest: Sha256::of(bytes.as_bytes()),
        settings_digest: Sha256::of(b"{}"),
        warnings: Vec::new(),
    }
}

fn good() -> Version {
    version("good", &["file:/etc/chrony.conf"])
}

fn bad(kind: FailureKind, claims: &[&str]) -> Attempt {
    Attempt::Bad {
        failure: Failure { kind, message: "why".to_owned() },
        digest: Some(Sha256::of(b"bad")),
        claims: claims.iter().map(|it| claim(it)).collect(),
    }
}

/// The object of a ConfigMap in the template layer, with the status that it has
/// after a version decided.
fn decided(by: Option<&Version>) -> DisruptionPolicy {
    let config_map = Some(ConfigMapSource::default());
    let spec = DisruptionPolicySpec {
        layer: Some(Layer::Template),
        source: Some(Source { config_map, ..Source::default() }),
        ..Default::default()
    };
    let mut object = DisruptionPolicy::new("apps.chrony", spec);
    object.status = by.map(|version| DisruptionPolicyStatus {
        state: Some(State::Loaded),
        digest: Some(version.digest.to_string()),
        settings_digest: Some(version.settings_digest.to_string()),
        claims: version.claims.iter().map(ClaimStatus::from).collect(),
        ..Default::default()
    });
    object
}

fn reboots(choice: &Choice) -> Vec<&str> {
    match &choice.deciding {
        Deciding::Reboots(claims) => claims.iter().map(|it| it.changes.as_str()).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_newest_version_decides_when_it_is_good() {
    let choice = choose(&decided(None), &Attempt::Good(good()), None, None);
    assert_eq!((choice.state, choice.deciding), (State::Loaded, Deciding::Newest));
}

#[test]
fn the_last_good_version_decides_while_its_bytes_are_kept_and_its_digest_stands() {
    let trap = bad(FailureKind::Trap, &[]);
    let object = decided(Some(&good()));
    let choice = choose(&object, &trap, Some(&good()), None);
    assert_eq!((choice.state, choice.deciding), (State::LastGood, Deciding::LastGood));
    for (object, kept) in [
        (object.clone(), None),
        (decided(None), Some(good())),
        (decided(Some(&version("another", &["file:/etc/chrony.conf"]))), Some(good())),
        (object, Some(Version { settings_digest: Sha256::of(b"{\"a\":1}"), ..good() })),
    ] {
        let choice = choose(&object, &trap, kept.as_ref(), None);
        assert_eq!(choice.state, State::Failed);
        let known = object.status.is_some();
        assert_eq!(reboots(&choice), if known { vec!["file:/etc/chrony.conf"] } else { vec![] });
    }
}

#[test]
fn bytes_that_do_not_match_a_pin_never_decide() {
    let mut object = decided(Some(&good()));
    let mismatch = bad(FailureKind::DigestMismatch, &["file:/etc/other.conf"]);
    object.spec.digest = Some(good().digest.to_string());
    let choice = choose(&object, &mismatch, Some(&good()), None);
    assert_eq!(choice.state, State::LastGood, "the last good one is the one that is pinned");
    object.spec.digest = Some(Sha256::of(b"third").to_string());
    let choice = choose(&object, &mismatch, Some(&good()), None);
    assert_eq!(choice.state, State::Failed);
    assert_eq!(reboots(&choice), ["file:/etc/chrony.conf", "file:/etc/other.conf"]);
}

#[test]
fn a_module_that_is_missing_costs_reboots_for_what_it_claimed() {
    let missing = bad(FailureKind::Missing, &[]);
    let choice = choose(&decided(Some(&good())), &missing, Some(&good()), None);
    assert_eq!(choice.state, State::Failed);
    assert_eq!(reboots(&choice), ["file:/etc/chrony.conf"]);
    // And goes on to, when nothing more is known than that.
    let mut failed = decided(Some(&good()));
    failed.status.as_mut().unwrap().state = Some(State::Failed);
    assert_eq!(reboots(&choose(&failed, &missing, None, None)), ["file:/etc/chrony.conf"]);
}

#[test]
fn what_is_not_approved_decides_nothing_and_costs_nothing() {
    let wide = version("wide", &["file:/**"]);
    let mut object = decided(None);
    let choice = choose(&object, &Attempt::Good(wide.clone()), None, None);
    assert_eq!((choice.state, choice.deciding), (State::NeedsApproval, Deciding::Nobody));
    assert!(choice.needs_approval.unwrap().contains("file:/**"));
    let choice = choose(&object, &bad(FailureKind::Trap, &["file:/**"]), None, None);
    assert_eq!(choice.deciding, Deciding::Nobody, "nor if it is broken besides");
    let choice = choose(&object, &Attempt::Good(good()), None, Some("unit:a.service"));
    assert_eq!(choice.state, State::NeedsApproval);
    // Nor does a claim count that was never approved.
    let mut waiting = decided(Some(&wide));
    waiting.status.as_mut().unwrap().state = Some(State::NeedsApproval);
    assert_eq!(reboots(&choose(&waiting, &bad(FailureKind::Trap, &[]), None, None)), [""; 0]);
    object.spec.approved = true;
    let choice = choose(&object, &Attempt::Good(wide.clone()), None, None);
    assert_eq!(choice.state, State::Loaded);
    // What an admin puts in their own layer they have approved.
    let mut mine = decided(None);
    mine.spec.layer = Some(Layer::Admin);
    assert_eq!(choose(&mine, &Attempt::Good(wide), None, None).state, State::Loaded);
}

#[test]
fn a_policy_that_is_bad_from_its_first_load_counts_as_one_that_cannot_decide() {
    let object = decided(None);
    for claims in [&[][..], &["no claim"], &["file:/etc/app/a"]] {
        let choice = choose(&object, &bad(FailureKind::Trap, claims), None, None);
        let said = |mode| choice.decides(mode);
        assert_eq!(said(Mode::Enforce), "reboots", "{claims:?}");
        assert_eq!((said(Mode::Shadow), said(Mode::Disabled)), ("nobody", "nobody"), "{claims:?}");
        let unreadable = choose_unreadable(&object, &[], None);
        assert_eq!(unreadable.decides(Mode::Enforce), "reboots");
    }
    // What would wait for its approval costs nothing, good or bad.
    let wide = Attempt::Good(version("wide", &["file:/**"]));
    assert_eq!(choose(&object, &wide, None, None).decides(Mode::Enforce), "nobody");
    let wide = bad(FailureKind::Trap, &["file:/**"]);
    assert_eq!(choose(&object, &wide, None, None).decides(Mode::Enforce), "nobody");
}

#[test]
fn what_was_never_approved_costs_nothing_after_it_was_switched_off_and_on_again() {
    let trap = bad(FailureKind::Trap, &[]);
    // The status of a policy that is switched off shows what waited when that happened.
    let mut object = decided(Some(&version("wide", &["file:/**"])));
    object.status.as_mut().unwrap().state = Some(State::Disabled);
    let costs = |object: &DisruptionPolicy, listed: Option<&str>| {
        let bad = choose(object, &trap, None, listed);
        let unreadable = choose_unreadable(object, &[], listed);
        assert_eq!(reboots(&bad), reboots(&unreadable));
        reboots(&bad).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(costs(&object, None), [""; 0]);
    object.spec.approved = true;
    assert_eq!(costs(&object, None), ["file:/**"]);
    // What nobody has to approve is known still.
    let mut fine = decided(Some(&good()));
    fine.status.as_mut().unwrap().state = Some(State::Disabled);
    assert_eq!(costs(&fine, None), ["file:/etc/chrony.conf"]);
    assert_eq!(costs(&fine, Some("unit:a.service")), [""; 0], "its namespace lists that no more");
}

#[test]
fn while_a_new_version_waits_for_approval_the_one_before_goes_on() {
    let wide = Attempt::Good(version("wide", &["file:/**"]));
    let object = decided(Some(&good()));
    let choice = choose(&object, &wide, Some(&good()), None);
    assert_eq!((choice.state, choice.deciding), (State::LastGood, Deciding::LastGood));
    assert!(choice.needs_approval.unwrap().contains("file:/**"));
    let waits = |object: &DisruptionPolicy, kept: Option<&Version>, listed| {
        let choice = choose(object, &wide, kept, listed);
        (choice.state, choice.deciding) == (State::NeedsApproval, Deciding::Nobody)
    };
    assert!(waits(&object, None, None), "it is not kept any more");
    assert!(waits(&object, Some(&good()), Some("unit:a.service")), "nor may the one before");
    assert!(waits(&decided(None), Some(&good()), None), "it never decided");
    let mut pinned = object.clone();
    pinned.spec.digest = Some(Sha256::of(b"wide").to_string());
    assert!(waits(&pinned, Some(&good()), None), "an admin wants the new one");
    let mut approved = object;
    approved.spec.approved = true;
    assert_eq!(choose(&approved, &wide, Some(&good()), None).state, State::Loaded);
}

#[test]
fn a_version_that_waits_costs_reboots_while_the_one_before_cannot_be_loaded_for_a_moment() {
    let wide = Attempt::Good(version("wide", &["file:/**"]));
    let mut object = decided(Some(&good()));
    let choice = choose_meanwhile(&object, &wide, None);
    assert_eq!((choice.state, reboots(&choice)), (State::Failed, vec!["file:/etc/chrony.conf"]));
    assert!(choice.needs_approval.as_ref().unwrap().contains("file:/**"));
    // And goes on to, until it is loaded.
    object.status.as_mut().unwrap().state = Some(choice.state);
    assert_eq!(choose_meanwhile(&object, &wide, None), choice);
    let waits = choose_meanwhile(&object, &wide, Some("unit:a.service"));
    assert_eq!(waits.deciding, Deciding::Nobody, "nor may the one before");
    let trap = bad(FailureKind::Trap, &["file:/etc/b"]);
    assert_eq!(choose_meanwhile(&object, &trap, None), choose(&object, &trap, None, None));
    object.spec.approved = true;
    assert_eq!(choose_meanwhile(&object, &wide, None).deciding, Deciding::Newest);
    object.spec.mode = Mode::Disabled;
    assert_eq!(choose_meanwhile(&object, &wide, None).deciding, Deciding::Nobody);
}

#[test]
fn a_disabled_policy_decides_nothing_whatever_it_is() {
    let mut object = decided(Some(&good()));
    object.spec.mode = Mode::Disabled;
    for newest in [Attempt::Good(good()), bad(FailureKind::Trap, &["file:/etc/a/b"])] {
        let choice = choose(&object, &newest, Some(&good()), None);
        assert_eq!((choice.state, choice.deciding), (State::Disabled, Deciding::Nobody));
    }
}

#[test]
fn rules_that_were_never_good_cost_reboots_for_all_that_they_match() {
    let paths: Vec<String> = (0..1000).map(|n| format!("file:/etc/{n}")).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let rules = Some(Vec::new());
    let object = DisruptionPolicy::new(
        "a",
        DisruptionPolicySpec { rules, ..DisruptionPolicySpec::default() },
    );
    let choice = choose(&object, &bad(FailureKind::InvalidSettings, &paths), None, None);
    assert_eq!((choice.state, reboots(&choice)), (State::Invalid, paths));
    let claims = [claim("file:/etc/a")];
    assert_eq!(reboots(&choose_unreadable(&object, &claims, None)), ["file:/etc/a"]);
    let mut off = object;
    off.spec.mode = Mode::Disabled;
    assert_eq!(choose_unreadable(&off, &claims, None).deciding, Deciding::Nobody);
}

#[test]
fn an_object_that_cannot_be_read_costs_reboots_for_what_it_claimed() {
    let choice = choose_unreadable(&decided(Some(&good())), &[], None);
    assert_eq!(choice.state, State::Invalid);
    assert_eq!(reboots(&choice), ["file:/etc/chrony.conf"]);
    assert_eq!(reboots(&choose_unreadable(&decided(None), &[], None)), [""; 0]);
    let mut off = decided(Some(&good()));
    off.spec.mode = Mode::Disabled;
    assert_eq!(choose_unreadable(&off, &[], None).deciding, Deciding::Nobody);
    // What it is then known for, it is known for also when it can be read again.
    let mut invalid = decided(Some(&good()));
    invalid.status.as_mut().unwrap().state = Some(State::Invalid);
    let choice = choose(&invalid, &bad(FailureKind::Trap, &[]), None, None);
    assert_eq!(reboots(&choice), ["file:/etc/chrony.conf"]);
}

#[test]
fn rules_are_the_same_rules_whatever_carries_them_out() {
    let mut object = decided(Some(&good()));
    let newer = Version { digest: Sha256::of(b"a newer tread"), ..good() };
    let invalid = bad(FailureKind::InvalidSettings, &[]);
    assert_eq!(choose(&object, &invalid, Some(&newer), None).state, State::Failed);
    (object.spec.source, object.spec.rules) = (None, Some(Vec::new()));
    assert_eq!(choose(&object, &invalid, Some(&newer), None).state, State::LastGood);
    let others = Version { settings_digest: Sha256::of(b"[]"), ..newer };
    assert_eq!(choose(&object, &invalid, Some(&others), None).state, State::Invalid);
}

#[test]
fn what_a_bad_module_says_that_it_claims_counts_only_as_far_as_it_is_a_claim() {
    let claims = ["file:etc", "file:/etc/app/a", "file:/etc/\u{1b}[2Jx", "nothing:/at/all", ""];
    let nonsense = bad(FailureKind::BadDescription, &claims);
    let choice = choose(&decided(None), &nonsense, None, None);
    assert_eq!((choice.state, reboots(&choice)), (State::Failed, vec!["file:/etc/app/a"]));
    // A status can be edited, or be that of a newer tread.
    let mut object = decided(Some(&good()));
    let status = object.status.as_mut().unwrap();
    status.claims.insert(0, ClaimStatus::from(&claim("no claim")));
    let missing = bad(FailureKind::Missing, &[]);
    for choice in [choose(&object, &missing, None, None), choose_unreadable(&object, &[], None)] {
        assert_eq!(reboots(&choice), ["file:/etc/chrony.conf"]);
    }
}

#[test]
fn versions_that_fail_one_after_the_other_do_not_pile_up_claims() {
    let mut object = decided(Some(&good()));
    for round in 0..20 {
        let claims: Vec<String> = (0..1000).map(|n| format!("file:/etc/{round}/{n}*a")).collect();
        let claims: Vec<&str> = claims.iter().map(String::as_str).collect();
        let choice = choose(&object, &bad(FailureKind::Trap, &claims), None, None);
        let known = reboots(&choice);
        assert!(known.len() <= 512, "{}", known.len());
        assert_eq!(known[0], "file:/etc/chrony.conf", "what once decided is not pushed out");
        let status = object.status.as_mut().unwrap();
        status.state = Some(choice.state);
        status.claims = known.iter().map(|it| ClaimStatus::from(&claim(it))).collect();
    }
}
