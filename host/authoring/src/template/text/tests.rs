
    #[test]
    fn what_is_forbidden_is_refused_by_name_and_the_rest_left_to_others() {
        for (before, after, effect) in [
            ("default", "realtime", Some(Effect::Refuse)),
            ("realtime", "default", None),
            ("registry.example.com/os", "untrusted.example.com/os", Some(Effect::Refuse)),
        ] {
            let verdict = test::verdict::<@TYPE@>(test::text(TEXT, before, after));
            assert_eq!(verdict.effect(), effect, "{before} to {after}");
        }
    }
