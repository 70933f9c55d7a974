//! Units on a host as it is: which links enable them, and what takes their place.

use super::*;
use crate::host::ThisHost;

const AT: &str = "/etc/systemd/system";
const SHIPPED: &str = "/usr/lib/systemd/system";
const WANTED_BY_MANY: &str = "/etc/systemd/system/multi-user.target.wants/a.service";
const WANTED_BY_A_SCREEN: &str = "/etc/systemd/system/graphical.target.wants/a.service";

/// A text with which a unit can be enabled.
fn text(target: &str) -> String {
    format!("[Service]\nExecStart=/bin/true\n[Install]\nWantedBy={target}\n")
}

/// A config with these units, as they stand in Ignition.
fn units(units: &str) -> Documents {
    documents(&[], &format!(r#", "systemd": {{"units": [{units}]}}"#))
}

/// A unit `a.service` with this text, enabled.
fn own(text: &str) -> Documents {
    let text = text.replace('\n', "\\n");
    units(&format!(r#"{{"name": "a.service", "enabled": true, "contents": "{text}"}}"#))
}

/// One of which the config says only this.
fn said(what: &str) -> Documents {
    units(&format!(r#"{{"name": "a.service", {what}}}"#))
}

/// A unit `a.service` that is enabled, and whose text the config has as a file.
fn brought(text: &str) -> Documents {
    let text = text.replace('\n', "%0A").replace('[', "%5B").replace(']', "%5D");
    let enabled = r#", "systemd": {"units": [{"name": "a.service", "enabled": true}]}"#;
    documents(&[("/etc/systemd/system/a.service", text.as_str())], enabled)
}

impl Bed {
    fn host(&self) -> ThisHost {
        ThisHost::read(&self.tree(), false).unwrap()
    }

    /// A host whose image ships a unit `a.service` with this text.
    fn shipping(text: &str) -> Bed {
        let bed = Bed::with(&documents(&[], ""));
        bed.file(&format!("{SHIPPED}/a.service"), text);
        bed
    }

    /// The config is applied, and whoever proves the node finds it there.
    fn gets(&self, to: &Documents) {
        self.apply_by(&self.host(), to, &[]).unwrap();
        assert_eq!(self.drifted(), Vec::<String>::new());
    }

    fn drifted(&self) -> Vec<String> {
        let applied = Applied::read(&self.tree()).unwrap().unwrap();
        let config = applied.documents.config().unwrap();
        let desired = wanted(&config, &self.host()).unwrap();
        let found = drift(&self.tree(), &desired, &applied.accepted).unwrap();
        found.into_iter().map(|it| format!("{}: {}", it.path, it.differs)).collect()
    }

    fn link(&self, path: &str) -> Option<String> {
        let target = std::fs::read_link(self.path(path)).ok()?;
        Some(target.to_str().unwrap().to_owned())
    }
}

#[test]
fn a_unit_that_was_masked_is_enabled_by_the_config_that_unmasks_it() {
    let bed = Bed::shipping(&text("multi-user.target"));
    let (own, shipped) = (format!("{AT}/a.service"), format!("{SHIPPED}/a.service"));
    for next in [r#""mask": false, "enabled": true"#, r#""enabled": true"#] {
        bed.gets(&said(r#""mask": true"#));
        assert_eq!(bed.link(&own).as_deref(), Some("/dev/null"));
        assert_eq!(bed.link(WANTED_BY_MANY), None);
        bed.gets(&said(next));
        assert_eq!(bed.link(&own), None);
        assert_eq!(bed.link(WANTED_BY_MANY).as_ref(), Some(&shipped));
    }
    // As with an order, so where it is adopted.
    bed.gets(&said(r#""mask": true"#));
    let (tree, order) = (bed.tree(), ("adopt", said(r#""enabled": true"#), Adopt::Overwrite));
    let adoption = adopt(&tree, &bed.host(), &no_label, order, Vec::new()).unwrap();
    let journal = Journal::open(&tree).unwrap();
    journal.write(&adoption.ready.record, &adoption.ready.new).unwrap();
    journal.finish().unwrap();
    assert_eq!(bed.drifted(), Vec::<String>::new());
    assert_eq!((bed.link(&own), bed.link(WANTED_BY_MANY)), (None, Some(shipped)));
}

#[test]
fn a_mask_of_the_image_goes_where_the_config_says_mask_false() {
    let bed = Bed::shipping(&text("multi-user.target"));
    let own = format!("{AT}/a.service");
    std::fs::create_dir_all(bed.path(AT)).unwrap();
    std::os::unix::fs::symlink("/dev/null", bed.path(&own)).unwrap();
    let masked = Some("/dev/null".to_owned());
    bed.gets(&said(r#""dropins": [{"name": "1.conf", "contents": "[Unit]\n"}]"#));
    assert_eq!(bed.link(&own), masked, "nothing said leaves it");
    for (next, is_enabled) in
        [(r#""mask": false"#, false), (r#""mask": false, "enabled": true"#, true)]
    {
        bed.gets(&said(next));
        assert_eq!(bed.link(&own), None, "{next}");
        assert_eq!(bed.link(WANTED_BY_MANY).is_some(), is_enabled, "{next}");
        // Without that it is masked again.
        let error = bed.apply_by(&bed.host(), &said(r#""enabled": true"#), &[]).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("masks it; unmask it first"), "{next}: {error}");
        bed.gets(&documents(&[], ""));
        assert_eq!((bed.link(&own), bed.link(WANTED_BY_MANY)), (masked.clone(), None), "{next}");
    }
    // A file of the image is no mask.
    std::fs::remove_file(bed.path(&own)).unwrap();
    bed.file(&own, "[Unit]\n");
    bed.gets(&said(r#""mask": false"#));
    assert_eq!(bed.text(&own).as_deref(), Some("[Unit]\n"));
}

#[test]
fn a_unit_that_is_brought_as_a_file_is_enabled_as_one_that_is_brought_as_a_unit() {
    let own_file = format!("{AT}/a.service");
    for config in [brought(&text("multi-user.target")), own(&text("multi-user.target"))] {
        let bed = Bed::with(&documents(&[], ""));
        bed.gets(&config);
        assert_eq!(bed.link(WANTED_BY_MANY).as_ref(), Some(&own_file));
        // Without its file there is nothing to enable.
        let error = bed.apply_by(&bed.host(), &said(r#""enabled": true"#), &[]).unwrap_err();
        assert!(error.to_string().contains("there is no such unit"), "{error}");
        bed.gets(&documents(&[], ""));
        assert_eq!(bed.link(WANTED_BY_MANY), None);
        assert_eq!(bed.text(&own_file), None);
    }
}

#[test]
fn links_follow_the_install_section_that_will_be_there() {
    let (many, screen) = (text("multi-user.target"), text("graphical.target"));
    let dropin = screen.replace('\n', "\\n");
    let with_dropin =
        format!(r#""enabled": true, "dropins": [{{"name": "1.conf", "contents": "{dropin}"}}]"#);
    let shipped = format!("{SHIPPED}/a.service");
    let own_file = format!("{AT}/a.service");
    for (image, old, new, by_many, by_a_screen) in [
        // The text is another one.
        (None, brought(&many), brought(&screen), None, Some(&own_file)),
        (None, own(&many), brought(&screen), None, Some(&own_file)),
        // The image's comes back.
        (Some(&screen), own(&many), said(r#""enabled": true"#), None, Some(&shipped)),
        (Some(&screen), brought(&many), said(r#""enabled": true"#), None, Some(&shipped)),
        // A drop-in goes.
        (Some(&many), said(&with_dropin), said(r#""enabled": true"#), Some(&shipped), None),
    ] {
        let bed = Bed::with(&documents(&[], ""));
        if let Some(text) = image {
            bed.file(&shipped, text);
        }
        bed.gets(&old);
        bed.gets(&new);
        assert_eq!(bed.link(WANTED_BY_MANY).as_ref(), by_many, "{old:?} {new:?}");
        assert_eq!(bed.link(WANTED_BY_A_SCREEN).as_ref(), by_a_screen, "{old:?} {new:?}");
    }
}

#[test]
fn another_unit_may_have_the_other_name_of_one_that_goes() {
    let unit = |name: &str| {
        let text = "[Service]\\nExecStart=/bin/true\\n[Install]\\nAlias=other.service\\n";
        units(&format!(r#"{{"name": "{name}", "enabled": true, "contents": "{text}"}}"#))
    };
    let bed = Bed::with(&documents(&[], ""));
    let alias = format!("{AT}/other.service");
    for name in ["b.service", "a.service"] {
        bed.gets(&unit(name));
        assert_eq!(bed.link(&alias), Some(format!("{AT}/{name}")));
    }
}

#[test]
fn a_drop_in_without_contents_takes_away_the_one_that_is_there() {
    let bed = Bed::shipping("[Service]\nExecStart=/bin/true\n");
    let path = format!("{AT}/a.service.d/1.conf");
    let dropin = |rest: &str| said(&format!(r#""dropins": [{{"name": "1.conf"{rest}}}]"#));
    bed.file(&path, "[Unit]\n");
    for rest in ["", r#", "contents": """#] {
        bed.gets(&dropin(rest));
        assert_eq!(bed.text(&path), None, "{rest}");
        bed.gets(&documents(&[], ""));
        assert_eq!(bed.text(&path).as_deref(), Some("[Unit]\n"), "it comes back with {rest}");
    }
    // It has no say in what enables the unit either.
    bed.file(&path, "[Install]\nWantedBy=multi-user.target\n");
    bed.gets(&said(r#""enabled": true, "dropins": [{"name": "1.conf"}]"#));
    assert_eq!(bed.link(WANTED_BY_MANY), None);
}

#[test]
fn an_empty_drop_in_that_ignition_wrote_is_no_drift_and_one_with_a_text_is() {
    let bed = Bed::shipping("[Service]\nExecStart=/bin/true\n");
    let path = format!("{AT}/a.service.d/1.conf");
    bed.file(&path, "");
    bed.gets(&said(r#""dropins": [{"name": "1.conf", "contents": ""}]"#));
    assert_eq!(bed.text(&path).as_deref(), Some(""));
    bed.file(&path, "[Unit]\n");
    assert_eq!(bed.drifted(), [format!("{path}: it should not be there")]);
}
