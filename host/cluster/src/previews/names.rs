//! What DisruptionPlans are called.

use crate::pools::Pool;
use tread_kube::api::disruption_plan::Cause;
use tread_model::digest::Fields;

/// What a name may have before its digest.
pub(super) const LONGEST_NAME: usize = 200;

/// The name of the plan for a cause in a pool whose nodes had `since`.
pub fn plan_name(pool: &Pool, cause: &Cause, since: &str) -> String {
    let mut fields = Fields::new("tread plan name 1");
    for text in [pool.uid.as_str(), &cause.kind, &cause.name, since] {
        fields.field(text.as_bytes());
    }
    fields.field(cause.event.as_str().as_bytes());
    let digest = fields.finish().hex().get(..8).unwrap_or_default().to_owned();
    let kind = match cause.kind.as_str() {
        "MachineConfig" => "mc".to_owned(),
        "MachineConfigPool" => "mcp".to_owned(),
        "ImageContentSourcePolicy" => "icsp".to_owned(),
        "ImageDigestMirrorSet" => "idms".to_owned(),
        "ImageTagMirrorSet" => "itms".to_owned(),
        other => other.to_lowercase(),
    };
    let mut name = format!("{}.{kind}.{}", pool.name, cause.name);
    name.truncate(name.floor_char_boundary(LONGEST_NAME));
    let name = name.trim_end_matches(['.', '-']);
    format!("{name}.{digest}")
}
