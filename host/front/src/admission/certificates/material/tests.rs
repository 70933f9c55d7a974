use super::super::purpose::Purpose;
use super::*;

const NOW: u64 = 1_800_000_000;
const DAY: u64 = 24 * 3600;

fn names() -> Vec<String> {
    vec!["tread.tread-system.svc".to_owned(), "127.0.0.1".to_owned()]
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn written(kept: Option<&Material>, trusted: bool, now: u64) -> (Material, &'static str) {
    match due(kept, &names(), trusted, now, &Lives::default()).unwrap() {
        Due::Write(material, why) => (*material, why),
        Due::NothingUntil(time) => panic!("nothing is due at {now} before {time}"),
    }
}

fn idle(kept: &Material, trusted: bool, now: u64) -> u64 {
    match due(Some(kept), &names(), trusted, now, &Lives::default()).unwrap() {
        Due::NothingUntil(time) => time,
        Due::Write(_, why) => panic!("at {now}: {why}"),
    }
}

/// Whether a client with this bundle takes what a server with the other serves.
fn takes(client: &Material, server: &Material, now: u64) -> bool {
    let mixed = Material { authorities: client.authorities.clone(), ..server.clone() };
    mixed.certified(&provider(), now).is_ok()
}

#[test]
fn what_is_made_is_good_for_its_names_and_for_its_time() {
    let (first, _) = written(None, true, NOW);
    assert!(first.certified(&provider(), NOW).is_ok());
    // Clocks differ.
    assert!(first.certified(&provider(), NOW - 1800).is_ok());
    assert!(first.certified(&provider(), NOW - 7200).is_err());
    assert!(first.certified(&provider(), NOW + 181 * DAY).is_err());
    let other = Material { names: vec!["kubernetes.default.svc".to_owned()], ..first.clone() };
    assert!(other.certified(&provider(), NOW).is_err());
    let (second, _) = written(None, true, NOW);
    assert!(!takes(&second, &first, NOW));
    let mixed = Material { key: second.key.clone(), ..first };
    assert!(mixed.certified(&provider(), NOW).is_err());
}

#[test]
fn at_two_thirds_of_its_life_the_servers_certificate_is_made_anew_by_the_same_authority() {
    let (first, _) = written(None, true, NOW);
    assert_eq!(idle(&first, true, NOW), NOW + 120 * DAY);
    let (second, why) = written(Some(&first), true, NOW + 120 * DAY);
    assert_eq!(why, "it is in its last third");
    assert_eq!(second.bundle(), first.bundle());
    assert_ne!(second.certificate, first.certificate);
    assert!(takes(&first, &second, NOW + 120 * DAY));
}

#[test]
fn the_authority_is_exchanged_without_a_moment_in_which_a_client_and_a_server_disagree() {
    let (mut kept, _) = written(None, true, NOW);
    let first = kept.clone();
    let mut now = NOW;
    let mut seen = Vec::new();
    let mut exchanged = 0;
    // Four years, in which clients and other servers learn of each change late.
    while now < NOW + 1460 * DAY {
        match due(Some(&kept), &names(), true, now, &Lives::default()).unwrap() {
            Due::NothingUntil(time) => {
                assert!(time > now);
                now = time;
            }
            Due::Write(next, why) => {
                assert!(takes(&kept, &next, now), "an old client, a new server: {why}");
                assert!(takes(&next, &kept, now), "a new client, an old server: {why}");
                assert!(next.authorities.len() <= 2);
                exchanged += usize::from(why == "the new authority is known");
                seen.push(why);
                kept = *next;
            }
        }
    }
    assert_eq!(exchanged, 2, "{seen:?}");
    assert!(!takes(&first, &kept, now), "the first authority is trusted for ever");
    assert_eq!(seen.iter().filter(|why| why.contains("signs nothing any more")).count(), 2);
}

/// Machines are told once whom to trust, in their user data.
#[test]
fn user_data_of_the_first_day_is_good_for_ten_years_and_one_more() {
    const YEAR: u64 = 365 * DAY;
    let lives = Purpose::Machines.lives();
    let (mut now, mut kept) = (NOW, None);
    let mut first = None;
    let due_now = |kept: Option<&Material>, now| due(kept, &names(), true, now, &lives).unwrap();
    // Nine years and eleven months.
    let almost_ten = NOW + 10 * YEAR - 30 * DAY;
    let signs = loop {
        match due_now(kept.as_ref(), now) {
            Due::NothingUntil(time) => {
                assert!(kept.as_ref().unwrap().ends() > now);
                if now <= almost_ten && time > almost_ten {
                    let (first, kept) = (first.as_ref().unwrap(), kept.as_ref().unwrap());
                    assert_eq!(Material::bundle(first), Material::bundle(kept));
                    assert!(takes(first, kept, almost_ten));
                }
                now = time;
            }
            Due::Write(_, "the new authority is known") => break now,
            Due::Write(next, why) => {
                let first = first.get_or_insert_with(|| (*next).clone());
                assert!(takes(first, &next, now), "at {now}: {why}");
                kept = Some(*next);
            }
        }
    };
    // User data that is made meanwhile has both.
    let (kept, first) = (kept.unwrap(), first.unwrap());
    assert_eq!(kept.authorities.len(), 2);
    assert_eq!(signs, NOW + 11 * YEAR);
    // Also for another name it is the one that machines know, as long as that has to hold.
    let other = ["other.example".to_owned()];
    match due(Some(&kept), &other, true, signs - DAY, &lives).unwrap() {
        Due::Write(next, why) => assert!(takes(&first, &next, signs - DAY), "{why}"),
        Due::NothingUntil(time) => panic!("nothing before {time}"),
    }
}

#[test]
fn a_new_authority_does_not_sign_before_clients_were_told_of_it() {
    let (first, _) = written(None, true, NOW);
    let (mut kept, mut now) = (first, NOW);
    while kept.authorities.len() == 1 {
        match due(Some(&kept), &names(), true, now, &Lives::default()).unwrap() {
            Due::NothingUntil(time) => now = time,
            Due::Write(next, _) => kept = *next,
        }
    }
    let hour = now + 3600;
    assert!(idle(&kept, false, hour) > hour, "they were not told");
    assert!(idle(&kept, true, now + 60) > now + 60, "they were told a minute ago");
    let (next, why) = written(Some(&kept), true, hour);
    assert_eq!(why, "the new authority is known");
    assert_eq!(next.bundle(), kept.bundle());
    // Whatever clients know, something that has ended helps nobody.
    let (_, why) = written(Some(&kept), false, kept.dates.ends);
    assert_eq!(why, "it had ended");
}

#[test]
fn after_years_without_tread_all_is_made_anew() {
    let (first, _) = written(None, true, NOW);
    let (second, why) = written(Some(&first), true, NOW + 3000 * DAY);
    assert_eq!(why, "the authority had ended");
    assert!(second.certified(&provider(), NOW + 3000 * DAY).is_ok());
    let (third, why) = written(Some(&first), true, NOW + 200 * DAY);
    assert_eq!(why, "it had ended");
    assert_eq!(third.bundle(), first.bundle());
}

#[test]
fn by_a_clock_that_is_behind_what_is_made_later_is_served_and_nothing_of_it_is_made_anew() {
    for lives in [Lives::default(), Purpose::Machines.lives()] {
        let Due::Write(first, _) = due(None, &names(), true, NOW, &lives).unwrap() else {
            panic!("nothing is due");
        };
        for behind in [NOW - 3600, NOW - 2 * DAY, NOW - 3000 * DAY, 0] {
            assert!(first.served(&provider(), behind).is_ok(), "{behind}");
            match due(Some(&first), &names(), true, behind, &lives).unwrap() {
                Due::NothingUntil(time) => assert!(time > behind),
                Due::Write(_, why) => panic!("at {behind}: {why}"),
            }
            // Whoever renames it makes another certificate, by the same authority.
            let other = ["other.example".to_owned()];
            match due(Some(&first), &other, true, behind, &lives).unwrap() {
                Due::Write(next, _) => assert_eq!(next.bundle(), first.bundle()),
                Due::NothingUntil(time) => panic!("nothing at {behind} before {time}"),
            }
        }
        // What has ended is not served by any clock.
        assert!(first.served(&provider(), first.ends() + 1).is_err());
        let mixed = Material { names: vec!["kubernetes.default.svc".to_owned()], ..*first };
        assert!(mixed.served(&provider(), NOW - 2 * DAY).is_err());
    }
}

#[test]
fn other_names_need_another_certificate() {
    let (first, _) = written(None, true, NOW);
    let other = vec!["tread.elsewhere.svc".to_owned()];
    let Due::Write(next, why) = due(Some(&first), &other, true, NOW, &Lives::default()).unwrap()
    else {
        panic!("nothing is due");
    };
    assert_eq!(why, "it is for other names");
    assert!(next.certified(&provider(), NOW).is_ok());
    assert_eq!(next.bundle(), first.bundle());
}

#[test]
fn keys_are_not_shown() {
    let (first, _) = written(None, true, NOW);
    assert!(!format!("{first:?}").contains("PRIVATE"));
}

#[test]
fn dates_that_somebody_spoilt_are_made_anew_and_never_computed_with() {
    let (first, _) = written(None, true, NOW);
    let whole = serde_json::to_value(&first).unwrap();
    for place in ["/dates", "/authorities/0/dates"] {
        for (made, ends) in
            [(0, u64::MAX), (u64::MAX, u64::MAX), (NOW, LATEST + 1), (NOW + 2, NOW + 1)]
        {
            let mut spoilt = whole.clone();
            *spoilt.pointer_mut(place).unwrap() = serde_json::json!({"made": made, "ends": ends});
            let spoilt: Material = serde_json::from_value(spoilt).unwrap();
            let (next, why) = written(Some(&spoilt), true, NOW);
            assert_eq!(why, "its dates were spoilt", "{place} {made} {ends}");
            assert!(next.certified(&provider(), NOW).is_ok());
            // Also where it is for other names, and has to be signed.
            let renamed = Material { names: Vec::new(), ..spoilt };
            assert_eq!(written(Some(&renamed), true, NOW).1, "its dates were spoilt");
        }
    }
}

#[test]
fn spoilt_dates_of_the_authority_that_still_signs_are_made_anew_too() {
    let lives = Lives::default();
    let (mut kept, _) = written(None, true, NOW);
    kept.add_authority(NOW, &lives).unwrap();
    let [_, before] = kept.authorities.as_slice() else { panic!("{kept:?}") };
    assert_eq!((&kept.signed_by, kept.key_before.is_some()), (&before.name, true));
    for (made, ends) in [(0, u64::MAX), (u64::MAX, u64::MAX), (NOW, LATEST + 1), (NOW + 2, NOW + 1)]
    {
        let mut spoilt = kept.clone();
        spoilt.authorities[1].dates = Dates { made, ends };
        for names in [names(), Vec::new()] {
            let spoilt = Material { names, ..spoilt.clone() };
            // By any clock, also one by which the server's certificate is over.
            for now in [NOW, NOW + 150 * DAY, NOW + 200 * DAY] {
                let (next, why) = written(Some(&spoilt), true, now);
                assert_eq!(why, "its dates were spoilt", "{made} {ends} {now}");
                assert!(next.certified(&provider(), now).is_ok());
            }
        }
    }
}
