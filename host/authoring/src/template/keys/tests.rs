
    #[test]
    fn a_key_needs_nothing_unless_its_type_is_refused() {
        for (before, after, effect) in [
            (&["ssh-ed25519 A"][..], &["ssh-ed25519 A", "ssh-ed25519 B"][..], Effect::None),
            (&["ssh-dss A"], &["ssh-ed25519 B"], Effect::None),
            (&["ssh-ed25519 A"], &["ssh-dss B"], Effect::Refuse),
            (&["ssh-ed25519 A"], &["from=\"10.0.0.1\" ssh-dss B"], Effect::Refuse),
        ] {
            let verdict = test::verdict::<@TYPE@>(test::list(KEYS, before, after));
            assert_eq!(verdict.effect(), Some(effect), "{after:?}");
        }
    }
