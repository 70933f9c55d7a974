
    #[test]
    fn a_comment_needs_nothing_and_a_setting_restarts_the_service() {
        for (before, after, effect) in [
            ("level = 1\n", "# ours\nlevel = 1\n", Effect::None),
            ("level = 1\n", "\n  level = 1\n", Effect::None),
            ("level = 1\n", "level = 2\n", Effect::Restart),
            ("level = 1\n", "", Effect::Restart),
        ] {
            let verdict = test::verdict::<@TYPE@>(test::file(FILE, before, after));
            assert_eq!(verdict.effect(), Some(effect), "{before:?} to {after:?}");
        }
    }

    #[test]
    fn a_file_that_comes_or_goes_restarts_the_service() {
        for change in [test::file_added(FILE, "level = 1\n"), test::file_removed(FILE, "")] {
            assert_eq!(test::verdict::<@TYPE@>(change).effect(), Some(Effect::Restart));
        }
    }

    #[test]
    fn a_reload_is_enough_where_an_admin_says_so() {
        let settings = Settings { reload: true, ..Settings::default() };
        let change = test::file(FILE, "level = 1\n", "level = 2\n");
        let verdicts = test::verdicts::<@TYPE@>(&settings, vec![change], vec![]);
        assert_eq!(verdicts[0].effect(), Some(Effect::Reload));
    }

    #[test]
    fn a_service_that_is_none_is_refused_by_name() {
        let errors = test::settings::<@TYPE@>(r#"{"service": "crond"}"#).err().unwrap();
        assert!(errors[0].starts_with("service: "), "{errors:?}");
    }
