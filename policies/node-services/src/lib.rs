//! The configuration of the kubelet, of CRI-O and of its storage.
//!
//! Both sides of a file are compared key by key, so that comments, order and
//! layout do not count. The most disruptive key decides: CRI-O is reloaded or
//! restarted, the kubelet restarted, for what is known to take effect that way;
//! all else, and whatever cannot be read, costs a reboot. A value with which CRI-O
//! would give up a reload is refused.
//!
//! A later drop-in of CRI-O may set the same key once more; a change that it
//! hides is answered for all the same, but not refused. One that lets such a
//! value of another file count is.

mod difference;
mod duration;
mod files;
mod regex;
mod reload;
mod says;
mod service;

use difference::{Difference, differences};
use files::Files;
use service::{Cost, Others, Service};
use tread_guest_sdk::{
    Action, Change, Claim, Content, Context, Edit, Effect, Policy, State, Verdict, export,
};
use tread_policy_formats::{Table, toml, yaml};

/// The policy `node-services`.
pub struct NodeServices;

impl Policy for NodeServices {
    type Settings = ();
    const NAME: &'static str = "node-services";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str =
        "Reloads or restarts CRI-O and the kubelet for the fields that take effect that way";
    const CLAIMS: &'static [Claim] = &[
        Claim::on("file:/etc/kubernetes/kubelet.conf", Effect::None, Effect::Reboot),
        // Unchanged as well: another file may define the same runtime handler, or set the same key.
        Claim::on("file:/etc/crio/crio.conf", Effect::None, Effect::Refuse).with_unchanged(),
        // CRI-O reads its subdirectories too.
        Claim::on("file:/etc/crio/crio.conf.d/**", Effect::None, Effect::Refuse).with_unchanged(),
        Claim::on("file:/etc/containers/storage.conf", Effect::None, Effect::Reboot),
    ];
    const REASONS: &'static [&'static str] = reload::REASONS;

    fn classify((): &(), change: &Change, context: &Context<'_>) -> Verdict {
        classify(change, &Files::of(context, &read_crio))
    }

    fn classify_all((): &(), context: &Context<'_>) -> Vec<Verdict> {
        let files = Files::of(context, &read_crio);
        context.changes.iter().map(|change| classify(change, &files)).collect()
    }
}

fn classify(change: &Change, files: &Files<'_>) -> Verdict {
    let found = change.path().and_then(|path| Some((path, Service::of(path)?)));
    let Some((path, service)) = found else { return Verdict::abstain() };
    let (before, after) = (read(service, &change.before), read(service, &change.after));
    if service == Service::Crio
        && let Ok(after) = &after
        && let Some(why) =
            reload::fault(path, before.as_ref().ok(), after, &|it| files.new_text(path, it))
    {
        return Verdict::refuse(why);
    }
    if change.edit() != Edit::Changed {
        match path {
            // The operating system brings files of its own, of which nothing is known.
            "/etc/crio/crio.conf"
            | "/etc/crio/crio.conf.d/10-crio.conf"
            | "/etc/containers/storage.conf" => {
                return Verdict::reboot(
                    "this file takes the place of the system's own, or gives it back; what \
                     that one says is not known here",
                );
            }
            "/etc/kubernetes/kubelet.conf" => {
                return Verdict::reboot(
                    "without this file the kubelet does not start, or has settings that are \
                     not known here",
                );
            }
            _ => {}
        }
    }
    let (side, why) = match (&before, &after) {
        (Ok(before), Ok(after)) => {
            let others = Others {
                define: &|handler| files.is_elsewhere(path, handler),
                pull_timeouts: &|| files.pull_timeouts(),
            };
            return verdict(service, &differences(service, before, after), &others);
        }
        (Err(why), _) => ("the file as it is now", why),
        (_, Err(why)) => ("the new file", why),
    };
    Verdict::reboot(
        [side, " cannot be read here: ", why, "; so what changes is not known"].concat(),
    )
}

/// What one side of a file says; nothing if it is not there.
fn read(service: Service, state: &State) -> Result<Table, String> {
    let bytes = match state {
        State::Absent => return Ok(Table::new()),
        State::File(file) => match &file.content {
            Content::Bytes(bytes) => bytes,
            Content::Absent => return Err("it has no content of its own".to_string()),
            Content::Digest(_) => return Err("its content is secret".to_string()),
        },
        _ => return Err("it is no file".to_string()),
    };
    if service == Service::Kubelet {
        let text = std::str::from_utf8(bytes).ok().and_then(yaml::parse);
        return text.ok_or_else(|| "it is not the simple YAML or JSON that this reads".to_string());
    }
    toml::parse(bytes)
        .map_err(|error| ["line ", &error.line.to_string(), ": ", error.what].concat())
}

fn read_crio(state: &State) -> Option<Table> {
    read(Service::Crio, state).ok()
}

fn verdict(service: Service, differences: &[Difference], others: &Others<'_>) -> Verdict {
    let costs: Vec<Cost> = differences.iter().map(|it| service.cost(it, others)).collect();
    let Some(cost) = costs.iter().copied().max() else {
        return Verdict::nothing(
            "every setting stays as it is: only comments, order, layout or the file's mode change",
        );
    };
    let deciding: Vec<String> = differences
        .iter()
        .zip(&costs)
        .filter(|(_, it)| **it == cost)
        .map(|(difference, _)| difference.path.join("."))
        .collect();
    let (unit, name) = (service.unit(), service.name());
    let is = if deciding.len() == 1 { " is" } else { " are" };
    let names = names(&deciding);
    match cost {
        Cost::Reload => {
            Verdict::reload(unit, [&names, is, " read again when ", name, " is reloaded"].concat())
        }
        Cost::Restart => {
            Verdict::restart(unit, [&names, is, " read when ", name, " starts"].concat())
        }
        Cost::Drain => {
            let tail = match service {
                Service::Kubelet => ", and with it pods that run may have to go",
                _ => ", and with it a pull that worked may fail",
            };
            Verdict::drain([&names, is, " read when ", name, " starts", tail].concat())
                .and(Action::restart(unit))
        }
        Cost::Reboot => Verdict::reboot(
            ["nothing gentler than a reboot is known for ", names.as_str()].concat(),
        ),
    }
}

/// Some keys in a sentence: the first three, and how many more.
fn names(keys: &[String]) -> String {
    const LONGEST: usize = 80;
    let mut text = String::new();
    for (number, key) in keys.iter().take(3).enumerate() {
        let last = number + 1 == keys.len();
        text.push_str(if number == 0 {
            ""
        } else if last {
            " and "
        } else {
            ", "
        });
        match key.char_indices().map(|(at, _)| at).find(|at| *at >= LONGEST) {
            Some(end) => text.extend([key.get(..end).unwrap_or_default(), "…"]),
            None => text.push_str(key),
        }
    }
    if keys.len() > 3 {
        text.extend([" and ", &(keys.len() - 3).to_string(), " more"]);
    }
    text
}

export!(NodeServices);
