#!/bin/sh
# Stands in for rpm-ostree, bootc and ostree: what they have on disk is below
# /var/lib/stand-in, and what is staged is below /run until the machine goes down in order.
#
#   deployments/ID/{image,arguments,packages,removed}   what can be booted
#   deployments/ID/{etc,usr-etc}                        its /etc, and what its image ships there
#   ships/TAG                                           what the image with this tag ships, where that is asked for
#   order                                               their ids; the first is booted next
#   pinned                                              the ids of those that no new one takes the place of
#   fault                                               what goes wrong, a word a line
#   log                                                 what was told
set -eu
home=/var/lib/stand-in
all=$home/deployments
staged=/run/ostree/staged-deployment
booted=$(cat /run/stand-in/booted 2>/dev/null || head -n 1 "$home/order")
program=${0##*/}

# As a command that takes its time, until /run/go is there.
slowly() { fails slow || return 0; until [ -e /run/go ]; do sleep 0.05; done; }
fails() { grep -qx "$1" "$home/fault" 2>/dev/null; }
say() { cat "$all/$1/$2" 2>/dev/null || true; }
next() { if [ -e "$staged" ]; then cat "$staged"; else head -n 1 "$home/order"; fi; }
# Has one booted next; all others stay in their order.
comes_first() {
  { echo "$1"; grep -Fvx "$1" "$home/order" || true; } >"$home/order.next"
  mv "$home/order.next" "$home/order"
}
not_staged() { [ ! -e "$staged" ] || { echo 'Staged deployment (remove with cleanup -p)' >&2; exit 1; }; }

# A copy of what the next boot brings, which is to be changed and then staged.
copy() {
  mkdir -p /run/ostree
  number=$(($(cat "$home/number" 2>/dev/null || echo 0) + 1))
  echo "$number" >"$home/number"
  new=os-$number.0
  rm -rf "$all/$new"
  cp -a "$all/$(next)" "$all/$new"
  rm -rf "$all/$new/etc"
}
has_image() {
  echo "$1" >"$all/$new/image"
  [ -d "$home/ships/${1##*:}" ] || return 0
  rm -rf "$all/$new/usr-etc"
  cp -a "$home/ships/${1##*:}" "$all/$new/usr-etc"
}
stage() { echo "$new" >"$staged"; }

list() { tr ' ' '\n' | sed '/^$/d; s/.*/"&"/' | paste -sd,; }
digest() { case $1 in *@*) echo "${1##*@}" ;; *) echo "sha256:of-$1" ;; esac; }
deployment() {
  is_booted=false is_staged=false
  [ "$1" = "$booted" ] && is_booted=true
  [ "$1" = "$(cat "$staged" 2>/dev/null)" ] && is_staged=true
  image=$(say "$1" image)
  printf '{"id": "%s", "osname": "os", "booted": %s, "staged": %s,' "$1" $is_booted $is_staged
  printf '"container-image-reference": "ostree-unverified-registry:%s",' "$image"
  printf '"container-image-reference-digest": "%s",' "$(digest "$image")"
  printf '"requested-packages": [%s],' "$(say "$1" packages | list)"
  printf '"requested-base-removals": [%s]}' "$(say "$1" removed | list)"
}
entry() {
  if [ -z "$1" ]; then printf 'null'; return; fi
  image=$(say "$1" image)
  printf '{"image": {"image": {"image": "%s", "transport": "registry"},' "$image"
  printf '"version": null, "timestamp": null, "imageDigest": "%s"},' "$(digest "$image")"
  printf '"incompatible": false, "pinned": false,'
  printf '"ostree": {"checksum": "%s", "deploySerial": 0}}' "${1%.0}"
}
hostile() {
  fails hang && sleep infinity
  fails invalid && { echo 'error: this is no JSON {'; exit 0; }
  fails huge && { head -c 40000000 /dev/zero | tr '\0' x; exit 0; }
  fails broken && { echo 'the daemon does not answer' >&2; exit 1; }
  true
}
is_same() {
  [ "$(stat -c '%f %u %g' "$1")" = "$(stat -c '%f %u %g' "$2" 2>/dev/null)" ] || return 1
  if [ -L "$1" ]; then [ "$(readlink "$1")" = "$(readlink "$2")" ]; fi
  if [ -f "$1" ]; then cmp -s "$1" "$2"; fi
}
# As ostree does: what differs from what the booted image ships goes along, and all else is as the new
# one ships it. It looks at what images ship alone: /etc has a thousand files, and a machine that goes
# down waits for this.
merge() {
  cp -a /etc "$1/etc"
  (cd /usr/etc && find . -depth -mindepth 1) | while read -r path; do
    if [ -d "/usr/etc/$path" ]; then
      [ -e "$1/usr-etc/$path" ] || rmdir --ignore-fail-on-non-empty "$1/etc/$path"
    elif is_same "/etc/$path" "/usr/etc/$path"; then
      rm "$1/etc/$path"
    fi
  done
  (cd "$1/usr-etc" && find . -mindepth 1) | while read -r path; do
    if [ -d "$1/usr-etc/$path" ]; then mkdir -p "$1/etc/$path"; continue; fi
    # It is another one here, or was removed here.
    if [ -e "$1/etc/$path" ] || { [ -e "/usr/etc/$path" ] && [ ! -e "/etc/$path" ]; }; then continue; fi
    cp -a "$1/usr-etc/$path" "$1/etc/$path"
  done
}
# Each deployment has an /etc of its own.
mount_etc() {
  if [ ! -d "$1/etc" ]; then
    cp -a /etc "$1/etc"
    cp -a /usr/etc "$1/usr-etc"
  fi
  mount --bind "$1/etc" /etc
  mount --bind "$1/usr-etc" /usr/etc
}
finalize() {
  [ -e "$staged" ] || return 0
  if [ -d "$home/ships" ]; then merge "$all/$(cat "$staged")"; fi
  {
    cat "$staged"
    while read -r id; do
      [ "$id" = "$booted" ] || grep -qFx "$id" "$home/pinned" 2>/dev/null || continue
      echo "$id"
    done <"$home/order"
  } >"$home/order.next"
  mv "$home/order.next" "$home/order"
  rm "$staged"
}

[ "$program" = stand-in ] || echo "$program $*" >>"$home/log"
case "$program $*" in
  "stand-in boot")
    # Some do so before systemd starts.
    [ ! -e /run/stand-in/booted ] || exit 0
    mkdir -p /run/stand-in
    booted=$(head -n 1 "$home/order")
    echo "$booted" >/run/stand-in/booted
    : >/run/ostree-booted
    echo "BOOT_IMAGE=/vmlinuz $(say "$booted" arguments)" >/run/stand-in/cmdline
    mount --bind /run/stand-in/cmdline /proc/cmdline
    if [ -d "$home/ships" ]; then mount_etc "$all/$booted"; fi
    ;;
  "stand-in finalize") finalize ;;
  "rpm-ostree status --json")
    hostile
    printf '{"deployments": ['
    first=$(next)
    deployment "$first"
    for id in $(cat "$home/order"); do
      [ "$id" = "$first" ] || { printf ','; deployment "$id"; }
    done
    printf '], "transaction": null}\n'
    ;;
  "rpm-ostree kargs") say "$(next)" arguments ;;
  "rpm-ostree kargs "*)
    fails kargs-and-all && { echo broken >>"$home/fault"; exit 1; }
    fails idle && exit 0
    fails kargs && { echo 'no space left on /boot' >&2; exit 1; }
    shift
    copy
    line=" $(say "$new" arguments) "
    for option; do
      word=${option#*=}
      case $option in
        --delete-if-present=*)
          case $line in *" $word "*) line="${line%%" $word "*} ${line#*" $word "}" ;; esac
          ;;
        --append=*) line="$line$word " ;;
        *) exit 64 ;;
      esac
    done
    echo "$line" | sed 's/  */ /g; s/^ //; s/ $//' >"$all/$new/arguments"
    stage
    ;;
  "rpm-ostree rebase --experimental --download-only "*)
    fails fetch && { echo 'manifest unknown' >&2; exit 1; }
    echo "$4" >>"$home/fetched"
    ;;
  "rpm-ostree rebase --experimental "*)
    fails rebase && { echo 'no space left on /sysroot' >&2; exit 1; }
    slowly
    grep -qx "$3" "$home/fetched" || { echo 'this would need the network' >&2; exit 1; }
    copy
    has_image "${3#ostree-unverified-registry:}"
    stage
    ;;
  "rpm-ostree install "* | "rpm-ostree uninstall "* | "rpm-ostree override "*)
    verb=$1
    shift
    [ "$verb" = override ] && { verb=$1; shift; }
    copy
    for word; do
      case $verb$word in
        *--install=*) echo "${word#*=}" >>"$all/$new/packages" ;;
        *--uninstall=*) sed -i "/^${word#*=}\$/d" "$all/$new/packages" ;;
        install*) echo "$word" >>"$all/$new/packages" ;;
        uninstall*) sed -i "/^$word\$/d" "$all/$new/packages" ;;
        remove*) echo "$word" >>"$all/$new/removed" ;;
        reset*) sed -i "/^$word\$/d" "$all/$new/removed" ;;
      esac
    done
    stage
    ;;
  "rpm-ostree cleanup --pending" | "ostree admin undeploy 0") rm "$staged" ;;
  "rpm-ostree rollback")
    # What stands behind what is booted, whatever that is; or what is booted, where nothing does.
    not_staged
    behind=$(grep -Fx -A1 "$booted" "$home/order" | sed 1d)
    comes_first "${behind:-$booted}"
    ;;
  "bootc rollback")
    # What is booted, where another one comes first; or else the first of the others.
    not_staged
    first=$(head -n 1 "$home/order")
    [ "$first" = "$booted" ] && first=$(sed -n 2p "$home/order") || first=$booted
    comes_first "$first"
    ;;
  "ostree admin set-default "*)
    not_staged
    chosen=$(sed -n "$(($3 + 1))p" "$home/order")
    [ -n "$chosen" ] || { echo "Out of range deployment index $3" >&2; exit 1; }
    comes_first "$chosen"
    ;;
  "rpm-ostree reload") ;;
  "bootc status --format=json --format-version=1")
    hostile
    other=$(grep -vx "$booted" "$home/order" | head -n 1)
    queued=false
    [ "$(head -n 1 "$home/order")" = "$booted" ] || queued=true
    printf '{"apiVersion": "org.containers.bootc/v1", "kind": "BootcHost", "status": {"staged": '
    entry "$(cat "$staged" 2>/dev/null)"
    printf ', "booted": '
    entry "$booted"
    printf ', "rollback": '
    entry "$other"
    printf ', "rollbackQueued": %s}}\n' $queued
    ;;
  "bootc switch "*)
    fails third && case $2 in *:third) exit 1 ;; esac
    fails fetch && { echo 'manifest unknown' >&2; exit 1; }
    slowly
    copy
    has_image "$2"
    stage
    ;;
  *)
    echo "$program: nobody told this stand-in about: $*" >&2
    exit 64
    ;;
esac
