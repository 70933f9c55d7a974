        /// How names start that must not be set.
        pub forbidden_names: Vec<String> =
            ["realtime", "untrusted.example.com/"].map(str::to_owned).to_vec(),
