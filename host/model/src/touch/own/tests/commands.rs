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

/// Whether a unit that runs a command is touched gently.
fn is_gentle(command: &str) -> bool {
    why(&unit(&format!("[Service]\nExecStart={command}\n")), "a.service").is_none()
}

/// Tells which commands of two lists are not judged as they are to be, all at once.
fn assert_judged(ending: &[&str], gentle: &[&str]) {
    let missed: Vec<_> = ending.iter().filter(|command| is_gentle(command)).collect();
    let wrong: Vec<_> = gentle.iter().filter(|command| !is_gentle(command)).collect();
    assert!(missed.is_empty() && wrong.is_empty(), "missed: {missed:#?}\nwrongly held: {wrong:#?}");
}

#[test]
fn a_verb_of_systemctl_counts_unless_it_is_known_to_stop_nothing() {
    assert_judged(
        &[
            "/usr/bin/systemctl condstop crio.service",
            "/usr/bin/systemctl condreload dbus.service",
            "/usr/bin/systemctl reload-or-try-restart kubepods.slice",
            "/usr/bin/systemctl reenable --now dbus.service",
            "/usr/bin/systemctl kill -s KILL crio",
            "/usr/bin/systemctl freeze kubelet.service",
            "/usr/bin/systemctl mask --now crio.service",
            "/usr/bin/systemctl set-property kubepods.slice MemoryMax=1M",
            "/usr/bin/systemctl set-property kubelet.service MemoryMax=1M",
            "/usr/bin/systemctl clean kubelet.service",
            "/usr/bin/systemctl revert kubelet.service",
            "/usr/bin/systemctl preset kubelet.service",
            "/usr/bin/systemctl isolate multi-user",
            // What a later systemd may bring, and what names no unit.
            "/usr/bin/systemctl new-verb app.service",
            "/usr/bin/systemctl preset-all",
            "/usr/bin/systemctl cancel",
            "/usr/bin/systemctl set-default app.target",
            "/usr/bin/systemctl add-requires multi-user.target app.service",
            "/usr/bin/systemctl reload-or-restart --marked",
            "/usr/bin/systemctl --mark reload-or-restart",
            // Options, of which some have a value.
            "/usr/bin/systemctl --no-block stop crio.service",
            "/usr/bin/systemctl --now disable kubelet",
            "/usr/bin/systemctl -H localhost stop crio.service",
            "/usr/bin/systemctl -M .host restart dbus",
            "/usr/bin/systemctl --machine .host --no-block condstop crio",
            "/usr/bin/systemctl --user condreload dbus.service",
            "/usr/bin/systemctl -p show restart kubepods.slice",
            "/usr/bin/systemctl -qp show restart kubepods.slice",
            "/usr/bin/systemctl --pro show restart kubepods.slice",
            "/usr/bin/systemctl --new-flag restart kubepods.slice",
            "/usr/bin/systemctl -x status stop crio.service",
            "/usr/bin/systemctl -- condstop crio.service",
            "/usr/bin/systemctl crio.service condstop",
            // Names that systemctl or a shell makes of words.
            "/usr/bin/systemctl stop /var/lib/kubelet",
            "/usr/bin/systemctl stop /var/lib/containers/",
            "/usr/bin/systemctl stop /",
            "/usr/bin/systemctl disable /usr/lib/systemd/system/kubelet.service",
            "/bin/bash -c 'systemctl stop {crio,kubelet}'",
            "/bin/sh -c 'systemctl restart `cat /run/units`'",
            "/bin/sh -c 'cat /run/units | xargs systemctl restart'",
            "/bin/sh -c 'cat /run/verbs | xargs systemctl'",
            "/usr/bin/find /run/units -exec systemctl restart {} +",
            "/sbin/service crio stop",
            "/sbin/service crio $VERB",
            "/usr/bin/env service dbus restart",
        ],
        &[
            "/usr/bin/systemctl",
            "/usr/bin/systemctl condstop chronyd.service",
            "/usr/bin/systemctl condreload chronyd",
            "/usr/bin/systemctl --no-block try-restart \"chronyd.service\"",
            "/bin/sh -c 'systemctl is-active --quiet app && systemctl restart \"app.service\"'",
            "/usr/bin/systemctl --quiet is-active dbus.service",
            "/usr/bin/systemctl is-active kubepods.slice multi-user.target",
            "/usr/bin/systemctl show -p ActiveState --value crio.service",
            "/usr/bin/systemctl -p ActiveState --value show dbus.service",
            "/usr/bin/systemctl -pActiveState show dbus.service",
            "/usr/bin/systemctl --property Id --type=service show dbus.service",
            "/usr/bin/systemctl status --no-pager -l kubelet",
            "/usr/bin/systemctl -n 0 status kubelet",
            "/usr/bin/systemctl cat kubelet.service",
            "/usr/bin/systemctl list-units --state=failed",
            "/usr/bin/systemctl daemon-reload",
            "/usr/bin/systemctl reset-failed",
            "/usr/bin/systemctl reset-failed kubelet.service",
            "/usr/bin/systemctl start network-online.target",
            "/usr/bin/systemctl start --no-block dbus.service",
            "/bin/sh -c '{ systemctl try-restart app; } || true'",
            "/usr/bin/systemctl enable --now kubelet.service",
            "/usr/bin/systemctl unmask crio.service",
            "/usr/bin/systemctl reload dbus.service",
            "/usr/bin/systemctl kill -s HUP app.service",
            "/usr/bin/systemctl set-property app.service MemoryMax=1G",
            "/usr/bin/systemctl stop /data",
            "/usr/bin/systemctl restart dbus-org.app",
            "/bin/sh -c 'systemctl stop app >/dev/null 2>&1'",
            "/usr/bin/logger 'systemctl is not to be called'",
            "/sbin/service app restart",
            "/sbin/service crio status",
            "/sbin/service --status-all",
        ],
    );
}

#[test]
fn what_a_shell_runs_is_found_behind_all_of_its_options() {
    assert_judged(
        &[
            "/bin/bash --norc -o pipefail -c reboot",
            "/bin/bash --rcfile /dev/null -c reboot",
            "/bin/bash --rcfile /dev/null -c /usr/sbin/reboot",
            "/bin/bash --rcfile /dev/null -c ${CMD}",
            "/bin/bash --norc --noprofile -o pipefail -c ${CMD}",
            "/bin/bash -norc -o pipefail -c reboot",
            "/bin/bash -rcfile /dev/null -c 'systemctl reboot'",
            "/bin/bash -c -e -o pipefail -u reboot",
            "/bin/bash -oc pipefail reboot",
            "/bin/bash -o pipefail -O extglob -ec reboot",
            "/bin/bash --init-file /etc/x -o errexit -c 'systemctl condstop crio'",
            "/bin/bash -c exec\\x20reboot",
            "/bin/bash -x $SCRIPT",
            "/bin/bash -euo pipefail $SCRIPT",
            "/bin/bash --rcfile /dev/null $ARGS",
            "/bin/sh -c 'sh -c \"bash --norc -c reboot\"'",
            // systemd makes line breaks and tabs of these.
            "/bin/sh -c \"true\\nreboot\"",
            "/bin/sh -c 'true\\\\n/usr/sbin/reboot'",
            "/bin/sh -c \"exec\\treboot\"",
            // A backslash of the shell's begins a word.
            "/bin/sh -c '\\\\reboot'",
            "/bin/sh -c '\\\\shutdown -r'",
            "/bin/sh -c '\\\\systemctl stop crio'",
            "/bin/sh -c '\\\\telinit 6'",
            "/usr/bin/env bash --norc -o pipefail -c reboot",
        ],
        &[
            "/bin/bash --norc -o pipefail -c 'echo reboot'",
            "/bin/bash --rcfile /dev/null -c 'echo ${NAME}'",
            "/bin/bash -c 'if test \"$1\" = reboot; then echo b; fi'",
            "/bin/bash -euo pipefail /usr/local/bin/app.sh $OPTIONS",
            "/bin/bash -x /usr/local/bin/app.sh $OPTIONS",
            "/bin/bash --norc /usr/local/bin/app.sh --check",
            "/bin/bash -c 'A=b exec /usr/bin/app $OPTIONS'",
            "/bin/bash -c 'for unit in a b; do systemctl is-active app || exit 1; done'",
            "/bin/bash -c 'while ! systemctl is-active --quiet kubelet; do sleep 5; done'",
            "/bin/sh -c 'echo \"the node needs a reboot\" >&2'",
        ],
    );
    // Each of these shells could be handed on to each other one.
    let nested = "sh -c -e ".repeat(100);
    assert!(!is_gentle(&format!("/bin/{nested} true")));
}

#[test]
fn what_ends_the_system_is_found_behind_programs_that_nobody_listed() {
    assert_judged(
        &[
            "/usr/bin/setarch x86_64 reboot",
            "/usr/bin/linux64 reboot",
            "/usr/bin/linux32 shutdown",
            "/usr/bin/i386 reboot",
            "/usr/bin/x86_64 reboot",
            "/usr/sbin/ip netns exec blue reboot",
            "/usr/sbin/ip vrf exec blue systemctl reboot",
            "/usr/bin/choom -n 5 -- reboot",
            "/usr/bin/uclampset -m 5 reboot",
            "/usr/bin/chronic reboot",
            "/usr/bin/chronic $CMD",
            "/usr/bin/openvt -- reboot",
            "/usr/bin/bwrap --dev-bind / / reboot",
            "/usr/bin/firejail reboot",
            "/usr/bin/cgexec -g cpu:a reboot",
            "/usr/bin/sg root reboot",
            "/usr/bin/sg root -c reboot",
            "/usr/bin/sg root -creboot",
            "/usr/bin/su --command=reboot",
            "/usr/bin/script --com=reboot /dev/null",
            "/usr/bin/systemd-socket-activate -l 80 reboot",
            "/sbin/start-stop-daemon --start --exec /sbin/reboot",
            "/sbin/start-stop-daemon --start --exec=reboot",
            "/lib64/ld-linux-x86-64.so.2 /usr/sbin/reboot",
            "/lib64/ld-linux-x86-64.so.2 reboot",
            "/lib/ld-linux-aarch64.so.1 shutdown",
            "/opt/run reboot",
            "/opt/run --quiet -- poweroff",
            "/opt/run halt -f",
            "/opt/run /usr/sbin/shutdown",
            "/opt/run shutdown -r now",
            "/opt/run shutdown +5",
            "/opt/run init 6",
            "/opt/run /sbin/init 0",
            "/opt/run telinit 6",
            "/opt/run kexec -e",
            "/opt/run --exec=/usr/sbin/reboot",
            "/opt/run ../../usr/sbin//reboot",
            "/opt/run systemctl reboot",
            "/opt/run /usr/bin/systemctl condstop crio",
            "/opt/run rpm-ostree upgrade --reboot",
            "/opt/run rtcwake -m mem",
            "/bin/sh -c 'true; /opt/run reboot'",
            "/bin/sh -c '/opt/run reboot'",
            "/bin/sh /opt/run.sh reboot",
            "/usr/bin/busybox reboot",
            "/usr/bin/toybox reboot",
            "/usr/bin/ssh localhost reboot",
            "/usr/bin/stdbuf -oL reboot",
        ],
        &[
            "/usr/bin/logger reboot",
            "/usr/bin/logger 'the node needs a reboot now'",
            "/usr/bin/systemd-notify --status 'waits for a reboot'",
            "/usr/bin/echo /usr/sbin/reboot",
            "/usr/bin/test -x /usr/sbin/reboot",
            "/bin/sh -c '[ -x /sbin/shutdown ] && echo reboot'",
            "/bin/sh -c 'grep -q reboot /proc/cmdline || printf reboot'",
            "/bin/sh -c 'for word in reboot halt; do echo b; done'",
            "/usr/bin/rpm -qf /usr/sbin/reboot",
            "/usr/sbin/auditctl -w /usr/sbin/reboot -p x",
            "/usr/bin/last -x reboot",
            "/usr/bin/touch /run/app/reboot",
            "/opt/run /run/app/reboot",
            "/usr/lib/systemd/systemd-update-utmp reboot",
            "/usr/lib/systemd/systemd-update-utmp shutdown",
            "/usr/bin/redis-cli -p 6379 shutdown",
            "/usr/bin/redis-cli shutdown nosave",
            "/usr/bin/mysqladmin shutdown",
            "/usr/bin/kubeadm init --config /etc/a.yaml",
            "/usr/bin/podman run --init --rm a /sbin/init",
            "/usr/bin/podman exec a app init",
            "/usr/bin/app --reboot",
            "/usr/bin/app --on-failure=reboot",
            "/usr/sbin/ip link set $DEVICE up",
            "/usr/bin/podman kill $NAME",
            "/usr/local/bin/kubenswrapper /usr/bin/kubelet $ARGS",
            "/opt/run systemctl status kubelet",
        ],
    );
}

#[test]
fn what_is_printed_counts_where_a_pipe_leads_to_what_runs_it() {
    assert_judged(
        &[
            "/bin/sh -c 'echo reboot | sh'",
            "/bin/sh -c 'echo reboot|/bin/bash -s'",
            "/bin/sh -c 'printf \"reboot\\n\" | bash'",
            "/bin/sh -c 'printf \"true\\nsystemctl stop crio\\n\" |& sh -x'",
            "/bin/sh -c 'echo systemctl reboot | sudo sh'",
            "/bin/sh -c 'echo /usr/sbin/shutdown -r now | sudo -i'",
            "/bin/sh -c 'echo reboot | at now'",
            "/bin/sh -c 'echo reboot | tee /run/a | batch'",
            "/bin/sh -c 'echo reboot | nsenter -t 1 -m'",
            "/bin/sh -c 'echo dnf offline reboot | sh'",
            "/bin/sh -c 'echo $COMMAND | sh'",
            "/bin/sh -c 'sh <<< reboot'",
            "/usr/bin/rpm -qa --pipe reboot",
            "/usr/bin/rpm -qa --pipe='xargs /usr/sbin/reboot'",
        ],
        &[
            "/bin/sh -c 'echo reboot | grep -q b'",
            "/bin/sh -c 'echo reboot || sh /opt/a.sh'",
            "/bin/sh -c 'echo reboot | sudo tee /etc/motd'",
            "/bin/sh -c 'cat /proc/cmdline | grep -q reboot && bash /opt/a.sh'",
            "/bin/sh -c 'echo true | sh'",
            "/bin/sh -c 'ls /run/reboot | xargs rm'",
            "/bin/sh -c 'echo ${FILES} | xargs -n 1 cat'",
            "/bin/sh -c 'cat /opt/reboot | sh'",
            "/usr/bin/rpm -qa --pipe 'head -n 1'",
        ],
    );
}

#[test]
fn what_a_command_prints_counts_where_it_is_the_command() {
    assert_judged(
        &[
            "/bin/sh -c '`which reboot`'",
            "/bin/sh -c '`echo reboot`'",
            "/bin/sh -c \"`which reboot`\"",
            "/bin/sh -c 'true; `which reboot`'",
            "/bin/sh -c 'true && /usr/sbin/`echo reboot`'",
            "/bin/sh -c 're`echo boot`'",
            "/bin/sh -c 'if true; then `which reboot`; fi'",
            "/bin/sh -c 'if `cat /run/check`; then echo b; fi'",
            "/bin/sh -c 'A=b `which reboot`'",
            "/bin/sh -c 'A=`date` `which reboot`'",
            "/bin/sh -c 'echo `date`; `which reboot`'",
            "/bin/sh -c 'exec `which reboot`'",
            "/bin/sh -c 'sudo `which reboot` -f'",
            "/bin/sh -c 'eval `cat /run/command`'",
            "/bin/sh -c 'nice -n 5 `which reboot`'",
            "/bin/sh -c 'bash `which script`'",
            "/bin/sh -c 'echo `cat /run/command` | sh'",
            "/bin/sh -c 'systemctl `cat /run/verb` app'",
            "/bin/sh -c 'systemctl stop app `cat /run/units`'",
            "/bin/sh -c 'systemctl restart app@`hostname`'",
            "/bin/bash -c 'bash <(echo reboot)'",
            "/bin/bash -c 'bash -x < <(echo reboot)'",
            "/bin/bash -c 'source <(echo reboot)'",
            "/bin/bash -c 'true; . <(printf \"true\\nreboot\")'",
            "/bin/bash -c 'bash <<<reboot'",
            "/bin/bash -c '<<<reboot bash'",
            "/bin/bash -c 'sh <<<\"systemctl reboot\"'",
        ],
        &[
            "/bin/sh -c 'echo `date`'",
            "/bin/sh -c 'echo `date` `hostname`; app `date` `hostname`'",
            "/bin/sh -c 'echo \"`date`: the node needs a reboot\"'",
            "/bin/sh -c 'logger \"at `date`\"'",
            "/bin/sh -c 'echo `echo \\\\`date\\\\``'",
            "/bin/sh -c 'A=`date`; echo $A'",
            "/bin/sh -c 'A=`date` /usr/bin/app --now'",
            "/bin/sh -c 'export A=`date` && exec /usr/bin/app'",
            "/bin/sh -c '/usr/bin/app --name `hostname` --at `date`'",
            "/bin/sh -c 'exec /usr/bin/app --name `hostname`'",
            "/bin/sh -c 'kill -HUP `cat /run/app.pid`'",
            "/bin/kill -HUP `cat /run/app.pid`",
            "/bin/sh -c '[ -n \"`cat /run/a`\" ] && echo b'",
            "/bin/sh -c 'for i in `seq 3`; do echo b; done'",
            "/bin/sh -c 'case `uname -m` in x86_64) echo b;; esac'",
            "/bin/sh -c 'systemctl is-active app@`hostname`'",
            "/bin/sh -c 'systemctl status `cat /run/units`'",
            "/bin/bash -c 'cat <(echo reboot)'",
            "/bin/bash -c 'diff <(echo a) <(echo b)'",
            "/bin/bash -c 'bash <(cat /opt/a.sh)'",
            "/bin/bash -c 'grep -q b <<<reboot'",
            "/bin/bash -c 'read a <<<\"$LINE\"'",
        ],
    );
}

#[test]
fn what_a_shell_makes_of_globs_and_braces_counts_behind_wrappers_too() {
    assert_judged(
        &[
            "/bin/sh -c 'exec /sbin/reb?ot'",
            "/bin/bash -c 'exec {reboot,-f}'",
            "/bin/bash -c 'exec {systemctl,reboot}'",
            "/bin/bash -c 'exec re{boot,x}'",
            "/bin/sh -c 'exec /opt/*/run'",
            "/bin/sh -c 'exec -a app /usr/sbin/re[b]oot'",
            "/bin/bash -c 'exec -a app {reboot,-f}'",
            "/bin/bash -c 'exec -a app /usr/{bin,sbin}/reboot*'",
            "/bin/sh -c 'sudo -u root /sbin/reb?ot'",
            "/bin/sh -c 'runuser -u app /opt/*/run'",
            "/bin/sh -c 'nice -n 5 /opt/app/bin/*'",
            "/bin/bash -c 'ssh host {reboot,-f}'",
            "/bin/sh -c 'env -u A /usr/bin/system[c]tl stop crio'",
            "/bin/sh -c 'nice -n 5 /sbin/reb*'",
            "/bin/bash -c 'nice {-n,5,reboot}'",
            "/bin/bash -c 'env {A=b,reboot}'",
            "/bin/sh -c 'timeout 10 rm /sbin/re[[:alnum:]]oot'",
            "/bin/sh -c 'find /var/log/*/ -exec /sbin/reb?ot +'",
            "/bin/sh -c 'start-stop-daemon --start --exec=/sbin/reb?ot'",
            "/bin/sh -c 'su -c/sbin/reb?ot'",
        ],
        &[
            "/bin/sh -c 'exec /usr/bin/app /etc/app/*.conf'",
            "/bin/sh -c 'exec app /etc/app/*.conf --to {a,b}'",
            "/bin/bash -c 'exec /usr/bin/app --names={a,b} {c,d}'",
            "/bin/sh -c 'env A=/etc/*.conf /usr/bin/app'",
            "/bin/sh -c 'timeout 60 rm -rf /var/lib/app/*'",
            "/bin/sh -c 'nice cp /etc/app/?.conf /run/app'",
            "/bin/sh -c 'nice -n 19 tar czf /run/app.tgz /var/log/app/*'",
            "/bin/sh -c 'ionice -c 3 gzip /var/log/app/*.log'",
            "/bin/sh -c 'flock /run/app.lock tar cf /run/app.tar {a,b}'",
            "/bin/sh -c 'find /var/log/pods/*/ -mtime +3 -delete'",
            "/usr/bin/find /var/cache/man -type f -name *.gz -atime +6 -delete",
            "/bin/sh -c 'ls /usr/sbin/re*'",
            "/bin/sh -c 'for file in /usr/sbin/re*; do echo b; done'",
            "/bin/sh -c 'nice /usr/bin/podman ps --format {{.ID}}'",
        ],
    );
    // Each word could be many programs, if it has braces.
    assert!(is_gentle(&format!("/bin/sh -c 'timeout 9 rm {}'", "/var/lib/*/a ".repeat(100))));
    assert!(!is_gentle(&format!("/bin/sh -c 'timeout 9 rm {}'", "/var/{a,b}/a ".repeat(17))));
}

#[test]
fn where_the_kernel_takes_commands_is_found_in_pieces() {
    assert_judged(
        &[
            "/bin/sh -c \"echo b > /proc/sys''rq-trigger\"",
            "/bin/sh -c 'echo b > /proc/sys\"\"rq-trigger'",
            "/bin/sh -c 'echo b > /proc/\\\\sysrq-trigger'",
            "/bin/sh -c 'echo b | tee /proc/sy?rq-trigger'",
            "/bin/sh -c 'echo b | tee /proc/s*'",
            "/bin/sh -c 'echo b > /proc/sysrq-[t]rigger'",
            "/bin/sh -c 'echo b > /pro?/sys[r-z]q-trigger'",
            "/bin/sh -c 'echo b > /proc/sys[[:lower:]]q-trigger'",
            "/bin/sh -c 'echo b > /tmp/..//proc/./sys?q-trigger'",
            "/bin/bash -c 'echo b >/proc/sys{rq,}-trigger'",
            "/bin/bash -c 'echo b | tee /{proc/sysrq-,tmp/}trigger'",
            "/bin/bash -c 'echo b | tee /proc/sys{r..r}q-trigger'",
            "/bin/sh -c 'echo b > /proc/sys${NOTHING}rq-trigger'",
            "/bin/sh -c 'echo b > /proc/sys$(true)rq-trigger'",
            "/bin/sh -c 'echo b > /proc/sys`true`rq-trigger'",
            "/bin/sh -c 'echo 1 > /proc/sys/kernel/sys?q'",
            "/bin/sh -c 'echo 1 > /proc/sys/*/sysr?'",
            "/bin/sh -c 'echo mem > /sys/po*er/state'",
            "/bin/sh -c 'echo mem > /sys/power\"\"/state'",
            "/bin/dd if=/opt/a of=/sys/p?wer/autosleep",
            "/bin/sh -c 'echo a > /dev/wa?chdog'",
            "/bin/sh -c 'echo a > /dev/w*0'",
            "/bin/sh -c 'echo a > /dev/watchd{og,ig}'",
            "/bin/sh -c 'kill -RT\"\"MIN+5 1'",
        ],
        &[
            "/bin/sh -c 'echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor'",
            "/bin/sh -c 'for dev in /sys/class/net/*; do echo $dev; done'",
            "/bin/sh -c 'for i in /sys/block/sd[a-z]/queue/scheduler; do echo none > $i; done'",
            "/bin/sh -c 'echo 2 > /proc/sys/net/ipv4/conf/*/rp_filter'",
            "/bin/bash -c 'cat /proc/{cpuinfo,meminfo}'",
            "/bin/sh -c 'ls -d /proc/[0-9]*'",
            "/bin/sh -c 'cat /proc/*/oom_score_adj'",
            "/bin/sh -c 'echo -1000 > /proc/${MAINPID}/oom_score_adj'",
            "/bin/sh -c 'test -d /proc/$MAINPID'",
            "/bin/sh -c 'echo 1 > /proc/sys/net/$KEY'",
            "/bin/sh -c 'echo 1 > /sys/bus/pci/devices/${DEVICE}/remove'",
            "/bin/sh -c 'chmod 0660 /dev/sd* /dev/dm-?'",
            "/bin/sh -c 'ls /dev/*'",
            "/usr/sbin/smartctl -a /dev/$DEVICE",
            "/sbin/agetty --noclear %I $TERM",
            "/bin/sh -c 'rm -f /run/app/*.sock'",
        ],
    );
    for key in ["StandardOutput=file:/proc/sys\"\"rq-trigger", "StandardInput=file:/dev/wa?chdog"] {
        assert!(why(&unit(&format!("[Service]\n{key}\n")), "a.service").is_some(), "{key}");
    }
}

#[test]
fn a_unit_that_a_command_starts_counts_too() {
    let ends = ("evil.service", "[Unit]\nSuccessAction=reboot\n");
    for command in [
        "systemctl start evil",
        "sh -c 'systemctl --no-block restart evil.service'",
        "systemctl enable --now /opt/app/evil.service",
        "systemctl condreload evil",
    ] {
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
