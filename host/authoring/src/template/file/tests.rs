
    fn verdict_on(change: Change, restart: bool) -> Verdict {
        let settings = Settings { restart, ..Settings::default() };
        test::verdicts::<@TYPE@>(&settings, vec![change], vec![]).swap_remove(0)
    }

    #[test]
    fn a_comment_needs_nothing_and_a_setting_the_service() {
        for (before, after, needed) in [
            ("level = 1\n", "# ours\nlevel = 1\n", false),
            ("level = 1\n", "\nlevel = 1  \n", false),
            ("a:\n  b: 1\nc: 2\n", "a:\n  b: 1\n  c: 2\n", true),
            ("level = 1\n", "level = 2\n", true),
            ("level = 1\n", "", true),
        ] {
            for (restart, effect) in [(false, Effect::Reload), (true, Effect::Restart)] {
                let verdict = verdict_on(test::file(FILE, before, after), restart);
                let effect = if needed { effect } else { Effect::None };
                assert_eq!(verdict.effect(), Some(effect), "{before:?} to {after:?}");
            }
        }
    }

    #[test]
    fn a_file_that_comes_or_goes_is_read_anew() {
        for change in [test::file_added(FILE, "level = 1\n"), test::file_removed(FILE, "")] {
            assert_eq!(verdict_on(change, false).effect(), Some(Effect::Reload));
        }
    }

    #[test]
    fn a_service_that_is_none_is_refused_by_name() {
        let errors = test::settings::<@TYPE@>(r#"{"service": "crond"}"#).err().unwrap();
        assert!(errors[0].starts_with("service: "), "{errors:?}");
    }
