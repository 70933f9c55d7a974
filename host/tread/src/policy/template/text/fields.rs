    /// How names start that must not be set.
    pub forbidden_names: Vec<String>,
