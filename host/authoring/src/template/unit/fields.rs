        /// Keys of a unit that may change without a restart: `SECTION.KEY`.
        pub ignored_keys: Vec<String> =
            ["Unit.Description", "Unit.Documentation"].map(str::to_owned).to_vec(),
