//! Why files cannot be applied, in words, with the way out.

pub(super) fn why_below_link(link: &str) -> String {
    format!(
        "{link} is a link in the same config, and Ignition rejects files below it. Write the path \
         that the link leads to."
    )
}

pub(super) fn why_above(what: &str) -> String {
    format!("It is a file, so that {what} cannot be below it. Remove one of them.")
}

pub(super) fn why_unit(unit: &str) -> String {
    format!(
        "The unit {unit} of the same config (systemd.units) is written to this path, and Ignition \
         rejects a file there. Remove one of them."
    )
}

pub(super) fn why_force() -> &'static str {
    "This file tells OpenShift's operator to write everything again and reboot; as a part of the \
     config it would do so for ever. Remove it from the config, and create it by hand on the node \
     that needs it."
}

pub(super) fn why_nested(above: &str) -> String {
    format!("{above} is a file in the same config, so that no file can be below it. Remove one.")
}

pub(super) fn why_append() -> &'static str {
    "It appends to a file, which cannot be repeated on a running node. \
     Write the whole file with `contents` instead of `append`."
}

pub(super) fn why_mode(mode: u32) -> String {
    let octal = u32::from_str_radix(&mode.to_string(), 8).ok().filter(|meant| *meant <= 0o777);
    let way_out = match octal {
        Some(meant) => format!("If 0{mode} was meant: in JSON and Ignition that is {meant}."),
        None => "Leave out the setuid, setgid and sticky bits.".to_owned(),
    };
    format!(
        "The mode {mode} (octal {mode:o}) is more than 0777, the most that a file can have here. {way_out}"
    )
}

pub(super) fn why_foreign() -> &'static str {
    "Its contents would be fetched from elsewhere, and tread applies only what the config itself \
     holds. Put the contents into the config, as a data URL."
}
