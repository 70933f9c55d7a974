use super::*;

#[test]
fn a_command_that_ends_the_system_is_found_behind_wrappers_and_in_shells() {
    for command in [
        "rpm-ostree upgrade -r",
        "bash -c -- reboot",
        "sh -c '/usr/sbin/re[b]oot'",
        "sh -c /usr/sbin/re*",
        "bash -c '{systemctl,reboot}'",
        "bash -c -o pipefail reboot",
        "env --s=reboot",
        "systemd-run --prop=SuccessAction=reboot true",
        "systemd-run --timer-prop Unit=reboot.target true",
        "kill 01",
        "systemctl stop cri-o",
        "systemctl stop NetworkManager",
        "rpm-ostree rebase --reboot x",
        "bootc upgrade --apply",
        "kexec -e",
        "systemctl --job-mode=isolate start multi-user.target",
        "systemctl -t service reboot",
        "systemctl stop kubelet crio kubepods.slice",
        "systemd-run systemctl reboot",
        "nice -n 5 reboot",
        "chroot / reboot",
        "nsenter -t 1 -m reboot",
        "sudo -u root reboot",
        "env -u X reboot",
        "timeout 10s systemctl reboot",
        "bash -c 'if true; then systemctl reboot; fi'",
        "sh -c '{ reboot; }'",
        "sh -c '! reboot'",
        "sh -c 'while :; do reboot; done'",
        "busctl call org.freedesktop.login1 /org Manager Reboot b true",
        "sh -c 'echo b > /proc/sysrq-trigger'",
        "kill -RTMIN+5 1",
        "sh -c reboot",
        "bash -ec reboot now",
        "kill 1",
        "kill -KILL -1",
        "pkill systemd",
        "systemctl stop 'crio*'",
        "systemctl start systemd-reboot",
        "systemctl disable --now kubelet",
        "systemctl $VERB",
        "$CMD",
        "busctl call org.freedesktop.systemd1 /o M StartUnit ss reboot.target replace",
        "sh -c '>/dev/null reboot'",
        "sh -c 'trap reboot EXIT'",
        "taskset 1 reboot",
        "find / -exec reboot",
        "env -Ssystemctl\\x20reboot",
        "env \"-Ssystemctl reboot\"",
        "env --split-string=reboot",
        "env $CMD",
        "sh -c $CMD",
        "sh -c \"$CMD\"",
        "sh $ARGS",
        "nice -n 5 $CMD",
        "bash -c 'exec $CMD'",
        "bash -c \"eval $CMD\"",
        "systemctl restart ${UNIT}",
        "rpm-ostree finalize-deployment --allow-missing-checksum",
        "rpm-ostree upgrade -yr",
        "rpm-ostree $VERB",
        "bootc upgrade --apply=true",
        "busctl $CALL",
        "kill -9 $TARGETS",
        "systemd-run -p SuccessAction=reboot true",
        "systemd-run --property=OnSuccess=reboot.target true",
        "systemd-run --property FailureAction=reboot false",
        "systemd-run -pConflicts=kubelet.service true",
        "systemd-run -p NewAction=x true",
        "systemctl restart kubepods.slice",
        "systemctl restart multi-user.target",
        "dnf offline reboot",
        "machine-config-daemon firstboot-complete-machineconfig",
        "loginctl poweroff",
        "sh -c 'echo mem > /sys/power/state'",
        "sh -c 'cd /proc; echo b > sysrq-trigger'",
    ] {
        let text = format!("[Service]\nExecStart=/usr/bin/{command}\n");
        assert!(why(&unit(&text), "a.service").is_some(), "{command}");
    }
    for command in [
        "systemctl stop chronyd.service",
        "systemctl restart crio",
        "nice app --on-shutdown=reboot",
        "rpm-ostree status",
        "sh -c 'if true; then echo b; fi'",
        "sh -c 'echo $HOME > /run/x'",
        "kill -HUP $MAINPID",
        "kill -1 $MAINPID",
        "kill -s 1 $MAINPID",
        "sysctl kernel.sysrq=0",
        "chronyd $OPTIONS",
        "nice -n 5 /usr/bin/app $OPTIONS",
        "env LANG=C /usr/bin/app $OPTIONS",
        "nohup app $OPTIONS",
        "bash -c 'exec /usr/bin/app ${OPTIONS}'",
        "bash -c 'echo \"A=${B}\" > \"${FILE}\"'",
        "systemd-run -p MemoryMax=1G --property=Nice=5 true",
        "rpm-ostree status -y",
        "kill -HUP ${MAINPID}",
    ] {
        let text = format!("[Service]\nExecStart=/usr/bin/{command}\n");
        assert_eq!(why(&unit(&text), "a.service"), None, "{command}");
    }
}

#[test]
fn a_unit_that_a_command_starts_counts_too() {
    let ends = ("evil.service", "[Unit]\nSuccessAction=reboot\n");
    for command in ["systemctl start evil", "sh -c 'systemctl --no-block restart evil.service'"] {
        let text = format!("[Service]\nExecStart=/usr/bin/{command}\n");
        assert!(why(&units(&[ends, ("a.service", &text)]), "a.service").is_some(), "{command}");
    }
}

#[test]
fn where_the_kernel_takes_commands_is_found_under_the_name_of_an_instance() {
    let text = "[Service]\nStandardOutput=file:/proc/%i\nExecStart=/usr/bin/echo b\n";
    let config = units(&[("a@.service", text)]);
    assert!(why(&config, "a@sysrq-trigger.service").is_some());
    assert_eq!(why(&config, "a@b.service"), None);
}
