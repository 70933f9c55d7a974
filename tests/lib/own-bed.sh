# shellcheck shell=bash
# For scripts that start a control plane of their own: where it is, built if it
# is not there yet, and tread with what runs it.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"
# shellcheck source=tests/lib/install.sh
source tests/lib/install.sh
# shellcheck source=tests/lib/bed.sh
source tests/lib/bed.sh

# Sets TREAD_BED.
own_plane() {
  if [ -z "${TREAD_BED:-}" ]; then
    suite_build_bed >&2
    TREAD_BED=$(bed_dir)
  fi
  export TREAD_BED
}

# Sets TREAD_BED, and `bin` to the directory of the binaries, built in this profile. Those that are in
# TREAD_PROGRAMS are taken as they are.
own_bed() {
  local profile=$1
  own_plane
  if [ -n "${TREAD_PROGRAMS:-}" ]; then
    bin=$TREAD_PROGRAMS
    return 0
  fi
  cargo build --profile "$profile" --quiet -p tread -p tread-image -p tread-test-bed --bins
  # shellcheck disable=SC2034 # for whoever sources this
  bin=${CARGO_TARGET_DIR:-$root/target}/$profile
}
