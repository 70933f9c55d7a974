//! Certificates that the node trusts, secrets for pulling images, and what
//! serves them. Where a program reads its file anew each time nothing has to
//! be done; trust that is withdrawn has to reach programs that are running.

mod anchors;
mod dropin;
mod hosts;
mod logins;

use anchors::{Anchors, Trust};
use logins::Logins;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use tread_guest_sdk::{
    Action, Change, Claim, Content, Context, Effect, Policy, State, Verdict, export, glob,
};

/// The policy `certificates`.
pub struct Certificates;

const USER_BUNDLE: &str = "/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt";
const ANCHORS: &str = "/etc/pki/ca-trust/source/anchors/**";
const KUBELET_CA: &str = "/etc/kubernetes/kubelet-ca.crt";
const PULL_SECRET: &str = "/var/lib/kubelet/config.json";
const PROVIDERS: &str = "/etc/kubernetes/credential-providers/**";
const PROVIDER_DROPIN: &str =
    "/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf";
const IRI_FILES: &str = "/etc/iri-registry/**";
const IRI_SCRIPT: &str = "/usr/local/bin/load-registry-image.sh";
const REGISTRY_CERTS: &str = "/etc/{docker,containers}/certs.d/**";

const UPDATE_TRUST: &str = "coreos-update-ca-trust.service";
const CRIO: &str = "crio.service";
const KUBELET: &str = "kubelet.service";
const IRI: &str = "iri-registry.service";

// Why, of files that are or may be secrets.
const KUBELET_CA_GONE: &str =
    "the kubelet goes on with the client CA that it knows, and does not start without one";
const KUBELET_CA_BROKEN: &str = "this file holds no certificate in PEM; the kubelet goes on with the client CA that it knows, and would not start with this one. Correct it";
const KUBELET_CA_READ: &str = "the kubelet reads its client CA again when it changes";
const PULL_SECRET_GONE: &str =
    "nothing is known of a node without its pull secret; pulls that worked may fail";
const PULL_SECRET_BROKEN: &str = "the pull secret is no JSON object with an object for each registry in its auths; with it, every pull would fail. Correct it";
const PULL_SECRET_READ: &str = "the pull secret is read at each pull";
const PROVIDERS_READ: &str = "the kubelet reads its credential providers when it starts";
const IRI_FILES_READ: &str = "the internal release image registry reads its files when it starts";
const NOT_COMPARED: &str = "the file may hold something other than plain certificates in PEM, so it is not known whether a CA loses its trust; programs that are running would go on trusting it";

impl Policy for Certificates {
    type Settings = ();
    const NAME: &'static str = "certificates";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "CA bundles, pull secrets and credential providers";
    const CLAIMS: &'static [Claim] = &[
        Claim::on("file:/etc/pki/ca-trust/source/anchors/**", Effect::Reload, Effect::Reboot),
        Claim::on("file:/etc/kubernetes/kubelet-ca.crt", Effect::None, Effect::Refuse),
        Claim::on("file:/var/lib/kubelet/config.json", Effect::None, Effect::Refuse),
        Claim::on("file:/etc/kubernetes/credential-providers/**", Effect::Restart, Effect::Restart),
        Claim::on(
            "file:/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf",
            Effect::Restart,
            Effect::Reboot,
        ),
        Claim::on("file:/etc/iri-registry/**", Effect::Restart, Effect::Restart),
        Claim::on("file:/usr/local/bin/load-registry-image.sh", Effect::Restart, Effect::Restart),
        Claim::on("unit:iri-registry.service", Effect::Restart, Effect::Reboot),
        Claim::on("file:/etc/{docker,containers}/certs.d/**", Effect::None, Effect::Refuse)
            .with_unchanged(),
    ];

    const REASONS: &'static [&'static str] = &[
        KUBELET_CA_GONE,
        KUBELET_CA_BROKEN,
        KUBELET_CA_READ,
        PULL_SECRET_GONE,
        PULL_SECRET_BROKEN,
        PULL_SECRET_READ,
        PROVIDERS_READ,
        IRI_FILES_READ,
        hosts::READ,
        hosts::NOT_READ,
        hosts::GONE,
        hosts::CLIENT,
        hosts::HIDES,
        NOT_COMPARED,
    ];

    fn classify((): &(), change: &Change, context: &Context<'_>) -> Verdict {
        verdict(change, context, &OnceCell::new())
    }

    fn classify_all((): &(), context: &Context<'_>) -> Vec<Verdict> {
        let (hosts, anchors) = (hosts::hosts(context), OnceCell::new());
        let mut known: BTreeMap<&str, Verdict> = BTreeMap::new();
        let mut of_each = |change: &Change| {
            let found = change.path().and_then(|path| hosts.get_key_value(hosts::host(path)?));
            match found {
                Some((name, host)) => known.entry(name).or_insert_with(|| host.verdict()).clone(),
                None if change.path().is_some_and(|path| glob::matches(REGISTRY_CERTS, path)) => {
                    not_of_registries()
                }
                None => verdict(change, context, &anchors),
            }
        };
        context.changes.iter().map(&mut of_each).collect()
    }
}

export!(Certificates);

/// What it takes to apply a change. `anchors` are those of all changes, once somebody wants them.
fn verdict(change: &Change, context: &Context<'_>, anchors: &OnceCell<Anchors>) -> Verdict {
    if change.id == "unit:iri-registry.service" {
        return iri_unit(change);
    }
    let Some(path) = change.path() else { return Verdict::abstain() };
    match path {
        USER_BUNDLE if anchors::may_distrust(change) => not_compared(),
        // As OpenShift does, also if a CA goes.
        USER_BUNDLE => renew_trust("CRI-O reads the trusted CAs when it starts"),
        KUBELET_CA => kubelet_ca(&change.after),
        PULL_SECRET => pull_secret(&change.after),
        PROVIDER_DROPIN if !dropin::is_about_providers(change) => Verdict::reboot(
            "this drop-in of the kubelet sets more than the environment for credential \
             providers; nothing gentler than a reboot is known for that",
        ),
        PROVIDER_DROPIN => Verdict::restart(
            KUBELET,
            "the kubelet gets the environment for credential providers when it starts",
        ),
        IRI_SCRIPT => {
            Verdict::restart(IRI, "the script runs when the internal release image registry starts")
        }
        _ if glob::matches(ANCHORS, path) => {
            let is_anchor = |it: &&Change| it.path().is_some_and(|it| glob::matches(ANCHORS, it));
            let all = || Anchors::of(context.changes.iter().filter(is_anchor));
            anchor(anchors.get_or_init(all).compare(change))
        }
        _ if glob::matches(PROVIDERS, path) => Verdict::restart(KUBELET, PROVIDERS_READ),
        _ if glob::matches(IRI_FILES, path) => Verdict::restart(IRI, IRI_FILES_READ),
        _ if glob::matches(REGISTRY_CERTS, path) => {
            of_registry(path, &hosts::hosts(context)).unwrap_or_else(not_of_registries)
        }
        _ => Verdict::abstain(),
    }
}

fn of_registry(path: &str, hosts: &BTreeMap<&str, hosts::Host<'_>>) -> Option<Verdict> {
    hosts.get(hosts::host(path)?).map(hosts::Host::verdict)
}

fn not_of_registries() -> Verdict {
    Verdict::nothing(hosts::NOT_READ)
}

fn renew_trust(reason: &str) -> Verdict {
    Verdict::act(vec![Action::restart(UPDATE_TRUST), Action::restart(CRIO)], reason)
}

/// Any anchor but the cluster's own bundle: more trust is gentle, less is not.
fn anchor(trust: Trust) -> Verdict {
    match trust {
        Trust::Same => Verdict::restart(
            UPDATE_TRUST,
            "the same certificates are trusted as before; only the trust store is written again",
        ),
        Trust::Added => renew_trust(
            "a CA is added: CRI-O reads the trusted CAs when it starts; other programs that are \
             running trust it once they start anew",
        ),
        Trust::Withdrawn => Verdict::reboot(
            "a CA is no longer trusted, but programs that are running go on trusting it until \
             they start anew",
        ),
        Trust::Unknown => not_compared(),
    }
}

fn not_compared() -> Verdict {
    Verdict::reboot(NOT_COMPARED)
}

fn kubelet_ca(after: &State) -> Verdict {
    if is_gone(after) {
        return Verdict::reboot(KUBELET_CA_GONE);
    }
    match bytes(after) {
        Some(bytes) if !anchors::may_hold_one(bytes) => Verdict::refuse(KUBELET_CA_BROKEN),
        _ => Verdict::nothing(KUBELET_CA_READ),
    }
}

fn pull_secret(after: &State) -> Verdict {
    if is_gone(after) {
        return Verdict::reboot(PULL_SECRET_GONE);
    }
    match bytes(after).map(logins::read) {
        Some(Logins::Broken) => Verdict::refuse(PULL_SECRET_BROKEN),
        Some(Logins::None) => Verdict::reboot(PULL_SECRET_GONE),
        Some(Logins::Found) | None => Verdict::nothing(PULL_SECRET_READ),
    }
}

fn bytes(state: &State) -> Option<&[u8]> {
    state.as_file()?.content.bytes()
}

/// Whether nothing is left of a file.
fn is_gone(state: &State) -> bool {
    match state {
        State::File(file) => match &file.content {
            Content::Bytes(bytes) => bytes.trim_ascii().is_empty(),
            Content::Absent => true,
            Content::Digest(_) => false,
        },
        _ => true,
    }
}

/// Whether the configuration turns a unit on.
#[derive(PartialEq, Eq)]
enum Turned {
    On,
    Off,
    /// What the node's presets say, or whoever turned it on or off before.
    LeftOpen,
}

fn turned(state: &State) -> Turned {
    match state.as_unit() {
        Some(unit) if !unit.masked => match unit.enabled {
            Some(true) => Turned::On,
            Some(false) => Turned::Off,
            None => Turned::LeftOpen,
        },
        _ => Turned::Off,
    }
}

/// A restart makes a running registry take its new unit. It neither starts one
/// that the configuration turns on, nor stops one that it turns off.
fn iri_unit(change: &Change) -> Verdict {
    match (turned(&change.before), turned(&change.after)) {
        (before, after) if before == after => Verdict::restart(
            IRI,
            "the internal release image registry takes its new unit when it starts",
        )
        .and(Action::DaemonReload),
        (_, Turned::Off) => Verdict::reboot(
            "the internal release image registry is turned off, but goes on running until the \
             node boots",
        ),
        (Turned::On, _) => Verdict::reboot(
            "whether the internal release image registry is on is left to the node; if that turns \
             it off, it goes on running until the node boots",
        ),
        _ => Verdict::reboot(
            "the internal release image registry is turned on, and enabled units start at boot",
        ),
    }
}

#[cfg(test)]
mod tests;
