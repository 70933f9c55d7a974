//! What holds the image that a machine booted from against the limit, at its first boot and
//! before its kubelet: a unit with a script, as a part of what the machine is served; and what
//! machines report by it.

use super::file::is_taken;
use crate::boot_images::{Limits, Reason, shown};
use crate::mirrors::data_url;
use crate::object_name::is_name;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// The unit.
pub const UNIT: &str = "tread-first-boot.service";
/// The script that it runs.
pub const SCRIPT: &str = "/etc/tread/first-boot.sh";
/// What the script goes by. The unit runs as long as this is there.
pub const SETTINGS: &str = "/etc/tread/first-boot.conf";
/// Whom the script trusts when it reports.
pub const AUTHORITY: &str = "/etc/tread/first-boot.pem";
/// What makes the kubelet wait for the unit, and not start where it fails.
pub const REQUIRED: &str = "/etc/systemd/system/kubelet.service.requires/tread-first-boot.service";

const UNIT_PATH: &str = "/etc/systemd/system/tread-first-boot.service";
const UNIT_TEXT: &str = include_str!("first_boot/first-boot.service");
const SCRIPT_TEXT: &str = include_str!("first_boot/first-boot.sh");

/// What a machine may say of its first boot has no more bytes.
pub const LONGEST: usize = 1024;

/// What a machine's image is held against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstBoot {
    /// What the image has to be.
    pub limits: Limits,
    /// Why a machine whose image is too old joins all the same; none: its kubelet does not
    /// start.
    pub passing: Option<&'static str>,
    /// The pool.
    pub pool: String,
    /// Whom it reports to; none: there is nobody.
    pub reports_to: Option<ReportsTo>,
}

/// Whom a machine reports to.
#[derive(Clone, PartialEq, Eq)]
pub struct ReportsTo {
    /// Where: `HOST:PORT`.
    pub address: String,
    /// Whom to trust there, as PEM.
    pub authority: String,
    /// The token of the pool with which it asked for its config.
    pub token: String,
}

/// It holds a secret.
impl std::fmt::Debug for ReportsTo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReportsTo").field("address", &self.address).finish_non_exhaustive()
    }
}

/// The path at which machines of a pool report.
pub fn path(pool: &str) -> String {
    format!("/first-boot/{pool}")
}

/// Adds the unit to the config (Ignition) of a spec; the error is a place that is taken.
pub fn add(spec: &mut Value, first_boot: &FirstBoot) -> Result<(), &'static str> {
    let Some(spec) = spec.as_object_mut() else { return Ok(()) };
    let config = spec.entry("config").or_insert_with(|| json!({"ignition": {"version": "3.0.0"}}));
    for place in [SCRIPT, SETTINGS, AUTHORITY, REQUIRED, UNIT_PATH] {
        if is_taken(config, &["directories", "files", "links"], place) {
            return Err(place);
        }
    }
    let named = config.pointer("/systemd/units").and_then(Value::as_array);
    if named.into_iter().flatten().any(|unit| unit.get("name").is_some_and(|it| it == UNIT)) {
        return Err(UNIT_PATH);
    }
    let file = |path: &str, mode: u32, text: &str| json!({"path": path, "mode": mode, "overwrite": true, "contents": {"source": data_url(text)}});
    let mut files = vec![
        file(SCRIPT, 0o755, SCRIPT_TEXT),
        // It has the token.
        file(SETTINGS, 0o600, &settings(first_boot)),
    ];
    if let Some(reports_to) = &first_boot.reports_to {
        files.push(file(AUTHORITY, 0o644, &reports_to.authority));
    }
    let link = json!({"path": REQUIRED, "target": UNIT_PATH, "overwrite": true});
    for (kind, name, entries) in [
        ("storage", "files", files),
        ("storage", "links", vec![link]),
        ("systemd", "units", vec![json!({"name": UNIT, "contents": UNIT_TEXT})]),
    ] {
        if let Some(list) = list(config, kind, name) {
            list.extend(entries);
        }
    }
    Ok(())
}

fn list<'v>(config: &'v mut Value, kind: &str, name: &str) -> Option<&'v mut Vec<Value>> {
    let within = config.as_object_mut()?.entry(kind).or_insert_with(|| Value::Object(Map::new()));
    let list = within.as_object_mut()?.entry(name).or_insert_with(|| Value::Array(Vec::new()));
    list.as_array_mut()
}

/// What the script goes by: lines that it reads, and does not run.
fn settings(first_boot: &FirstBoot) -> String {
    let FirstBoot { limits, passing, pool, reports_to } = first_boot;
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{name}={value}");
    };
    line("STOPS", if passing.is_none() { "yes" } else { "no" });
    line("PASSING", passing.unwrap_or_default());
    line("LIMIT", &limits.in_words());
    line("OPENSHIFT", &limits.openshift.map(|it| it.to_string()).unwrap_or_default());
    line("RHEL", &limits.rhel.map(|it| it.to_string()).unwrap_or_default());
    line("MAJOR", &limits.least_major.map(|it| it.to_string()).unwrap_or_default());
    line("POOL", pool);
    if let Some(ReportsTo { address, token, .. }) = reports_to {
        line("URL", &format!("https://{address}{}", path(pool)));
        line("TOKEN", token);
    }
    text
}

/// What a machine says of its first boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstBootReport {
    /// What it calls itself.
    pub machine: String,
    /// What it booted from.
    pub image: String,
    /// What is wrong with that.
    pub reason: Reason,
    /// Whether it does not join.
    pub stopped: bool,
}

#[derive(Deserialize)]
struct Said {
    machine: String,
    #[serde(default)]
    image: String,
    reason: String,
    #[serde(default)]
    stopped: bool,
}

impl FirstBootReport {
    /// Reads what anybody with the pool's token may have sent; the error is a sentence.
    pub fn read(bytes: &[u8]) -> Result<FirstBootReport, &'static str> {
        let read = || serde_json::from_slice::<Said>(bytes).ok();
        let said = Some(bytes).filter(|it| it.len() <= LONGEST).and_then(|_| read());
        let said =
            said.ok_or("expected what a first boot says: machine, image, reason, stopped")?;
        let machine = said.machine.to_ascii_lowercase();
        if !is_name(&machine) {
            return Err("the machine has no name that a node could have");
        }
        let words = [
            Reason::BelowLimit,
            Reason::TooManyMajorsBehind,
            Reason::VersionUnknown,
            Reason::VersionUnreadable,
        ];
        let reason = words.into_iter().find(|word| word.as_str() == said.reason);
        let reason = reason.ok_or("the reason is none that a first boot gives")?;
        Ok(FirstBootReport { machine, image: shown(&said.image), reason, stopped: said.stopped })
    }
}
