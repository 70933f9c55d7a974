    /// The service that reads the file.
    pub service: String,
    /// Whether a reload is enough for it.
    pub reload: bool,
