//! bootc: what it says, and what it is told. It changes the image, and nothing else.

use super::Due;
use super::deployments::{Deployment, Deployments, without_transport};
use serde::Deserialize;

/// The program.
pub const PROGRAM: &str = "/usr/bin/bootc";
/// What asks it for its state.
pub const STATUS: [&str; 4] = [PROGRAM, "status", "--format=json", "--format-version=1"];

#[derive(Deserialize)]
struct Host {
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    staged: Option<Entry>,
    booted: Option<Entry>,
    rollback: Option<Entry>,
    #[serde(default)]
    rollback_queued: bool,
}

#[derive(Deserialize)]
struct Entry {
    image: Option<ImageStatus>,
    ostree: Option<Ostree>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ImageStatus {
    image: Image,
    image_digest: String,
}

#[derive(Deserialize)]
struct Image {
    image: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ostree {
    checksum: String,
    deploy_serial: u32,
}

impl Entry {
    /// Nothing where ostree does not keep it.
    fn deployment(self, staged: bool) -> Option<Deployment> {
        let Ostree { checksum, deploy_serial } = self.ostree?;
        let (image, digest) = self.image.map_or_else(Default::default, |it| {
            (without_transport(&it.image.image).to_owned(), it.image_digest)
        });
        let id = format!("{checksum}.{deploy_serial}");
        Some(Deployment { id, image, digest, staged, ..Deployment::default() })
    }
}

/// What it says of the host; nothing where ostree does not keep its deployments.
pub fn read(said: &[u8]) -> Result<Option<Deployments>, String> {
    let Host { status } = serde_json::from_slice(said).map_err(|it| it.to_string())?;
    let booted = status.booted.ok_or("it is booted into none of its images")?;
    let Some(booted) = booted.deployment(false) else { return Ok(None) };
    let staged = status.staged.and_then(|entry| entry.deployment(true));
    let rollback = status.rollback.and_then(|entry| entry.deployment(false));
    let mut there = vec![&booted];
    there.extend(&rollback);
    if status.rollback_queued {
        there.reverse();
    }
    let order = staged.iter().chain(there).map(|it| it.id.clone()).collect();
    let next = match staged {
        None if status.rollback_queued => rollback,
        staged => staged,
    };
    Ok(Some(Deployments { booted, next, order }))
}

/// The next thing to tell it, so that the next boot brings what is due; nothing if it would
/// bring that already.
pub fn next(due: &Due, there: &Deployment) -> Option<Vec<String>> {
    let is_there = due.to.image.is_empty() || there.has_image(&due.to.image);
    (!is_there).then(|| switch(&due.to.image))
}

/// What has an image fetched and staged.
pub fn switch(image: &str) -> Vec<String> {
    ["switch", image].map(str::to_owned).to_vec()
}

/// What lets the next boot bring the first of the other deployments. Told twice, it undoes
/// that.
pub fn roll_back() -> Vec<String> {
    vec!["rollback".to_owned()]
}

#[cfg(test)]
mod tests {
    use super::super::{Way, Wish};
    use super::*;

    const STAGED: &str = include_str!("bootc/staged.json");
    const DIGEST: &str = "sha256:16dc2b6256b4ff0d2ec18d2dbfb06d117904010c8cf9732cdb022818cf7a7566";

    fn due(image: &str) -> Due {
        Due {
            to: Wish { image: image.to_owned(), ..Wish::default() },
            from: Wish::default(),
            passed: Vec::new(),
            deployment: String::new(),
            arguments: Vec::new(),
        }
    }

    #[test]
    fn what_is_staged_is_what_the_next_boot_brings() {
        let read = read(STAGED.as_bytes()).unwrap().unwrap();
        assert_eq!(read.booted.image, "quay.io/example/someimage:latest");
        let next = read.at_next_boot();
        assert!(next.staged && next.has_image(&format!("elsewhere.example/other@{DIGEST}")));
        assert_eq!(
            next.id,
            format!("{}.0", "3c6dad657109522e0b2e49bf44b5420f16f0b438b5b9357e5132211cfbad135d")
        );
        assert_eq!(super::next(&due(&format!("a.example/b@{DIGEST}")), next), None);
        let other = "a.example/b@sha256:00";
        assert_eq!(super::next(&due(other), next).unwrap(), ["switch", other]);
    }

    #[test]
    fn a_rollback_that_is_queued_is_what_the_next_boot_brings() {
        let queued = STAGED.replace(r#""staged""#, r#""rollback""#);
        let queued = queued.replace(r#""rollbackQueued": false"#, r#""rollbackQueued": true"#);
        let read = read(queued.as_bytes()).unwrap().unwrap();
        assert!(!read.at_next_boot().staged);
        assert_eq!(read.order, [read.at_next_boot(), &read.booted].map(|it| it.id.clone()));
        assert_eq!(read.way_to(&read.booted.id), Some(Way::Rollback));
        assert_eq!(read.next.map(|it| it.digest).as_deref(), Some(DIGEST));
    }

    #[test]
    fn a_host_that_bootc_does_not_run_or_not_with_ostree_is_told_apart() {
        let null = r#"{"apiVersion":"org.containers.bootc/v1","kind":"BootcHost",
            "metadata":{"name":"host"},"spec":{"image":null,"bootOrder":"default"},
            "status":{"staged":null,"booted":null,"rollback":null,"rollbackQueued":false,
            "type":null}}"#;
        assert!(read(null.as_bytes()).unwrap_err().contains("none of its images"));
        let composefs =
            null.replace(r#""booted":null"#, r#""booted":{"image":null,"ostree":null}"#);
        assert_eq!(read(composefs.as_bytes()).unwrap(), None);
        for said in ["", "{}", "[]", "bootc: command not found"] {
            assert!(read(said.as_bytes()).is_err(), "{said:?}");
        }
    }
}
