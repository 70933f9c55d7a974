//! Units that a config leaves open, as systemd itself sees them afterwards.

use crate::node::{Bed, config_with, unit_with};
use tread_model::plan::Step;
use tread_node::operation::Ended;

fn unit(name: &str, rest: &str) -> String {
    format!(
        r#"{{"name": "{name}", "contents":
            "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"{rest}}}"#
    )
}

#[test]
fn what_a_config_leaves_open_is_as_systemctl_preset_has_it() {
    let bed = Bed::with("one", &unit_with("/bin/true"));
    let presets = "enable on.service\ndisable off.service\ndisable lost.service\n";
    let at = bed.machine.root().unwrap().join("etc/systemd/system-preset");
    std::fs::create_dir_all(&at).unwrap();
    std::fs::write(at.join("10-test.preset"), presets).unwrap();
    let is_enabled = |name: &str| {
        bed.machine.run(["systemctl", "is-enabled", name]).unwrap().out.trim().to_owned()
    };
    let apply = |units: &[String]| {
        let to = config_with("one", "", &units.join(", "));
        let steps = [Step::Write, Step::DaemonReload];
        assert_eq!(bed.carry_out(&to, &steps).unwrap(), Ended::Done);
    };
    apply(&[unit("lost.service", r#", "enabled": true"#)]);
    assert_eq!(is_enabled("lost.service"), "enabled");
    let open = ["lost.service", "on.service", "off.service"];
    apply(&open.map(|name| unit(name, "")));
    let found = open.map(&is_enabled);
    assert_eq!(found, ["disabled", "enabled", "disabled"]);
    bed.machine.run_well([&["systemctl", "preset"][..], &open].concat()).unwrap();
    assert_eq!(open.map(&is_enabled), found, "there was nothing left for systemctl to do");
    apply(&[]);
    let wants = bed.machine.root().unwrap().join("etc/systemd/system/multi-user.target.wants");
    for name in open {
        assert!(std::fs::symlink_metadata(wants.join(name)).is_err(), "{name}");
    }
}
