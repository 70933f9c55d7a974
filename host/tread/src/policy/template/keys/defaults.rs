            refused_keys: vec!["ssh-dss".to_owned()],
