        /// What must not be added.
        pub forbidden: Vec<String> = vec!["mitigations=off".to_owned()],
