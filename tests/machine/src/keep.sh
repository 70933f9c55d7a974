#!/bin/sh
# Ends a machine and removes what it was made of: when whoever made it closes this
# program's input or dies, and at the latest after its time.
#
#   keep.sh DIR CGROUP SECONDS
set -u
dir=$1
cgroup=$2
timeout "$3" cat >/dev/null
# systemd ignores SIGTERM. A boot that is just beginning is killed by the next round.
while [ -d "$cgroup" ]; do
  echo 1 >"$cgroup/cgroup.kill"
  find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.01
done
rm -rf "$dir"
