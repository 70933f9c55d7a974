    fn check(settings: &Settings) -> Result<(), Vec<String>> {
        let known = |name: &String| SERVICES.iter().any(|(_, service)| *service == Some(name.as_str()));
        let unknown = settings.restart.iter().filter(|name| !known(name));
        let errors: Vec<String> =
            unknown.map(|name| format!("restart: {name} reads none of the files")).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

