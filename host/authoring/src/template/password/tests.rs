
    #[test]
    fn a_new_password_needs_nothing_and_taking_it_away_is_refused() {
        let token = |number: u8| State::Digest(format!("secret:{number}"));
        for (after, effect) in [(token(2), Effect::None), (State::Absent, Effect::Refuse)] {
            let change = Change { id: PASSWORD.to_owned(), before: token(1), after };
            assert_eq!(test::verdict::<@TYPE@>(change).effect(), Some(effect));
        }
    }
