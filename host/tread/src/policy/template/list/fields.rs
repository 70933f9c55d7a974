    /// What must not be added.
    pub forbidden: Vec<String>,
