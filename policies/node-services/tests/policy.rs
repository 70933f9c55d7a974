//! What the policy answers, key by key.

use tread_guest_sdk::{Action, Change, Content, Effect, Entry, File, Policy, State, Verdict, test};
use tread_policy_node_services::NodeServices;

const KUBELET: &str = "/etc/kubernetes/kubelet.conf";
const DROP_IN: &str = "/etc/crio/crio.conf.d/01-ctrcfg";
const STORAGE: &str = "/etc/containers/storage.conf";

fn of(path: &str, before: &str, after: &str) -> Verdict {
    test::verdict::<NodeServices>(test::file(path, before, after))
}

#[test]
fn another_mode_for_short_names_is_drained_for_unless_all_registries_are_asked() {
    let mode = |mode: &str| format!("[crio.image]\nshort_name_mode = {mode:?}");
    let (disabled, enforcing) = (mode("disabled"), mode("enforcing"));
    for (before, after, drains) in [
        (enforcing.as_str(), disabled.as_str(), false),
        ("", &disabled, false),
        (&disabled, &enforcing, true),
        (&disabled, &mode("permissive"), true),
        (&disabled, "", true),
        ("", &enforcing, true),
    ] {
        let verdict = of(DROP_IN, before, after);
        let restart = Action::restart("crio.service");
        let expected = if drains { vec![Action::Drain, restart] } else { vec![restart] };
        assert_eq!(verdict.actions(), expected, "{before} to {after}: {}", verdict.reason());
        assert!(verdict.reason().contains("crio.image.short_name_mode is"), "{}", verdict.reason());
        assert_eq!(verdict.reason().contains("a pull that worked may fail"), drains);
    }
    let removed = test::verdict::<NodeServices>(test::file_removed(DROP_IN, &disabled));
    assert!(removed.actions().contains(&Action::Drain), "{}", removed.reason());
}

#[test]
fn what_a_pull_that_worked_needs_is_drained_for() {
    let list = |items: &str| format!("[crio.image]\ninsecure_registries = [{items}]");
    let text = |key: &str, value: &str| format!("[crio.image]\n{key} = {value:?}");
    let mut all = vec![
        (list("'r:5000'"), list(""), true),
        (list("'r:5000', 's'"), list("'s', 't'"), true),
        (list("'r:5000'"), String::new(), true),
        // Another file may have others, which this list stands in place of.
        (String::new(), list("'r:5000'"), true),
        (list("'r:5000'"), text("insecure_registries", "r:5000"), true),
        (list(""), list("'r:5000'"), false),
        (list("'r:5000'"), list("'s', 'r:5000'"), false),
        (list("'r:5000', 's'"), list("'s', 'r:5000'"), false),
    ];
    for key in [
        "big_files_temporary_dir",
        "default_transport",
        "global_auth_file",
        "namespaced_auth_dir",
        "signature_policy",
        "signature_policy_dir",
    ] {
        all.push((text(key, "/etc/a"), text(key, "/etc/b"), true));
        all.push((text(key, "/etc/a"), String::new(), true));
        all.push((String::new(), text(key, "/etc/a"), true));
    }
    for key in ["decryption_keys_path", "separate_pull_cgroup"] {
        let runtime = |value: &str| format!("[crio.runtime]\n{key} = {value:?}");
        all.push((runtime("/etc/a"), runtime("/etc/b"), true));
        all.push((runtime("/etc/a"), String::new(), true));
        all.push((String::new(), runtime("/etc/a"), true));
    }
    for (before, after, drains) in all {
        let verdict = of(DROP_IN, &before, &after);
        let restart = Action::restart("crio.service");
        let expected = if drains { vec![Action::Drain, restart] } else { vec![restart] };
        assert_eq!(verdict.actions(), expected, "{before} to {after}: {}", verdict.reason());
        assert_eq!(verdict.reason().contains("a pull that worked may fail"), drains);
    }
}

#[test]
fn each_key_costs_what_the_table_says() {
    let (reload, restart, reboot) = (Effect::Reload, Effect::Restart, Effect::Reboot);
    for (path, text, effect, names) in [
        (
            DROP_IN,
            "[crio.runtime]\nlog_level = 'debug'",
            reload,
            "crio.runtime.log_level is read again",
        ),
        (
            DROP_IN,
            "[crio.runtime]\nlog_filter = 'x'\nlog_level = 'debug'",
            reload,
            "crio.runtime.log_filter and crio.runtime.log_level are",
        ),
        (
            DROP_IN,
            "[crio.runtime]\nlog_filter = 'x'\ndefault_runtime = 'crun'",
            reboot,
            "crio.runtime.default_runtime",
        ),
        (DROP_IN, "[crio.image]\npause_image = 'x'", reload, "crio.image.pause_image"),
        (
            DROP_IN,
            "[crio.image]\nimage_volumes = 'bind'",
            restart,
            "crio.image.image_volumes is read when CRI-O starts",
        ),
        (DROP_IN, "[crio.runtime]\npids_limit = 1", restart, "crio.runtime.pids_limit"),
        (
            DROP_IN,
            "[crio.runtime]\npids_limit = 1\nlog_level = 'debug'",
            restart,
            "crio.runtime.pids_limit is",
        ),
        (DROP_IN, "[crio.runtime]\nlog_levels = 1", reboot, "crio.runtime.log_levels"),
        (DROP_IN, "[crio.runtime.workloads.a]", restart, "crio.runtime.workloads.a is"),
        (DROP_IN, "[crio.runtime.workloads.a.resources]\ncpus = '1'", restart, "a.resources.cpus"),
        (DROP_IN, "[crio.runtime]\ncontainer_exits_dir = '/x'", reboot, "container_exits_dir"),
        (DROP_IN, "[crio.runtime.pids_limit]\nx = 1", reboot, "crio.runtime.pids_limit.x"),
        (DROP_IN, "[crio]\n\"runtime.log_level\" = 'debug'", reboot, "crio.runtime.log_level"),
        (DROP_IN, "[crio.x]", reboot, "crio.x"),
        (DROP_IN, "[crio.nri]", reboot, "crio.nri"),
        (DROP_IN, "[crio.metrics]\nenable_metrics = true", restart, "crio.metrics.enable_metrics"),
        (DROP_IN, "[crio.network]\nplugin_dirs = []", reboot, "crio.network.plugin_dirs"),
        (DROP_IN, "[crio.network]\nnetwork_dir = '/n'", reboot, "crio.network.network_dir"),
        (DROP_IN, "[crio.network]\ncni_default_network = 'n'", reboot, "cni_default_network"),
        (DROP_IN, "[crio.runtime]\nrdt_config_file = '/r'", reboot, "rdt_config_file"),
        (DROP_IN, "[crio.runtime]\nshared_cpuset = '1'", reboot, "shared_cpuset"),
        (DROP_IN, "[crio.runtime]\ndisable_hostport_mapping = true", reboot, "hostport"),
        (
            DROP_IN,
            "[crio.runtime]\ncgroup_manager = 'cgroupfs'",
            reboot,
            "known for crio.runtime.cgroup_manager",
        ),
        (
            DROP_IN,
            "[crio.runtime]\nselinux = false\nlog_level = 'debug'",
            reboot,
            "known for crio.runtime.selinux",
        ),
        (
            DROP_IN,
            "[crio.runtime]\nuid_mappings = 'x'\ngid_mappings = 'x'",
            reboot,
            "crio.runtime.gid_mappings and crio.runtime.uid_mappings",
        ),
        (DROP_IN, "[crio]\nroot = '/x'", reboot, "crio.root"),
        (DROP_IN, "[crio]\nruntime = 'x'", reboot, "crio.runtime"),
        (DROP_IN, "[crio.api]\nlisten = '/x'", reboot, "crio.api.listen"),
        (DROP_IN, "other = 1", reboot, "other"),
        (
            KUBELET,
            "logging:\n  verbosity: 4",
            restart,
            "logging.verbosity is read when the kubelet starts",
        ),
        (
            KUBELET,
            "evictionHard:\n  memory.available: 1Gi",
            Effect::Drain,
            "evictionHard.memory.available",
        ),
        (
            KUBELET,
            "{\"kubeAPIQPS\": 100, \"kubeAPIBurst\": 200}",
            restart,
            "kubeAPIBurst and kubeAPIQPS",
        ),
        (KUBELET, "serializeImagePulls: false", restart, "serializeImagePulls is read when"),
        (KUBELET, "maxParallelImagePulls: 5", restart, "maxParallelImagePulls is read when"),
        (KUBELET, "streamingConnectionIdleTimeout: 5m", restart, "IdleTimeout is read when"),
        (KUBELET, "syncFrequency: 2m", restart, "syncFrequency is read when"),
        (KUBELET, "volumeStatsAggPeriod: 2m", restart, "volumeStatsAggPeriod is read when"),
        (KUBELET, "cpuManagerPolicy: static\nkubeAPIQPS: 1", reboot, "cpuManagerPolicy"),
        (KUBELET, "kind: Other", reboot, "kind"),
        (KUBELET, "evictionHardest: 1", reboot, "evictionHardest"),
        (KUBELET, "a: 1\nb: 1\nc: 1\nd: 1\ne: 1", reboot, "a, b, c and 2 more"),
        (
            STORAGE,
            "[storage.options]\npull_options = {a = 'b'}",
            restart,
            "storage.options.pull_options.a",
        ),
        (
            STORAGE,
            "[storage.options]\npull_optionsx = 'b'",
            reboot,
            "storage.options.pull_optionsx",
        ),
        (STORAGE, "[storage]\ndriver = 'vfs'", reboot, "storage.driver"),
        (
            STORAGE,
            "[storage.options.overlay]\nmountopt = 'x'",
            reboot,
            "storage.options.overlay.mountopt",
        ),
    ] {
        for verdict in [of(path, "", text), of(path, text, "")] {
            assert_eq!(verdict.effect(), Some(effect), "{path}: {text}");
            assert!(verdict.reason().contains(names), "{text}: {}", verdict.reason());
        }
    }
}

#[test]
fn each_service_is_the_one_that_reads_the_file() {
    let unit = |verdict: Verdict| verdict.actions().to_vec();
    assert_eq!(
        unit(of(DROP_IN, "", "[crio.image]\nimage_volumes = 'bind'")),
        [Action::restart("crio.service")]
    );
    assert_eq!(unit(of(KUBELET, "", "logging: {a: 1}")), [Action::restart("kubelet.service")]);
    let pull = "[storage.options.pull_options]\na = 'b'";
    assert_eq!(unit(of(STORAGE, "", pull)), [Action::restart("crio.service")]);
}

#[test]
fn comments_order_and_layout_are_no_change() {
    for (path, before, after) in [
        (
            DROP_IN,
            "[crio.runtime]\na = 1\nb = 2",
            "# new\n[crio]\n[crio.runtime]\nb = 2 # two\na = 1\n[crio.network]",
        ),
        (KUBELET, "a: 1\nb:\n- x\nc:\n", "# new\nb: [x]\na: 1\nc: null\n"),
        (KUBELET, "a: 1\nb: {c: x}", "{\"b\": {\"c\": \"x\"}, \"a\": 1}"),
        (STORAGE, "[storage]\ndriver = \"overlay\"", "storage = { driver = 'overlay' }"),
    ] {
        let verdict = of(path, before, after);
        assert_eq!(verdict.effect(), Some(Effect::None), "{after}: {}", verdict.reason());
    }
}

#[test]
fn a_file_that_comes_or_goes_sets_or_unsets_its_keys() {
    let text = "[crio.runtime]\nlog_level = 'debug'";
    for change in [test::file_added(DROP_IN, text), test::file_removed(DROP_IN, text)] {
        assert_eq!(test::verdict::<NodeServices>(change).effect(), Some(Effect::Reload));
    }
    let empty = test::file_added(DROP_IN, "# nothing\n");
    assert_eq!(test::verdict::<NodeServices>(empty).effect(), Some(Effect::None));
}

#[test]
fn a_key_that_only_crio_takes_for_a_known_one_is_a_reboot() {
    for odd in [
        "[crio.runtime]\nSELinux = false",
        "[crio.runtime]\nCgroup_Manager = 'cgroupfs'",
        "[crio.runtime]\n\"\u{17f}elinux\" = false",
        "[crio.runtime]\nLog_Level = 'debug'",
        "[crio.runtime]\nlog_level = 'debug'\n[Crio.Runtime]\nselinux = false",
        "[CRIO.runtime]\nselinux = false",
        "[crio.RUNTIME]\nlog_level = 'debug'",
        "[crio.runtime.Runtimes.kata]\nruntime_path = '/k'",
        "[crio.metrics]\n\"metrics_\u{212a}ey\" = '/x'",
    ] {
        for (before, after) in [("", odd), (odd, "")] {
            assert_eq!(of(DROP_IN, before, after).effect(), Some(Effect::Reboot), "{odd}");
        }
    }
    let odd = "[storage.options.Pull_Options]\na = 'b'";
    assert_eq!(of(STORAGE, "", odd).effect(), Some(Effect::Reboot));
    // The kubelet knows exact names only, and passes over others.
    assert_eq!(of(KUBELET, "", "Logging: {a: 1}").effect(), Some(Effect::Reboot));
}

#[test]
fn an_empty_table_of_a_map_is_an_entry() {
    let base = "[crio.runtime]\nlog_level = 'info'\n";
    let handler = format!("{base}[crio.runtime.runtimes.kata]\n");
    let added = of(DROP_IN, base, &handler);
    assert_eq!(added.effect(), Some(Effect::Restart));
    assert!(added.reason().contains("crio.runtime.runtimes.kata is"), "{}", added.reason());
    assert_eq!(of(DROP_IN, &handler, base).effect(), Some(Effect::Reboot));
    let workload = format!("{base}[crio.runtime.workloads.w]\n");
    assert_eq!(of(DROP_IN, base, &workload).effect(), Some(Effect::Restart));
    let pull = "[storage.options.pull_options]";
    assert_eq!(of(STORAGE, "[storage]", pull).effect(), Some(Effect::Restart));
}

#[test]
fn a_runtime_handler_may_come_with_a_restart_and_nothing_else_may_happen_to_it() {
    let kata = "[crio.runtime.runtimes.kata]\nruntime_path = '/k'\nruntime_type = 'vm'\n";
    let gvisor = "[crio.runtime.runtimes.gvisor]\nruntime_path = '/g'\n";
    let effect = |before: &str, after: &str| of(DROP_IN, before, after).effect();
    assert_eq!(effect("", kata), Some(Effect::Restart));
    assert_eq!(effect(kata, &format!("{kata}{gvisor}")), Some(Effect::Restart));
    // Running containers are found again by what it says once CRI-O starts again, and by nothing if
    // CRI-O does not take it.
    for line in [
        "allowed_annotations = ['io.kubernetes.cri-o.Devices']",
        "container_min_memory = '12MiB'",
        "no_sync_log = true",
        "runtime_root = '/run/kata'",
        "inherit_default_runtime = true",
        "Runtime_Root = '/run/kata'",
        "quantum = true",
        "",
    ] {
        let after = format!("[crio.runtime.runtimes.kata]\nruntime_path = '/k'\n{line}\n");
        assert_eq!(effect(kata, &after), Some(Effect::Reboot), "{line}");
        assert_eq!(effect(&after, kata), Some(Effect::Reboot), "{line}");
    }
    let elsewhere = "[crio.runtime.runtimes.kata]\nruntime_path = '/l'\nruntime_type = 'vm'\n";
    assert_eq!(effect(kata, elsewhere), Some(Effect::Reboot));
    // CRI-O has these anyway: a file that names one changes it.
    for text in ["", "runtime_root = '/run/r'", "allowed_annotations = ['a']"] {
        for name in ["runc", "crun"] {
            let after = format!("{kata}[crio.runtime.runtimes.{name}]\n{text}\n");
            assert_eq!(effect(kata, &after), Some(Effect::Reboot), "{name}: {text}");
        }
    }
    assert_eq!(effect(&format!("{kata}{gvisor}"), gvisor), Some(Effect::Reboot));
    assert_eq!(effect(kata, gvisor), Some(Effect::Reboot));
    assert_eq!(effect(kata, ""), Some(Effect::Reboot));
    let removed = test::verdict::<NodeServices>(test::file_removed(DROP_IN, kata));
    assert_eq!(removed.effect(), Some(Effect::Reboot));
}

#[test]
fn a_handler_that_another_file_defines_is_not_new() {
    const OTHER: &str = "/etc/crio/crio.conf.d/50-other";
    let kata = "[crio.runtime.runtimes.kata]\nallowed_annotations = ['a']\n";
    let whole = "[crio.runtime.runtimes.kata]\nruntime_type = 'vm'\n";
    let of = |changes: Vec<Change>, unchanged: Vec<Entry>| {
        test::verdicts::<NodeServices>(&(), changes, unchanged).pop().unwrap().effect()
    };
    let added = || test::file_added("/etc/crio/crio.conf.d/99-mine", kata);
    assert_eq!(of(vec![added()], vec![]), Some(Effect::Restart));
    for other in
        [whole, "[Crio.Runtime.runtimes]\nkata = {}\n", "[[", "[crio.runtime.runtimes.Kata]"]
    {
        let unchanged = vec![test::unchanged_file(OTHER, other)];
        assert_eq!(of(vec![added()], unchanged), Some(Effect::Reboot), "{other}");
        for change in [test::file_added(OTHER, other), test::file_removed(OTHER, other)] {
            assert_eq!(of(vec![change, added()], vec![]), Some(Effect::Reboot), "{other}");
        }
    }
    for (path, other) in [
        (OTHER, "[crio.runtime]\nlog_level = 'info'\n"),
        (OTHER, "[crio.runtime.runtimes.gvisor]\nruntime_path = '/g'\n"),
    ] {
        let unchanged = vec![test::unchanged_file(path, other)];
        assert_eq!(of(vec![added()], unchanged), Some(Effect::Restart), "{other}");
    }
}

#[test]
fn a_file_in_a_subdirectory_is_one_of_crio() {
    const BELOW: &str = "/etc/crio/crio.conf.d/50-team/log.toml";
    let level = "[crio.runtime]\nlog_level = 'debug'\n";
    assert_eq!(of(BELOW, "", level).effect(), Some(Effect::Reload));
    let kata = "[crio.runtime.runtimes.kata]\nruntime_type = 'vm'\n";
    let change = test::file_added(DROP_IN, kata);
    let unchanged = vec![test::unchanged_file(BELOW, kata)];
    let verdict = test::verdicts::<NodeServices>(&(), vec![change], unchanged).pop().unwrap();
    assert_eq!(verdict.effect(), Some(Effect::Reboot), "{}", verdict.reason());
}

const LEVEL: &str = "crio.runtime.log_level is none of trace, debug, info, warn, warning, error, \
                     fatal and panic";
const FILTER: &str = "crio.runtime.log_filter is no regular expression";
const IMAGE: &str = "crio.image.pause_image is no name of an image";

#[test]
fn what_crio_cannot_use_when_it_reads_it_again_is_refused() {
    for (text, says) in [
        ("[crio.runtime]\nlog_level = 'verbose'", LEVEL),
        ("[crio.runtime]\nlog_level = ''", LEVEL),
        ("[crio.runtime]\nlog_level = ' info'", LEVEL),
        ("[crio.runtime]\nlog_level = 4", "crio.runtime.log_level is no string in quotes"),
        ("[crio.runtime.log_level]", "crio.runtime.log_level is no string in quotes"),
        ("[crio.runtime.log_level]\nx = 1", "crio.runtime.log_level is no string in quotes"),
        ("[crio.runtime]\nlog_filter = '(request'", FILTER),
        ("[crio.runtime]\nlog_filter = ['request']", "crio.runtime.log_filter is no string"),
        ("[crio.image]\npause_image = ''", IMAGE),
        ("[crio.image]\npause_image = 'quay.io/pod:1 # new'", IMAGE),
        ("[crio.image]\npause_image = true", "crio.image.pause_image is no string"),
        ("[crio.image]\npause_image_auth_file = 1", "crio.image.pause_image_auth_file is no"),
        ("[crio.image]\npause_command = ['/pause']", "crio.image.pause_command is no string"),
        // Whatever else it says: CRI-O would not start either.
        ("[crio.runtime]\nlog_level = 'verbose'\npids_limit = 1", LEVEL),
        ("[crio.runtime]\nlog_level = 'verbose'\nselinux = false", LEVEL),
    ] {
        for before in ["", "[crio.runtime]\nlog_level = 'info'", "[[[ cannot be read"] {
            let verdict = of(DROP_IN, before, text);
            assert_eq!(verdict.effect(), Some(Effect::Refuse), "{text}: {}", verdict.reason());
            assert!(verdict.reason().starts_with(says), "{text}: {}", verdict.reason());
            assert!(verdict.reason().ends_with("Correct it"), "{}", verdict.reason());
            assert!(NodeServices::REASONS.contains(&verdict.reason()), "{}", verdict.reason());
        }
        for path in ["/etc/crio/crio.conf", "/etc/crio/crio.conf.d/10-crio.conf"] {
            let verdict = test::verdict::<NodeServices>(test::file_added(path, text));
            assert_eq!(verdict.effect(), Some(Effect::Refuse), "{path}: {text}");
        }
        // What is there already is nobody's doing, and taking it away mends it.
        assert_ne!(of(DROP_IN, text, &format!("# mine\n{text}")).effect(), Some(Effect::Refuse));
        assert_ne!(of(DROP_IN, text, "").effect(), Some(Effect::Refuse), "{text}");
    }
}

#[test]
fn what_crio_can_use_when_it_reads_it_again_is_a_reload() {
    let levels = ["trace", "DEBUG", "Info", "warn", "warning", "error", "fatal", "panic"];
    let level = |it: &str| format!("[crio.runtime]\nlog_level = '{it}'");
    let filters = ["", "request|response", "^(?i:a)[^]]*?$"];
    let filter = |it: &str| format!("[crio.runtime]\nlog_filter = '{it}'");
    let images = ["pause", "r.example:5000/a/pause:3.10", "[fd00::1]:5000/p_q@sha512+x:0a"];
    let image = |it: &str| format!("[crio.image]\npause_image = '{it}'");
    let all = levels.map(level).into_iter().chain(filters.map(filter)).chain(images.map(image));
    for text in all {
        for (before, after) in [("", text.as_str()), (&text, "")] {
            let verdict = of(DROP_IN, before, after);
            assert_eq!(verdict.effect(), Some(Effect::Reload), "{text}: {}", verdict.reason());
        }
    }
}

#[test]
fn a_value_in_whose_place_a_later_file_sets_another_is_not_refused() {
    let level = |it: &str| format!("[crio.runtime]\nlog_level = {it}\n");
    let verdict = |path: &str, text: &str, other: &str, others: &str| {
        let unchanged = vec![test::unchanged_file(other, others)];
        let change = test::file_added(path, text);
        test::verdicts::<NodeServices>(&(), vec![change], unchanged).pop().unwrap().effect()
    };
    let (bad, good) = (level("'verbose'"), level("'info'"));
    let dir = |name: &str| format!("/etc/crio/crio.conf.d/{name}");
    // CRI-O reads crio.conf, then what is below crio.conf.d, name by name.
    for (path, other, is_hidden) in [
        (dir("10-a"), dir("20-b"), true),
        (dir("10-a"), dir("10-a.d"), true),
        (dir("10-a/z"), dir("10-a.d/a"), true),
        (dir("10-a"), dir("05-b"), false),
        (dir("10-a.d/a"), dir("10-a/z"), false),
        (dir("10-a"), "/etc/crio/crio.conf".to_string(), false),
    ] {
        let expected = if is_hidden { Effect::Reload } else { Effect::Refuse };
        assert_eq!(verdict(&path, &bad, &other, &good), Some(expected), "{path}, {other}");
    }
    let (path, other) = (dir("10-a"), dir("20-b"));
    // It may set the key, too.
    assert_eq!(verdict(&path, &bad, &other, "[[["), Some(Effect::Reload));
    assert_eq!(
        verdict(&path, &bad, &other, "[Crio.runtime]\nLog_Level = 'info'"),
        Some(Effect::Reload)
    );
    assert_eq!(
        verdict(&path, &bad, &other, "[crio.image]\nlog_level = 'info'"),
        Some(Effect::Refuse)
    );
    // Of another kind than CRI-O reads, a value ends its reading whoever hides it.
    assert_eq!(verdict(&path, &level("4"), &other, &good), Some(Effect::Refuse));
    // One that goes hides nothing, and one that comes does.
    for (change, expected) in [
        (test::file_removed(&other, &good), Effect::Refuse),
        (test::file(&other, "", &good), Effect::Reload),
    ] {
        let changes = vec![test::file_added(&path, &bad), change];
        let verdict = test::verdicts::<NodeServices>(&(), changes, vec![]).swap_remove(0);
        assert_eq!(verdict.effect(), Some(expected), "{}", verdict.reason());
    }
}

const DROP_INS: &str = "/etc/crio/crio.conf.d/";

/// The verdicts on files of crio.conf.d, each with what it says before and after; `None` is no file.
fn of_drop_ins(files: &[(&str, Option<&str>, Option<&str>)]) -> Vec<(String, Verdict)> {
    let (mut changes, mut unchanged) = (Vec::new(), Vec::new());
    for (name, before, after) in files {
        let path = format!("{DROP_INS}{name}");
        match (before, after) {
            (Some(before), Some(after)) if before == after => {
                unchanged.push(test::unchanged_file(&path, before));
            }
            (Some(before), Some(after)) => changes.push(test::file(&path, before, after)),
            (None, Some(after)) => changes.push(test::file_added(&path, after)),
            (Some(before), None) => changes.push(test::file_removed(&path, before)),
            (None, None) => {}
        }
    }
    changes.sort_by(|a, b| a.id.cmp(&b.id));
    let names = changes.iter().map(|change| change.name().replace(DROP_INS, ""));
    let names: Vec<String> = names.collect();
    names.into_iter().zip(test::verdicts::<NodeServices>(&(), changes, unchanged)).collect()
}

#[test]
fn a_file_that_lets_a_value_count_that_crio_cannot_use_is_refused() {
    let level = |it: &str| format!("[crio.runtime]\nlog_level = {it:?}\n");
    let (bad, good, other) = (level("loud"), level("info"), level("debug"));
    let (bad, good, other) = (Some(bad.as_str()), Some(good.as_str()), Some(other.as_str()));
    let odd = Some("[crio.runtime]\nLog_Level = 'info'\n");
    let (empty, broken) = (Some("# nothing\n"), Some("[[["));
    for (files, refused) in [
        // What hid it is taken away, emptied, or renamed to what is read before it.
        (vec![("10-a", bad, bad), ("20-b", good, None)], &["20-b"][..]),
        (vec![("10-a", bad, bad), ("20-b", good, empty)], &["20-b"]),
        (vec![("10-a", bad, bad), ("20-b", good, None), ("05-b", None, good)], &["20-b"]),
        (vec![("10-a", bad, bad), ("20-b", broken, None)], &["20-b"]),
        (vec![("10-a", bad, bad), ("20-b", odd, None)], &["20-b"]),
        (vec![("10-a/z", bad, bad), ("10-a.d/b", good, None)], &["10-a.d/b"]),
        // Both have a part in it.
        (vec![("10-a", good, bad), ("20-b", other, None)], &["10-a", "20-b"]),
        // Another one hides it still.
        (vec![("10-a", bad, bad), ("20-b", good, None), ("30-c", good, good)], &[]),
        (vec![("10-a", bad, bad), ("20-b", good, None), ("30-c", None, other)], &[]),
        (vec![("10-a", bad, bad), ("20-b", good, None), ("30-c", odd, odd)], &[]),
        (vec![("10-a", bad, bad), ("20-b", good, other)], &[]),
        // What did not hide it has no part in it, and what counted before is nobody's doing.
        (vec![("10-a", bad, bad), ("05-b", good, None)], &[]),
        (vec![("10-a", bad, None), ("15-a", None, bad)], &[]),
        (vec![("10-a", bad, bad), ("20-b", bad, None)], &[]),
        (vec![("10-a", bad, bad), ("05-b", good, other), ("20-c", other, None)], &["20-c"]),
    ] {
        let verdicts = of_drop_ins(&files);
        let is_refused = |(_, it): &&(String, Verdict)| it.effect() == Some(Effect::Refuse);
        let names = verdicts.iter().filter(is_refused).map(|(name, _)| name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), refused, "{files:?} {verdicts:?}");
    }
    let (_, verdict) = of_drop_ins(&[("10-a", bad, bad), ("20-b", good, None)]).remove(0);
    let start = "/etc/crio/crio.conf.d/10-a counts then in place of this file: ";
    assert!(verdict.reason().starts_with(&format!("{start}{LEVEL}")), "{}", verdict.reason());
    assert!(!verdict.reason().contains("loud"), "{}", verdict.reason());
}

#[test]
fn a_file_that_packages_of_cri_o_bring_is_not_known() {
    for change in [test::file_added, test::file_removed] {
        let change =
            change("/etc/crio/crio.conf.d/10-crio.conf", "[crio.runtime]\nlog_level = 'info'\n");
        assert_eq!(test::verdict::<NodeServices>(change).effect(), Some(Effect::Reboot));
    }
}

#[test]
fn pods_move_before_the_kubelet_puts_them_off_the_node() {
    for text in [
        "evictionHard: {memory.available: 1Gi}",
        "evictionSoft: {memory.available: 1Gi}",
        "evictionSoftGracePeriod: {memory.available: 1m}",
        "mergeDefaultEvictionSettings: true",
        "maxPods: 100",
        "podsPerCore: 10",
    ] {
        for (before, after) in [("", text), (text, "")] {
            let verdict =
                of(KUBELET, &format!("kind: K\n{before}\n"), &format!("kind: K\n{after}\n"));
            let expected = [Action::Drain, Action::restart("kubelet.service")];
            assert_eq!(verdict.actions(), expected, "{before} to {after}: {}", verdict.reason());
            assert!(verdict.reason().contains("may have to go"), "{}", verdict.reason());
        }
    }
}

#[test]
fn directories_of_plugins_may_be_added_and_not_be_taken_away() {
    let dirs = |dirs: &str| format!("[crio.network]\nplugin_dirs = [{dirs}]\n");
    let effect = |before: &str, after: &str| of(DROP_IN, before, after).effect();
    assert_eq!(effect(&dirs("'/a'"), &dirs("'/a', '/b'")), Some(Effect::Restart));
    assert_eq!(effect(&dirs("'/a'"), &dirs("'/b'")), Some(Effect::Reboot));
    assert_eq!(effect("", &dirs("'/a'")), Some(Effect::Reboot));
}

#[test]
fn directories_of_plugins_in_another_order_are_looked_through_in_another_order() {
    let dirs = |dirs: &str| format!("[crio.network]\nplugin_dirs = [{dirs}]\n");
    for (before, after) in [
        ("'/a', '/b'", "'/b', '/a'"),
        ("'/a'", "'/b', '/a'"),
        ("'/a', '/b'", "'/a', '/c', '/b'"),
        ("'/a', '/b'", "'/a'"),
    ] {
        let verdict = of(DROP_IN, &dirs(before), &dirs(after));
        assert_eq!(verdict.effect(), Some(Effect::Reboot), "{before} to {after}");
    }
}

#[test]
fn a_pull_that_is_cancelled_earlier_is_drained_for() {
    let timeout = |it: &str| format!("[crio.image]\npull_progress_timeout = {it}\n");
    let restart = Action::restart("crio.service");
    for (before, after, drains) in [
        ("'0s'", "'10s'", true),
        ("'1m'", "'10s'", true),
        ("'1m'", "'59.5s'", true),
        ("'10s'", "'1m30s'", false),
        ("'60s'", "'1m'", false),
        ("'10s'", "'0s'", false),
        ("'10s'", "0", false),
        ("20000000000", "'10s'", true),
        ("10000000000", "'20s'", false),
        // With these CRI-O would cancel all, or not start.
        ("'10s'", "'-1s'", true),
        ("'10s'", "'1 minute'", true),
        ("'0s'", "[]", true),
    ] {
        let verdict = of(DROP_IN, &timeout(before), &timeout(after));
        let expected =
            if drains { vec![Action::Drain, restart.clone()] } else { vec![restart.clone()] };
        assert_eq!(verdict.actions(), expected, "{before} to {after}: {}", verdict.reason());
        assert_eq!(verdict.reason().contains("a pull that worked may fail"), drains);
    }
}

#[test]
fn the_pull_timeout_of_the_file_that_counts_is_compared() {
    let timeout = |it: &str| format!("[crio.image]\npull_progress_timeout = {it:?}\n");
    let (none, ten, sixty) = (timeout("0s"), timeout("10s"), timeout("1m"));
    let (none, ten, sixty) = (Some(none.as_str()), Some(ten.as_str()), Some(sixty.as_str()));
    for (files, drains) in [
        // Where nothing is said no pull is cancelled.
        (vec![("50-a", None, ten)], true),
        (vec![("50-a", None, none)], false),
        (vec![("50-a", ten, None)], false),
        (vec![("50-a", ten, None), ("20-b", sixty, sixty)], false),
        (vec![("50-a", sixty, None), ("20-b", ten, ten)], true),
        (vec![("50-a", none, None), ("20-b", ten, ten)], true),
        (vec![("50-a", None, sixty), ("20-b", ten, ten)], false),
        // A later file counts.
        (vec![("50-a", sixty, ten), ("90-b", ten, ten)], false),
        (vec![("50-a", sixty, ten), ("90-b", Some("[[["), Some("[[["))], true),
    ] {
        let (_, verdict) = of_drop_ins(&files).remove(0);
        let expected = if drains { Effect::Drain } else { Effect::Restart };
        assert_eq!(verdict.effect(), Some(expected), "{files:?}: {}", verdict.reason());
    }
}

#[test]
fn a_null_of_the_kubelet_is_a_value() {
    let base = "kind: K\nfeatureGates:\n  A: true\n";
    assert_eq!(of(KUBELET, base, &format!("{base}  B: null\n")).effect(), Some(Effect::Reboot));
    assert_eq!(of(KUBELET, base, &format!("{base}podPidsLimit:\n")).effect(), Some(Effect::Reboot));
}

#[test]
fn odd_spellings_in_kubelet_conf_are_never_taken_for_what_they_resemble() {
    for (before, after) in [
        ("failSwapOn: true", "failSwapOn: tRuE"),
        ("failSwapOn: no", "failSwapOn: No"),
        ("podPidsLimit: 8", "podPidsLimit: 010"),
        ("podPidsLimit: 1000", "podPidsLimit: 1_000"),
        ("podPidsLimit: 1", "podPidsLimit: \"1\""),
        ("podPidsLimit: null", "podPidsLimit: nULL"),
        ("# a\npodPidsLimit: 1", "# a\u{2028}cpuManagerPolicy: static\npodPidsLimit: 1"),
        ("# a\npodPidsLimit: 1", "# a\rcpuManagerPolicy: static\npodPidsLimit: 1"),
        ("{\"podPidsLimit\": 1}", "{\"podPidsLimit\": 1,}"),
        ("a: x", "a: x\u{a0}"),
        ("a: 1", "a: 1\na: 1"),
        ("a: 1\nb: 1", "a: &x 1\nb: *x"),
    ] {
        assert_eq!(of(KUBELET, before, after).effect(), Some(Effect::Reboot), "{after:?}");
    }
}

#[test]
fn a_kubelet_without_its_file_is_a_reboot() {
    let text = "logging: {verbosity: 4}";
    for change in [test::file_added(KUBELET, text), test::file_removed(KUBELET, text)] {
        let verdict = test::verdict::<NodeServices>(change);
        assert_eq!(verdict.effect(), Some(Effect::Reboot));
        assert!(verdict.reason().contains("does not start"), "{}", verdict.reason());
    }
}

#[test]
fn a_file_in_place_of_the_systems_own_is_a_reboot_since_nobody_knows_what_that_said() {
    for path in ["/etc/crio/crio.conf", STORAGE] {
        for change in [test::file_added(path, ""), test::file_removed(path, "")] {
            let verdict = test::verdict::<NodeServices>(change);
            assert_eq!(verdict.effect(), Some(Effect::Reboot), "{path}");
            assert!(verdict.reason().contains("not known"), "{}", verdict.reason());
        }
    }
}

#[test]
fn what_cannot_be_read_is_a_reboot_that_says_so() {
    for (path, text) in [
        (DROP_IN, "a = "),
        (DROP_IN, "a = 1\na = 2"),
        (STORAGE, "[storage"),
        (KUBELET, "a: [1"),
        (KUBELET, "a: &anchor 1"),
        (KUBELET, "- a"),
    ] {
        for (before, after, which) in [("", text, "the new file"), (text, "", "as it is now")] {
            let verdict = of(path, before, after);
            assert_eq!(verdict.effect(), Some(Effect::Reboot), "{text}");
            assert!(verdict.reason().contains("cannot be read"), "{}", verdict.reason());
            assert!(verdict.reason().contains(which), "{}", verdict.reason());
        }
    }
    let verdict = of(DROP_IN, "", "a = 1\na = 2");
    assert!(verdict.reason().contains("line 2: this key is defined twice"), "{}", verdict.reason());
}

fn state(content: Content, mode: u32) -> State {
    State::File(File { content, mode, user: "root".into(), group: "root".into() })
}

#[test]
fn a_secret_file_is_a_reboot() {
    let side = |digest: &str| state(Content::Digest(digest.into()), 0o600);
    let change =
        Change { id: format!("file:{KUBELET}"), before: side("sha256:1"), after: side("sha256:2") };
    let verdict = test::verdict::<NodeServices>(change);
    assert_eq!(verdict.effect(), Some(Effect::Reboot));
    assert!(verdict.reason().contains("secret"), "{}", verdict.reason());
}

#[test]
fn another_mode_needs_nothing() {
    let side = |mode| state(Content::Bytes(b"a: 1".to_vec()), mode);
    let change = Change { id: format!("file:{KUBELET}"), before: side(0o644), after: side(0o600) };
    assert_eq!(test::verdict::<NodeServices>(change).effect(), Some(Effect::None));
}

#[test]
fn no_value_is_quoted_and_no_reason_is_too_long() {
    let secret = "token-of-a-proxy";
    let verdict = of(DROP_IN, "", &format!("[crio.runtime]\ndefault_env = ['{secret}']"));
    assert!(!verdict.reason().contains(secret));
    let long = |n: usize| format!("'{}{n}' = 1\n", "é".repeat(300));
    of(DROP_IN, "", &(0..9).map(long).collect::<String>());
}
