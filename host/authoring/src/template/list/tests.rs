
    #[test]
    fn what_is_forbidden_is_refused_and_the_rest_left_to_others() {
        for (before, after, effect) in [
            (&["a"][..], &["a", "mitigations=off"][..], Some(Effect::Refuse)),
            (&["a"], &["a", "b"], None),
            (&["mitigations=off"], &["a", "mitigations=off"], None),
        ] {
            let verdict = test::verdict::<@TYPE@>(test::list(LIST, before, after));
            assert_eq!(verdict.effect(), effect, "{before:?} to {after:?}");
        }
    }
