        /// The service that reads the file.
        pub service: String = "@SERVICE@".to_owned(),
        /// Whether it takes a restart: one that has no reload, or that reads the file
        /// only when it starts.
        pub restart: bool = false,
