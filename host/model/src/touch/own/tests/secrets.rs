use super::*;

/// A config with a drop-in of `a.service` that others cannot read, and a unit beside it.
fn config(path: &str, text: &str, (unit, said): (&str, &str)) -> Value {
    let escaped: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
    json!({
        "storage": {"files": [{
            "path": format!("/etc/systemd/system/{path}"), "mode": 0o600,
            "contents": {"source": format!("data:,{escaped}")}}]},
        "systemd": {"units": [{"name": unit, "contents": said}]},
    })
}

#[test]
fn of_a_file_that_is_secret_no_directive_is_told() {
    let fine = ("b.service", "");
    let of_secret =
        |text: &str| why(&config("a.service.d/x.conf", text, fine), "a.service").unwrap();
    assert_eq!(
        of_secret("[Service]\nhunter2=x\n"),
        "may not be touched gently: its unit says more than is looked at, on line 2 of \
         /etc/systemd/system/a.service.d/x.conf"
    );
    for said in [
        "ExecHunter2=/usr/sbin/reboot",
        "SuccessAction=hunter2",
        "StandardOutput=file:/proc/sysrq-trigger",
        "Wants=reboot.target",
        "Wants=%H-hunter2",
        "Conflicts=kubelet.service",
        "OnFailureJobMode=isolate",
        "StandardInputData=aHVudGVyMg==",
    ] {
        let why = of_secret(&format!("[Service]\n\n{said}\n"));
        assert_eq!(
            why,
            "would not be touched gently: its unit ends the system, or takes much of a node with it, by \
             line 3 of /etc/systemd/system/a.service.d/x.conf",
            "{said}"
        );
    }
}

#[test]
fn of_what_a_file_that_is_secret_names_no_unit_is_told() {
    let ends = "[Unit]\nSuccessAction=reboot\n";
    let told = |path: &str, line: usize| {
        format!(
            "may not be touched gently: by line {line} of /etc/systemd/system/{path} others come with \
             it that are not touched gently, or of which more is said than is looked at"
        )
    };
    for (path, text, beside) in [
        ("a.service.d/x.conf", "[Unit]\nWants=tok-hunter2.service\n", ends),
        ("a.service.d/x.conf", "[Unit]\nWants=tok-hunter2.service\n", "[Unit]\nHunter3=x\n"),
        ("a.service.d/x.conf", "[Unit]\nPropagatesStopTo=tok-hunter2.service\n", ends),
        ("a.service.d/x.conf", "[Service]\nExecStop=systemctl start tok-hunter2\n", ends),
        // One after the other.
        (
            "a.service.d/x.conf",
            "[Unit]\nWants=c.socket\n",
            "[Unit]\nRequiredBy=c.service\nSuccessAction=reboot\n",
        ),
        ("tok-hunter2.service.d/x.conf", "[Unit]\nPartOf=a.service\n", ends),
        ("tok-hunter2.service.d/x.conf", "[Install]\nAlias=a.service\n", ends),
        ("kubepods.slice.d/x.conf", "[Unit]\nPartOf=a.service\n", ""),
        ("kubelet.service.d/x.conf", "[Unit]\nConflicts=a.service\n", ""),
        ("reboot.target.d/x.conf", "[Install]\nWantedBy=a.service\n", ""),
        ("tok-.service.d/x.conf", "[Unit]\nPartOf=a%H.service a.service\n", ""),
    ] {
        let config = config(path, text, ("tok-hunter2.service", beside));
        assert_eq!(why(&config, "a.service").unwrap(), told(path, 2), "{path} {text}");
    }
    // A mount that only a secret text names, and a link of such a unit.
    let mut mount =
        config("a.service.d/x.conf", "[Unit]\nRequiresMountsFor=/hunter2\n", ("b.service", ""));
    let fstab = json!({"path": "/etc/fstab", "contents": {"source": "data:,x-systemd."}});
    mount["storage"]["files"].as_array_mut().unwrap().push(fstab);
    let mut link =
        config("a.service.d/x.conf", "[Unit]\nWants=hunter2.service\n", ("b.service", ""));
    link["storage"]["links"] =
        json!([{"path": "/etc/systemd/system/hunter2.service", "target": "/opt/b"}]);
    for config in [mount, link] {
        assert_eq!(why(&config, "a.service").unwrap(), told("a.service.d/x.conf", 2), "{config}");
    }
    // What a file says that everybody reads is told.
    let mut open =
        config("a.service.d/x.conf", "[Unit]\nWants=tok-b.service\n", ("tok-b.service", ends));
    open["storage"]["files"][0]["mode"] = json!(0o644);
    let why = why(&open, "a.service").unwrap();
    assert!(why.contains("tok-b.service, which it starts, has SuccessAction="), "{why}");
}
