            service: "@SERVICE@".to_owned(),
            restart: false,
