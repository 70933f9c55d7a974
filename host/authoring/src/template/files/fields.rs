        /// The services that take a restart where their file changes: those that have no
        /// reload, or that read the file only when they start.
        pub restart: Vec<String> = Vec::new(),
