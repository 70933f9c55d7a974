        /// Whether the password may be taken away.
        pub may_remove_password: bool = false,
