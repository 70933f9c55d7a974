//! What is said of a request that makes machines whose nodes will stray. Nothing is refused.

use super::foretold::foretell;
use super::machines::scene;
use super::ways::ways;
use crate::boot_images;
use crate::boot_images::admit::{is_named, made_up, more_machines};
use crate::plans::Previewer;
use tread_kube::api::machines::MACHINE_SET;
use tread_kube::review::Asked;

/// The API server passes no longer warning on.
const LONGEST_WARNING: usize = 256;

/// The lines that are said of a request; there may be none.
pub async fn warnings(
    previewer: &Previewer,
    known: &boot_images::Known,
    asked: &Asked,
) -> Vec<String> {
    if (MACHINE_SET.group, MACHINE_SET.plural) != (asked.group.as_str(), asked.resource.as_str()) {
        return Vec::new();
    }
    let Some(known) = known.now().filter(|_| previewer.is_ready()) else { return Vec::new() };
    let facts = &known.0;
    let Some((key, machine)) = more_machines(facts, asked, &MACHINE_SET) else { return Vec::new() };
    let cluster = previewer.snapshot();
    let Some(foretold) = foretell(&key, &machine, &scene(&cluster, facts)) else {
        return Vec::new();
    };
    let name = format!("{}/{}", key.namespace, key.name);
    let resource = if is_named(asked) { name } else { made_up(&name) };
    let mut lines = vec![format!("tread: {}", foretold.says(&resource))];
    let costs = ways(previewer, &foretold).await;
    if !costs.is_empty() {
        lines.push(format!("tread: what each machine will go through: {costs}"));
    }
    let prevents = match is_named(asked) {
        true => foretold.prevents(&key),
        false => foretold.prevents_before(),
    };
    let prevents = format!("tread: what prevents it: {prevents}");
    // A command that is cut is none.
    lines.push(match prevents.chars().count() <= LONGEST_WARNING {
        true => prevents,
        false => "tread: what prevents it: `tread pools` prints the command".to_owned(),
    });
    lines
}
