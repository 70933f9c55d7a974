//! Pairs of MachineConfigs to measure with: rendered configs as OpenShift's
//! operator writes them, of which one file differs. The same at every call.

use std::fmt::Write as _;

/// How much is in a config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// 20 files, 10 units.
    Small,
    /// 150 files, 60 units.
    Typical,
    /// 2,000 files, 400 units.
    Large,
}

/// All of them.
pub(crate) const SIZES: [Size; 3] = [Size::Small, Size::Typical, Size::Large];

impl Size {
    /// What to call it in a table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Size::Small => "small",
            Size::Typical => "typical",
            Size::Large => "large",
        }
    }

    /// How many files and units that is.
    fn counts(self) -> (usize, usize) {
        match self {
            Size::Small => (20, 10),
            Size::Typical => (150, 60),
            Size::Large => (2000, 400),
        }
    }
}

/// What differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Differs {
    /// A line of a file that no policy knows.
    File,
    /// `registries.conf`, by one added mirror.
    Mirror,
}

/// The old and the new config, as JSON.
pub(crate) fn pair(size: Size, differs: Differs) -> (Vec<u8>, Vec<u8>) {
    let old = machine_config(size, "0c5c3b7a4e", None);
    let new = machine_config(size, "9d1f62aa07", Some(differs));
    (old.into_bytes(), new.into_bytes())
}

fn machine_config(size: Size, name: &str, differs: Option<Differs>) -> String {
    let (files, units) = size.counts();
    let mut numbers = Numbers(7);
    let mut json = format!(
        concat!(
            r#"{{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfig","#,
            r#""metadata":{{"annotations":{{"machineconfiguration.openshift.io/"#,
            r#"generated-by-controller-version":"4f1a2b"}},"creationTimestamp":"#,
            r#""2026-02-03T04:05:06Z","generation":1,"name":"rendered-worker-{}","#,
            r#""ownerReferences":[{{"apiVersion":"machineconfiguration.openshift.io/v1","#,
            r#""blockOwnerDeletion":true,"controller":true,"kind":"MachineConfigPool","#,
            r#""name":"worker","uid":"6bcf3e4e"}}],"resourceVersion":"81234","uid":"1f0d"}},"#,
            r#""spec":{{"baseOSExtensionsContainerImage":"","config":{{"ignition":"#,
            r#"{{"version":"3.5.0"}},"passwd":{{"users":[{{"name":"core","#,
            r#""sshAuthorizedKeys":["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMzf core@example"]}}]}},"#,
            r#""storage":{{"files":["#,
        ),
        name
    );
    for index in 0..files {
        if index > 0 {
            json.push(',');
        }
        file(index, files, differs, &mut numbers, &mut json);
    }
    json.push_str(r#"]},"systemd":{"units":["#);
    for index in 0..units {
        if index > 0 {
            json.push(',');
        }
        unit(index, &mut numbers, &mut json);
    }
    json.push_str(concat!(
        r#"]}},"extensions":["usbguard"],"fips":false,"kernelArguments":["#,
        r#""systemd.unified_cgroup_hierarchy=1","cgroup_no_v1=\"all\"","psi=0"],"#,
        r#""kernelType":"default","osImageURL":"quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:"#,
        r#"5d1f0f9e0c0d4b7f8a9b1c2d3e4f5a6b7c8d9e0f1a2b3c4d5e6f708192a3b4c5"}}"#,
    ));
    json.push('\n');
    json
}

fn file(
    index: usize,
    files: usize,
    differs: Option<Differs>,
    numbers: &mut Numbers,
    json: &mut String,
) {
    const FOLDERS: [&str; 5] = [
        "/usr/local/bin/",
        "/etc/kubernetes/",
        "/etc/NetworkManager/conf.d/",
        "/etc/crio/crio.conf.d/",
        "/etc/sysctl.d/",
    ];
    let mut text = text(numbers);
    if index == files / 9 && differs == Some(Differs::File) {
        text.push_str("setting_7 = \"another\"\n");
    }
    let registries = registries(differs == Some(Differs::Mirror));
    let (path, text) = if index == files / 2 {
        ("/etc/containers/registries.conf".to_owned(), registries.as_str())
    } else {
        // A rendered config is made of several that are each in order.
        let folder = FOLDERS[index * FOLDERS.len() / files];
        (format!("{folder}{index:04}-generated.conf"), text.as_str())
    };
    json.push_str(r#"{"contents":{"compression":"","source":"#);
    if index % 7 == 3 {
        string(&format!("data:,{}", percent_encoded(text)), json);
    } else {
        let encoded = base64(text.as_bytes());
        string(&format!("data:text/plain;charset=utf-8;base64,{encoded}"), json);
    }
    let mode = if index.is_multiple_of(5) { 0o755 } else { 0o644 };
    // Writing to a String cannot fail.
    let _ = write!(json, r#"}},"mode":{mode},"overwrite":true,"path":"#);
    string(&path, json);
    json.push('}');
}

fn unit(index: usize, numbers: &mut Numbers, json: &mut String) {
    let text = format!(
        "[Unit]\nDescription=Generated service {index} & its friends\nAfter=network-online.target\n\
         \n[Service]\nType=oneshot\n{}ExecStart=/usr/local/bin/run \"{index}\"\n\n[Install]\n\
         WantedBy=multi-user.target\n",
        format_args!("Environment=SEED={}\n", numbers.next())
    );
    json.push('{');
    if index % 4 == 1 {
        json.push_str(r#""dropins":[{"contents":"#);
        string(&format!("[Service]\nEnvironment=\"LIMIT={index}\"\n"), json);
        json.push_str(r#","name":"10-mco-default-env.conf"}],"#);
    } else {
        json.push_str(r#""contents":"#);
        string(&text, json);
        let _ = write!(json, r#","enabled":{},"#, !index.is_multiple_of(3));
    }
    let _ = write!(json, r#""name":"generated-{index:04}.service"}}"#);
}

/// A registries.conf as it is rendered from an ImageDigestMirrorSet.
fn registries(with_new_mirror: bool) -> String {
    let mut toml = String::from(
        "unqualified-search-registries = [\"registry.access.redhat.com\", \"docker.io\"]\n\
         short-name-mode = \"\"\n",
    );
    for team in 0..12 {
        let _ = write!(
            toml,
            "\n[[registry]]\n  prefix = \"\"\n  location = \"quay.io/team-{team:02}\"\n\n\
             \x20 [[registry.mirror]]\n    location = \"mirror.example.com:5000/team-{team:02}\"\n\
             \x20   pull-from-mirror = \"digest-only\"\n"
        );
        if with_new_mirror && team == 4 {
            toml.push_str(
                "\n  [[registry.mirror]]\n    location = \"mirror.example.org/team-04\"\n    \
                 pull-from-mirror = \"digest-only\"\n",
            );
        }
    }
    toml
}

/// Lines of configuration, 0.2 to 8 KB.
fn text(numbers: &mut Numbers) -> String {
    let length = match numbers.next() % 10 {
        0..5 => 200 + numbers.next() % 1_300,
        5..9 => 1_500 + numbers.next() % 3_000,
        _ => 4_500 + numbers.next() % 3_500,
    };
    let mut text = String::from("# Generated & managed: do not edit\n");
    while text.len() < length {
        let (key, value) = (numbers.next() % 1000, numbers.next());
        let _ = writeln!(text, "setting_{key} = \"value-{value:x}\"");
    }
    text
}

/// A JSON string as Go writes it.
fn string(text: &str, json: &mut String) {
    json.push('"');
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '&' | '<' | '>' => {
                let _ = write!(json, "\\u{:04x}", u32::from(c));
            }
            c => json.push(c),
        }
    }
    json.push('"');
}

fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            if digit <= chunk.len() {
                out.push(char::from(DIGITS[(group >> (18 - 6 * digit)) as usize % 64]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

/// Numbers that look random: the usual linear congruence.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 40) as usize
    }
}
