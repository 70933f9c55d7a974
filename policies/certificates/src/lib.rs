//! Certificates that the node trusts, secrets for pulling images, and what
//! serves them. Where a program reads its file anew each time nothing has to
//! be done; trust that is withdrawn has to reach programs that are running.

mod anchors;
mod dropin;
mod hosts;
mod iri;
mod logins;
mod providers;
mod state;

use anchors::{Anchors, Trust};
use logins::Logins;
use providers::KUBELET;
use state::{bytes, is_gone};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use tread_guest_sdk::{
    Action, Change, Claim, Context, Effect, Policy, State, Verdict, export, glob,
};

/// The policy `certificates`.
pub struct Certificates;

const USER_BUNDLE: &str = "/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt";
const KUBELET_CA: &str = "/etc/kubernetes/kubelet-ca.crt";
const PULL_SECRET: &str = "/var/lib/kubelet/config.json";
const PROVIDERS: &str = "/etc/kubernetes/credential-providers/**";
const IRI_SCRIPT: &str = "/usr/local/bin/load-registry-image.sh";
const REGISTRY_CERTS: &str = "/etc/{docker,containers}/certs.d/**";

const UPDATE_TRUST: &str = "coreos-update-ca-trust.service";
const CRIO: &str = "crio.service";

// Why, of files that are or may be secrets.
const KUBELET_CA_GONE: &str =
    "the kubelet goes on with the client CA that it knows, and does not start without one";
const KUBELET_CA_BROKEN: &str = "this file holds no certificate in PEM; the kubelet goes on with the client CA that it knows, and would not start with this one. Correct it";
const KUBELET_CA_READ: &str = "the kubelet reads its client CA again when it changes";
const PULL_SECRET_GONE: &str =
    "nothing is known of a node without its pull secret; pulls that worked may fail";
const PULL_SECRET_BROKEN: &str = "the pull secret is no JSON object with an object for each registry in its auths; with it, every pull would fail. Correct it";
const PULL_SECRET_READ: &str = "the pull secret is read at each pull";
const DROPIN_READ: &str =
    "the kubelet gets the environment for credential providers when it starts";
const DROPIN_SAYS_LESS: &str = "the kubelet gets the environment for credential providers when it starts; without what this drop-in said of them a pull that worked may fail";
const ANCHOR_NOT_READ: &str = "update-ca-trust reads no directories below /etc/pki/ca-trust/source/anchors, so nothing in this file is trusted; only the trust store is written again. Move it up if it is to count";
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
        Claim::on("file:/etc/kubernetes/credential-providers/**", Effect::Restart, Effect::Refuse),
        // Unchanged as well: it names what the kubelet has to find.
        Claim::on(
            "file:/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf",
            Effect::Restart,
            Effect::Reboot,
        )
        .with_unchanged(),
        Claim::on("file:/etc/iri-registry/**", Effect::Restart, Effect::Refuse),
        Claim::on("file:/usr/local/bin/load-registry-image.sh", Effect::Restart, Effect::Refuse),
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
        providers::READ,
        providers::GONE,
        providers::NAMED,
        providers::BROKEN,
        providers::NO_CONFIG,
        DROPIN_READ,
        DROPIN_SAYS_LESS,
        iri::READ,
        iri::GONE,
        iri::NO_CERTIFICATE,
        iri::NO_KEY,
        iri::SCRIPT_READ,
        iri::SCRIPT_NOT_RUN,
        iri::SCRIPT_GONE,
        hosts::READ,
        hosts::NOT_READ,
        hosts::GONE,
        hosts::CLIENT,
        hosts::HIDES,
        ANCHOR_NOT_READ,
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
        return iri::unit(change);
    }
    let Some(path) = change.path() else { return Verdict::abstain() };
    match path {
        USER_BUNDLE if anchors::may_distrust(change) => not_compared(),
        // As OpenShift does, also if a CA goes.
        USER_BUNDLE => renew_trust("CRI-O reads the trusted CAs when it starts"),
        KUBELET_CA => kubelet_ca(&change.after),
        PULL_SECRET => pull_secret(&change.after),
        dropin::PATH if !dropin::is_about_providers(change) => Verdict::reboot(
            "this drop-in of the kubelet sets more than the environment for credential \
             providers; nothing gentler than a reboot is known for that",
        ),
        dropin::PATH if dropin::says_all(change) => Verdict::restart(KUBELET, DROPIN_READ),
        dropin::PATH => Verdict::drain(DROPIN_SAYS_LESS).and(Action::restart(KUBELET)),
        IRI_SCRIPT => iri::script(change),
        _ if anchors::is_read(path) => {
            let all = || Anchors::of(context.changes.iter());
            anchor(anchors.get_or_init(all).compare(change))
        }
        _ if anchors::is_one(path) => Verdict::restart(UPDATE_TRUST, ANCHOR_NOT_READ),
        _ if glob::matches(PROVIDERS, path) => providers::verdict(path, change, context),
        _ if iri::is_file(path) => iri::file(path, change),
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

#[cfg(test)]
mod tests;
