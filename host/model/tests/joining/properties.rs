//! What holds whatever is given.

use proptest::prelude::*;
use tread_model::joining::{
    Booted, Claim, Id, Invalid, Key, Mark, Tokens, asked, claim_in, claim_of, in_version,
    with_claim, without_claim,
};

fn keys() -> [Key; 2] {
    [Key::of([1; 32]), Key::of([2; 32])]
}

prop_compose! {
    fn claims()(pool in "[a-f0-9-]{0,36}", config in ".{0,40}", issued in 0..(1_u64 << 40), id: [u8; 8])
        -> Claim {
        Claim { pool: Mark::of_pool(&pool), config: Mark::of_config(&config), issued, id: Id(id) }
    }
}

/// What the API server takes as the value of a taint.
fn is_value(text: &str) -> bool {
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.len() <= 63
        && ends(text.chars().next())
        && ends(text.chars().last())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

proptest! {
    #[test]
    fn a_claim_is_the_value_of_a_taint_and_says_what_was_signed(claim in claims()) {
        let text = claim.signed(&keys()[1]);
        prop_assert!(is_value(&text), "{text}");
        prop_assert_eq!(Claim::read(&text, &keys()), Ok(claim));
        prop_assert_eq!(Claim::read(&text, &keys()[..1]), Err(Invalid::Signature));
        prop_assert_eq!(Claim::read(&text, &[]), Err(Invalid::Signature));
    }

    #[test]
    fn no_altered_claim_is_one(claim in claims(), at in 0..62_usize, c in "[-A-Za-z0-9_.]", cut: bool) {
        let text = claim.signed(&keys()[0]);
        let mut altered: Vec<char> = text.chars().collect();
        match cut {
            true => drop(altered.remove(at)),
            false => altered[at] = c.chars().next().unwrap(),
        }
        let altered: String = altered.into_iter().collect();
        prop_assert_eq!(Claim::read(&altered, &keys()).is_ok(), altered == text, "{}", altered);
        let both = format!("{altered}{text}");
        prop_assert!(Claim::read(&both, &keys()).is_err());
    }

    #[test]
    fn parts_of_two_claims_make_no_third(one in claims(), other in claims(), at in 1..61_usize) {
        let [one, other] = [one, other].map(|claim| claim.signed(&keys()[0]));
        let mixed: String = one.chars().take(at).chain(other.chars().skip(at)).collect();
        let is_one = mixed == one || mixed == other;
        prop_assert_eq!(Claim::read(&mixed, &keys()).is_ok(), is_one, "{}", mixed);
    }

    #[test]
    fn nothing_that_is_read_panics(text in ".{0,80}", bytes: Vec<u8>, minor: Option<u8>) {
        let _ = Claim::read(&text, &keys());
        let _ = Claim::read(&format!("1{text}t"), &keys());
        let _ = asked(&text);
        let _ = Booted::read(&bytes);
        let _ = with_claim(&text, "CLAIM");
        let _ = without_claim(&text);
        let _ = without_claim(&format!("tread.dev/joining{text}"));
        let mut config = serde_json::from_str(&text).unwrap_or_default();
        let _ = in_version(&mut config, minor);
    }

    #[test]
    fn whatever_a_claim_is_written_into_is_found_again(lines in "(a: 1\n|b: \\[x, y\\]\n|c:\n- d\n|e: \\|\n  f\n|# g\n){0,3}") {
        let text = format!("kind: KubeletConfiguration\n{lines}");
        if let Ok(written) = with_claim(&text, "1CLAIM-_t") {
            prop_assert_eq!(claim_in(&written), Some("1CLAIM-_t"));
            prop_assert_eq!(without_claim(&written), Some(text));
        }
    }

    #[test]
    fn a_token_is_admitted_and_nothing_else(first: [u8; 32], second: [u8; 32], other in "\\PC{0,60}") {
        prop_assume!(first != second);
        let mut tokens = Tokens::fresh("uid", first);
        let former = tokens.newest().to_owned();
        prop_assert!(tokens.admit(&former) && !tokens.admit("") && !tokens.admit(&other));
        tokens.exchange(second).unwrap();
        prop_assert!(tokens.admit(&former) && tokens.admit(tokens.newest()) && !tokens.admit(&other));
        prop_assert!(tokens.exchange(first).is_err(), "there are two at most");
        prop_assert!(tokens.end_former() && !tokens.end_former());
        prop_assert!(!tokens.admit(&former) && tokens.admit(tokens.newest()));
        let read: Tokens = serde_json::from_str(&serde_json::to_string(&tokens).unwrap()).unwrap();
        prop_assert_eq!(read, tokens);
    }
}

#[test]
fn a_node_says_one_claim_or_none_that_counts() {
    let taint = |value, effect| ("tread.dev/joining", value, effect);
    let other = ("node.kubernetes.io/not-ready", None, "NoSchedule");
    for (taints, claim) in [
        (vec![], None),
        (vec![other], None),
        (vec![other, taint(Some("a"), "NoSchedule")], Some("a")),
        (vec![taint(None, "NoSchedule")], Some("")),
        // It is held all the same, and joins by none of them.
        (vec![taint(Some("a"), "NoExecute")], Some("")),
        (vec![taint(Some("a"), "NoSchedule"), taint(Some("b"), "NoSchedule")], Some("")),
        (vec![taint(Some("a"), "NoSchedule"), taint(Some("a"), "NoExecute")], Some("")),
    ] {
        assert_eq!(claim_of(taints.clone()), claim, "{taints:?}");
    }
}

#[test]
fn a_mark_is_read_as_it_is_shown() {
    for mark in [Mark::of_pool("uid"), Mark::of_config("rendered")] {
        assert_eq!(Mark::parse(&mark.to_string()), Some(mark));
    }
    for text in
        ["", "-", "+123456789abcdef", "0123456789ABCDEF", "0123456789abcde", "é123456789abcd"]
    {
        assert_eq!(Mark::parse(text), None, "{text}");
    }
}

#[test]
fn tokens_that_were_emptied_by_hand_admit_nobody() {
    for text in [
        r#"{"pool":"uid","newest":""}"#,
        r#"{"pool":"uid","newest":"a","former":""}"#,
        r#"{"pool":"uid","newest":"","former":"a"}"#,
    ] {
        let tokens: Tokens = serde_json::from_str(text).unwrap();
        assert!(!tokens.admit("") && !tokens.admit("b"), "{text}");
    }
    assert!(serde_json::from_str::<Key>("\"AAAA\"").is_err());
    assert_eq!(format!("{:?}", Key::of([7; 32])), "Key(…)");
}
