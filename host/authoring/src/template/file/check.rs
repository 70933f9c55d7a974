    fn check(settings: &Settings) -> Result<(), Vec<String>> {
        if settings.service.ends_with(".service") {
            return Ok(());
        }
        Err(vec!["service: expected a complete unit name such as @SERVICE@".to_owned()])
    }

