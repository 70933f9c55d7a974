#!/bin/sh
# Ends a machine and removes what it was made of: when whoever made it closes this
# program's input or dies, and at the latest after its time.
#
#   keep.sh DIR CGROUP SECONDS
set -u
dir=$1
cgroup=$2
timeout "$3" cat >/dev/null
# systemd ignores SIGTERM. A boot that is just beginning is killed by a later round; who
# cannot be killed, since the kernel is at something for it, is given up.
rounds=0
while [ -d "$cgroup" ] && [ "$rounds" -lt 3000 ]; do
  echo 1 >"$cgroup/cgroup.kill"
  find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.01
  rounds=$((rounds + 1))
done
rm -rf "$dir"
