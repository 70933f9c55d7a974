        /// Types of SSH keys that must not be added.
        pub refused_keys: Vec<String> = vec!["ssh-dss".to_owned()],
