# Runs a program in a root of its own, as the container of an agent is: it sees no process of
# the host, and of its files only what is listed.
#
#   confine.sh ROOT PROGRAM MOUNT... -- ARGUMENT...
set -eu
root=$1
program=$2
shift 2
mkdir -p "$root"
mount -t tmpfs tmpfs "$root"
mkdir "$root/proc"
: >"$root/tread"
mount --bind "$program" "$root/tread"
while [ "$1" != -- ]; do
  if [ -d "$1" ]; then
    mkdir -p "$root$1"
  else
    mkdir -p "$(dirname "$root$1")"
    : >"$root$1"
  fi
  mount --bind "$1" "$root$1"
  shift
done
shift
mount -t proc proc "$root/proc"
# Root without any capability, and no way to get one. Numbers are the kernel's.
exec perl -e '
  my $prctl = { "x86_64" => 157, "aarch64" => 167 }->{(POSIX::uname())[4]};
  use POSIX ();
  chroot shift or die "chroot: $!";
  chdir "/";
  for my $capability (0 .. 63) { syscall $prctl, 24, $capability, 0, 0, 0 }
  syscall $prctl, 38, 1, 0, 0, 0;
  exec "/tread", @ARGV or die "exec: $!";
' "$root" "$@"
