    let Some(service) = service_of(change.name()) else {
        return Verdict::abstain_because("nobody has said yet which service reads it");
    };
