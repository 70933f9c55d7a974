
    #[test]
    fn a_description_needs_nothing_and_a_command_starts_it_anew() {
        let old = "[Unit]\nDescription=a\n[Service]\nExecStart=/bin/a\n";
        for (new, effect) in [
            ("[Unit]\nDescription=b\n[Service]\nExecStart=/bin/a\n", Some(Effect::None)),
            ("[Unit]\nDescription=a\n[Service]\nExecStart=/bin/b\n", @UNITEFFECT@),
        ] {
            let verdict = test::verdict::<@TYPE@>(test::unit(UNIT, old, new));
            assert_eq!(verdict.effect(), effect, "{new}");
        }
    }

    #[test]
    fn a_unit_that_comes_is_left_to_others() {
        let mut change = test::unit(UNIT, "", "[Service]\nExecStart=/bin/a\n");
        change.before = State::Absent;
        assert_eq!(test::verdict::<@TYPE@>(change).effect(), None);
    }

    #[test]
    fn a_unit_file_that_takes_the_place_of_the_systems_own_is_left_to_others() {
        let comes = || {
            let mut change = test::unit(UNIT, "", "[Unit]\nDescription=a\n");
            if let State::Unit(unit) = &mut change.before {
                unit.contents = Content::Absent;
            }
            change
        };
        assert_eq!(test::verdict::<@TYPE@>(comes()).effect(), None);
        let mut goes = comes();
        std::mem::swap(&mut goes.before, &mut goes.after);
        assert_eq!(test::verdict::<@TYPE@>(goes).effect(), None);
    }

    #[test]
    fn the_order_of_words_counts_over_the_ends_of_lines() {
        let after = |unit: &str| format!("[Unit]\nDescription=a \\\\\nAfter={unit}\n");
        let change = test::unit(UNIT, &after("one.service"), &after("other.service"));
        assert_eq!(test::verdict::<@TYPE@>(change).effect(), @UNITEFFECT@);
        let unit = |words: &str| format!("[Service]\nExecStart=/bin/a \\\n{words}\n");
        let (one, other) = (unit("# ours\n/src \\\n/dst"), unit("/dst \\\n/src"));
        let verdict = test::verdict::<@TYPE@>(test::unit(UNIT, &one, &other));
        assert_eq!(verdict.effect(), @UNITEFFECT@);
        let verdict = test::verdict::<@TYPE@>(test::unit(UNIT, &one, &unit("/src \\\n/dst")));
        assert_eq!(verdict.effect(), Some(Effect::None));
    }
