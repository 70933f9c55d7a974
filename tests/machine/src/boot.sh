#!/bin/sh
# One boot of a machine: PID 1 of new namespaces. Puts the machine's tree together and
# becomes its systemd.
#
#   boot.sh DIR    with DIR/disk, DIR/work, DIR/root, DIR/console, DIR/boot_id, DIR/target
set -eu
dir=$1
target=$(cat "$dir/target")
boot_id=$(cat "$dir/boot_id")
trap 'echo "The machine does not boot: $step failed." >&2' EXIT

step="reading its PID from outside"
# This /proc still belongs to the namespace outside.
read -r pid _ </proc/self/stat
exec 3>"$dir/pid"

step="an overlay of / with its upper directory in $dir (another TMPDIR may help)"
mount -t overlay overlay -o "lowerdir=/,upperdir=$dir/disk,workdir=$dir/work" "$dir/root"
cd "$dir/root"

step="mounting /run, /tmp and /dev"
mount -t tmpfs -o mode=0755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mount -t tmpfs -o mode=0755 tmpfs dev
for device in null zero full random urandom tty; do
  : >"dev/$device"
  mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/pts dev/shm run/outside
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
: >dev/console
mount --bind "$dir/console" dev/console

step="mounting /proc, /sys and the control groups"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
for kept in proc/sys proc/sysrq-trigger; do
  [ -e "$kept" ] || continue
  mount --bind "$kept" "$kept"
  mount -o remount,bind,ro "$kept"
done
echo "$boot_id" >run/boot_id
mount --bind run/boot_id proc/sys/kernel/random/boot_id

step="changing to its root"
pivot_root . run/outside
cd /
umount -l /run/outside
rmdir /run/outside
# From now on it can be entered: before this its root was the one outside.
echo "$pid" >&3
exec 3>&-

step="running what this machine has in place of an initrd"
if [ -x usr/libexec/initrd ]; then usr/libexec/initrd; fi

step="starting systemd"
exec setpriv --bounding-set=-sys_time,-sys_module,-sys_rawio,-syslog \
  env -i container=tread PATH=/usr/sbin:/usr/bin:/sbin:/bin \
  /lib/systemd/systemd --system "--unit=$target" --log-target=journal --show-status=no
