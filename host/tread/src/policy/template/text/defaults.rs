            forbidden_names: ["realtime", "untrusted.example.com/"].map(str::to_owned).to_vec(),
