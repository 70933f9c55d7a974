use super::*;
use crate::touch::touch_gently;
use crate::unit_name::is_template;

#[test]
fn a_directive_that_is_not_known_is_more_than_is_looked_at_and_told_with_its_line() {
    let text = "[Unit]\nDescription=a \\\n  b\n\n[Service]\nNewAction=reboot\n";
    assert_eq!(
        why(&unit(text), "a.service").unwrap(),
        "may not be touched gently: its unit has NewAction= in [Service], which is more than is \
         looked at (line 6 of its contents)"
    );
    let config = json!({"systemd": {"units": [{"name": "a.service", "dropins": [
        {"name": "10-x.conf", "contents": "[New]\nDescription=a\n"}]}]}});
    let why_dropin = why(&config, "a.service").unwrap();
    assert!(why_dropin.contains("Description= in [New]"), "{why_dropin}");
    assert!(why_dropin.ends_with("(line 2 of its drop-in 10-x.conf)"), "{why_dropin}");
    let included = why(&unit(".include /opt/x\n[Unit]\n.include /opt/y\n"), "a.service").unwrap();
    assert!(included.contains("than is looked at"), "{included}");
    assert_eq!(why(&unit(text), "b.service"), None);
}

#[test]
fn what_systemd_leaves_to_others_or_out_is_no_reason() {
    for text in [
        "[X-App]\nSuccessAction=reboot\n",
        "[Unit]\nX-SuccessAction=reboot\n",
        "[Service]\nStartLimitIntervalSec=0\nDescription=x\n",
        "[Unit]\nConditionPathExists=!/run/x\nAssertPathExists=/y\n",
        "[Unit]\nno directive\n",
    ] {
        assert_eq!(why(&unit(text), "a.service"), None, "{text}");
    }
}

/// No unit that people really have is more than is looked at.
#[test]
fn all_units_of_a_systemd_that_is_installed_here_are_looked_at() {
    let directory = "/usr/lib/systemd/system";
    let entries = std::fs::read_dir(directory).unwrap_or_else(|error| {
        panic!(
            "{directory}: {error}. This test looks at real units, and was not run: install systemd"
        )
    });
    let (mut seen, mut gentle) = (0, 0);
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let touched = if is_template(&name) { name.replace("@.", "@x.") } else { name.clone() };
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        if path.is_symlink() || touch_gently(&touched).is_err() {
            continue;
        }
        seen += 1;
        let why = why(&units(&[(&name, &text)]), &touched);
        gentle += usize::from(why.is_none());
        let why = why.unwrap_or_default();
        assert!(!why.contains("than is looked at"), "{name}: {why}");
    }
    assert!(seen > 50, "{directory} holds {seen} units, which is no systemd");
    assert!(gentle * 20 > seen * 19, "of {seen} real units {gentle} are touched gently");
}

#[test]
fn all_units_of_a_real_rendered_config_are_looked_at() {
    for side in ["worker", "master"] {
        let path = format!("../../tests/corpus/openshift/rendered-{side}.json");
        let text = std::fs::read(&path).unwrap();
        let input = [Input { name: "a", bytes: &text }];
        let (config, _) = read::sides(&input, &input).map(|(old, new)| (old.config, new)).unwrap();
        let units = OwnUnits::of(&config, &config);
        for unit in config.units.iter().filter(|unit| touch_gently(&unit.name).is_ok()) {
            let why = units.why_not_gentle(&unit.name, &mut { ROOM }).unwrap_or_default();
            assert!(!why.contains("than is looked at"), "{side}: {} {why}", unit.name);
            let is_firstboot = why.contains("runs what ends the system");
            assert!(why.is_empty() || is_firstboot, "{side}: {} {why}", unit.name);
        }
        for name in ["crio.service", "kubelet.service", "chronyd.service"] {
            assert_eq!(units.why_not_gentle(name, &mut { ROOM }), None, "{side}: {name}");
        }
    }
}
