            service: "@SERVICE@".to_owned(),
            reload: false,
