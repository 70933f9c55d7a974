
    /// A file of each claim, and the service that reads it.
@FILES@
    #[test]
    fn each_file_is_for_the_service_that_reads_it() {
        let all = SERVICES.iter().filter_map(|(_, service)| *service);
        let all: Vec<String> = all.map(str::to_owned).collect();
        for (path, service) in FILES {
            let verdict_on = |after: &str, restart: &[String]| {
                let settings = Settings { restart: restart.to_vec(), ..Settings::default() };
                let change = test::file(path, "level = 1\n", after);
                test::verdicts::<@TYPE@>(&settings, vec![change], vec![]).swap_remove(0)
            };
            let Some(service) = *service else {
                assert_eq!(verdict_on("level = 2\n", &all).effect(), None, "{path}");
                continue;
            };
            assert_eq!(verdict_on("level = 2\n", &[]).actions(), [Action::reload(service)], "{path}");
            assert_eq!(verdict_on("level = 2\n", &all).actions(), [Action::restart(service)], "{path}");
            assert_eq!(verdict_on("# ours\nlevel = 1\n", &all).effect(), Some(Effect::None), "{path}");
        }
    }

    #[test]
    fn a_service_that_reads_none_of_the_files_is_refused_by_name() {
        let errors = test::settings::<@TYPE@>(r#"{"restart": ["cron"]}"#).err().unwrap();
        assert!(errors[0].starts_with("restart: cron"), "{errors:?}");
    }
