            forbidden: vec!["mitigations=off".to_owned()],
