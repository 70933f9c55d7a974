//! tread as a plugin of kubectl: a program or a link that is called
//! `kubectl-tread`, anywhere in the PATH.

use crate::replica::installed;
use crate::story::{cluster, config, plan};
use kube::ResourceExt as _;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_runs_it_as_its_own_command_and_its_help_says_so() {
    let plane = installed();
    let _replica = cluster(&plane).await;
    plane.apply(&config("50-a", "a", "1")).unwrap();
    let made = plan(&plane, "MachineConfig/50-a created").await;

    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let dir = dir.join(format!("plugin-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let link = dir.join("kubectl-tread");
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tread"), link).unwrap();
    let kubectl = |args: &[&str]| {
        let mut command = Command::new("sh");
        plane.prepare(&mut command);
        let path = "PATH=\"$PATH:$0\"; exec kubectl tread \"$@\"";
        let output = command.args(["-c", path]).arg(&dir).args(args).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };

    let (code, out, err) = kubectl(&["plans"]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains(&made.name_any()) && out.contains("drain + reboot"), "{out}");
    // Whoever asks kubectl means the cluster's.
    let (_, out, err) = kubectl(&["policies", "-o", "json"]);
    let policies: Vec<Value> = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
    assert_eq!(policies.len(), 7);
    // Its exit code comes through.
    assert_eq!(kubectl(&["plans", "nothing"]).0, Some(1));

    let (_, help, _) = kubectl(&["plans", "--help"]);
    assert!(help.contains("Usage: kubectl tread plans"), "{help}");
    let examples = help.split("Examples:\n").nth(1).unwrap();
    let examples: Vec<&str> = examples.lines().take_while(|line| !line.is_empty()).collect();
    assert!(examples.len() > 2, "{help}");
    assert!(examples.iter().all(|line| line.starts_with("  kubectl tread plans")), "{help}");
    let (code, _, err) = kubectl(&["plans", "--nothing"]);
    assert!(code == Some(2) && err.contains("Usage: kubectl tread plans"), "{err}");
}
