            ignored_keys: ["Unit.Description", "Unit.Documentation"].map(str::to_owned).to_vec(),
