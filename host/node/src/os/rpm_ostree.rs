//! rpm-ostree: what it says, and what it is told.

use super::deployments::{Deployment, Deployments, without_transport};
use super::{Due, extensions};
use serde::Deserialize;
use tread_model::config::KernelType;

/// The program.
pub const PROGRAM: &str = "/usr/bin/rpm-ostree";
/// What asks it for its state.
pub const STATUS: [&str; 3] = [PROGRAM, "status", "--json"];
/// What asks it for the arguments of the next boot.
pub const ARGUMENTS: [&str; 2] = [PROGRAM, "kargs"];

#[derive(Deserialize)]
struct Status {
    deployments: Vec<Said>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Said {
    id: String,
    booted: bool,
    #[serde(default)]
    staged: bool,
    #[serde(default)]
    container_image_reference: Option<String>,
    #[serde(default)]
    container_image_reference_digest: Option<String>,
    #[serde(default)]
    requested_packages: Vec<String>,
    #[serde(default)]
    requested_base_removals: Vec<String>,
}

impl Said {
    fn deployment(self) -> Deployment {
        let image = self.container_image_reference.unwrap_or_default();
        Deployment {
            id: self.id,
            image: without_transport(&image).to_owned(),
            digest: self.container_image_reference_digest.unwrap_or_default(),
            staged: self.staged,
            packages: self.requested_packages,
            removed: self.requested_base_removals,
        }
    }
}

/// What it says of the host. What the next boot brings stands first.
pub fn read(said: &[u8]) -> Result<Deployments, String> {
    let Status { deployments } = serde_json::from_slice(said).map_err(|it| it.to_string())?;
    let order = deployments.iter().map(|said| said.id.clone()).collect();
    let (mut next, mut booted) = (None, None);
    for (index, said) in deployments.into_iter().enumerate() {
        match (index, said.booted) {
            (_, true) => booted = Some(said.deployment()),
            (0, false) => next = Some(said.deployment()),
            (_, false) => {}
        }
    }
    let booted = booted.ok_or("it is booted into none of its deployments")?;
    Ok(Deployments { booted, next, order })
}

/// What has it fetched, and nothing else.
pub fn fetch(image: &str) -> Vec<String> {
    let reference = reference(image);
    words(&["rebase", "--experimental", "--download-only", &reference])
}

/// The next command for it, so that the next boot brings what is due: what is done to
/// the deployment that it would bring now, with this line of arguments. Nothing if it
/// would bring that already.
///
/// A kernel that takes the ordinary one's place fits one image only: it goes before the
/// image changes, and comes again after that.
pub fn next(due: &Due, there: &Deployment, arguments: &str) -> Option<Vec<String>> {
    let is_rebased = due.to.image.is_empty() || there.has_image(&due.to.image);
    let (kernel, wanted) = (there.kernel(), due.kernel());
    if kernel != KernelType::Default && (kernel != wanted || !is_rebased) {
        let mut args = words(&["override", "reset"]);
        args.extend(there.removed.iter().filter(|it| is_of_kernel(it)).cloned());
        args.extend(options("--uninstall=", extensions::kernel(kernel)));
        return Some(args);
    }
    if !is_rebased {
        return Some(words(&["rebase", "--experimental", &reference(&due.to.image)]));
    }
    if kernel != wanted {
        let mut args = words(&["override", "remove"]);
        args.extend(words(&extensions::DEFAULT_KERNEL));
        args.extend(options("--install=", extensions::kernel(wanted)));
        return Some(args);
    }
    let has = |package: &&str| there.packages.iter().any(|it| it == package);
    let wanted = extensions::packages(&due.to.extensions);
    let new: Vec<&str> = wanted.into_iter().filter(|it| !has(it)).collect();
    let gone: Vec<&str> = due.gone().into_iter().filter(has).collect();
    match (new.as_slice(), gone.as_slice()) {
        ([], []) => {}
        ([], gone) => return Some([words(&["uninstall"]), words(gone)].concat()),
        (new, gone) => {
            let gone = options("--uninstall=", gone);
            return Some([words(&["install"]), words(new), gone].concat());
        }
    }
    let options = due.edit().options(arguments);
    (!options.is_empty()).then(|| [words(&["kargs"]), options].concat())
}

/// What has it forget what is staged.
pub fn unstage() -> Vec<String> {
    words(&["cleanup", "--pending"])
}

/// What lets the next boot bring the deployment behind this one; this one, where none is.
pub fn roll_back() -> Vec<String> {
    words(&["rollback"])
}

/// What has it read again what others did.
pub fn reload() -> Vec<String> {
    words(&["reload"])
}

fn is_of_kernel(package: &str) -> bool {
    extensions::DEFAULT_KERNEL.contains(&package)
}

fn reference(image: &str) -> String {
    format!("ostree-unverified-registry:{image}")
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn options(option: &str, values: &[&str]) -> Vec<String> {
    values.iter().map(|value| format!("{option}{value}")).collect()
}

#[cfg(test)]
mod tests;
