
    #[test]
    fn a_new_password_needs_nothing_and_taking_it_away_is_refused() {
        let digest = |text: &str| State::Digest(format!("sha256:{text}"));
        for (after, effect) in [(digest("b"), Effect::None), (State::Absent, Effect::Refuse)] {
            let change = Change { id: PASSWORD.to_owned(), before: digest("a"), after };
            assert_eq!(test::verdict::<@TYPE@>(change).effect(), Some(effect));
        }
    }
