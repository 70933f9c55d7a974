#!/bin/sh
# Before the kubelet of a machine that boots for the first time: holds the image that it booted from
# against what its cluster takes. tread made and served it.
#
#   sh first-boot.sh [ROOT]    ROOT is put before each path, for tests
#
# Ends with 0 where the kubelet may start, and is not run again; with 1 where it may not.
set -uf
LC_ALL=C
export LC_ALL
root=${1-}
settings=$root/etc/tread/first-boot.conf
authority=$root/etc/tread/first-boot.pem
issues=$root/etc/issue.d
issue=$issues/50-tread-boot-image.issue

# The value of a field in a file of lines NAME=VALUE, without quotes; of several the last one, as in
# os-release. Nothing in it is run, and what no version has becomes a question mark.
field() { # FILE NAME
  dd if="$1" bs=65536 count=1 2>/dev/null | tr -c 'A-Za-z0-9._:/=+,;()][" '\''\n-' '?' |
    sed -n "s/^$2=//p" | tail -n 1 | cut -c 1-1000 | sed "s/^[\"']//; s/[\"'].*\$//"
}

is_number() {
  case $1 in '' | *[!0-9]* | ??????*) return 1 ;; esac
}

# 4.13.0, 9.2 and 4.22.0-rc.1 as $a, $b and $c.
is_version() {
  numbers=${1%%[-+]*}
  a=${numbers%%.*}
  case $numbers in *.*) b=${numbers#*.} ;; *) return 1 ;; esac
  c=0
  case $b in *.*) c=${b#*.} b=${b%%.*} ;; esac
  is_number "$a" && is_number "$b" && is_number "$c"
}

# Whether a.b.c is before another version.
is_before() { # VERSION
  one=$a two=$b three=$c
  is_version "$1" || return 1
  if [ "$one" -ne "$a" ]; then
    [ "$one" -lt "$a" ]
  elif [ "$two" -ne "$b" ]; then
    [ "$two" -lt "$b" ]
  else
    [ "$three" -lt "$c" ]
  fi
}

# What a version of RHCOS says: 9.2.20240115-0 is RHEL 9.2, and 412.86.202308081056-0 is OpenShift
# 4.12 with RHEL 8.6.
of_image() { # VERSION
  numbers=${1%%-*}
  major=${numbers%%.*}
  rest=${numbers#*.}
  minor=${rest%%.*}
  stamp=${rest#*.}
  case $rest in *.*) ;; *) return ;; esac
  case $stamp in '' | *[!0-9]*) return ;; esac
  is_number "$major" && is_number "$minor" || return
  case ${#stamp} in
    8) if [ "$major" -lt 40 ]; then by_rhel=$major.$minor; else of_both; fi ;;
    12) of_both ;;
  esac
}

of_both() {
  case $major in ??*) ;; *) return ;; esac
  case $minor in ??*) ;; *) return ;; esac
  by_release=${major%"${major#?}"}.${major#?}.0
  by_rhel=${minor%"${minor#?}"}.${minor#?}
}

# What the image is: $openshift, $rhel and $image, in which form it says so.
read_image() {
  openshift=$(field "$1" OPENSHIFT_VERSION)
  rhel=$(field "$1" RHEL_VERSION)
  image=$(field "$1" OSTREE_VERSION)
  [ -n "$image" ] || image=$(field "$1" VERSION)
  image=${image%% *}
  id=$(field "$1" ID)
  of_id=$(field "$1" VERSION_ID)
  by_release='' by_rhel=''
  of_image "$image"
  [ -n "$openshift" ] || openshift=$by_release
  [ -n "$rhel" ] || rhel=$by_rhel
  case $id in
    rhcos | scos) [ -n "$openshift" ] || openshift=$of_id ;;
    rhel | centos) [ -n "$rhel" ] || rhel=$of_id ;;
  esac
  said=${image:-${openshift:-${rhel:-nothing}}}
}

# Holds it against the limit: $reason, and $why in words.
judge() {
  reason=WithinLimit why="it is not below the limit, $limit"
  compared=no
  for version in "$openshift" "$rhel"; do
    if [ -n "$version" ] && ! is_version "$version"; then
      reason=VersionUnreadable why="its version cannot be read ($version), and counts as too old; an image has to be at least $limit"
      return
    fi
  done
  if [ -n "$openshift" ] && [ -n "$least_openshift" ]; then
    compared=yes
    is_version "$openshift"
    if is_before "$least_openshift"; then
      reason=BelowLimit why="it is below the limit, $limit"
      return
    fi
  fi
  if [ -n "$rhel" ] && [ -n "$least_rhel" ]; then
    compared=yes
    is_version "$rhel"
    if is_before "$least_rhel"; then
      reason=BelowLimit why="it is below the limit, $limit"
      return
    fi
  fi
  if [ -n "$rhel" ] && [ -n "$least_major" ]; then
    compared=yes
    is_version "$rhel"
    if [ "$a" -lt "$least_major" ]; then
      reason=TooManyMajorsBehind why="it is too far behind, its cluster takes $limit or newer"
      return
    fi
  fi
  if [ "$compared" = no ]; then
    reason=VersionUnknown why="nobody can tell its version from /etc/os-release, and it counts as too old; an image has to be at least $limit"
  fi
}

# Tells the cluster, as far as something here can.
report() { # STOPPED
  if [ -z "$url" ]; then return; fi
  if ! command -v curl >/dev/null 2>&1; then
    echo "tread: nothing here can tell the cluster: curl is missing"
    return
  fi
  body="{\"machine\":\"$machine\",\"image\":\"$(plain "$said")\",\"reason\":\"$reason\",\"stopped\":$1}"
  # Whoever lists processes sees no token.
  if ! printf 'header = "Authorization: Bearer %s"\n' "$token" |
    curl --config - --silent --show-error --fail --output /dev/null --cacert "$authority" \
      --connect-timeout 10 --max-time 15 --retry 3 --retry-connrefused --retry-max-time 45 \
      --header 'Content-Type: application/json' --data-binary "$body" "$url" 2>&1; then
    echo "tread: the cluster could not be told; what is wrong stands in /etc/issue.d"
  fi
}

# What stands in JSON as it is.
plain() {
  printf '%s' "$1" | tr -c 'A-Za-z0-9._:+-' '?' | cut -c 1-100
}

# The kubelet may start, and this is not run again.
passes() {
  rm -f "$settings" "$authority"
  exit 0
}

case " $(cat "$root/proc/cmdline" 2>/dev/null) " in
  *" tread.skew=off "*)
    echo "tread: tread.skew=off is on the kernel command line: the image is not looked at"
    rm -f "$issue"
    passes
    ;;
esac

stops=$(field "$settings" STOPS)
passing=$(field "$settings" PASSING)
limit=$(field "$settings" LIMIT)
least_openshift=$(field "$settings" OPENSHIFT)
least_rhel=$(field "$settings" RHEL)
least_major=$(field "$settings" MAJOR)
pool=$(field "$settings" POOL)
url=$(field "$settings" URL)
token=$(field "$settings" TOKEN)
machine=$(plain "$(uname -n)")

file=$root/etc/os-release
[ -r "$file" ] || file=$root/usr/lib/os-release
read_image "$file"
judge

if [ "$reason" = WithinLimit ]; then
  echo "tread: it booted from $said: $why"
  rm -f "$issue"
  passes
fi

text="The image that this machine booted from is too old for its cluster.
  machine: $machine, of pool $pool
  image:   $said (OpenShift ${openshift:-unknown}, RHEL ${rhel:-unknown})
  limit:   $limit
  why:     $why"
remedy="What to do: give what made this machine (a MachineSet, a template) a newer image, and make the
machine anew. Where the cluster is reached: tread bootimages, and tread bootimages patch RESOURCE."
if [ "$stops" = yes ]; then
  text="tread keeps this machine out of its cluster: its kubelet does not start.
$text
$remedy
To let it join all the same: boot it with tread.skew=off on the kernel command line."
else
  text="tread warns: this machine joins its cluster all the same, since $passing.
$text
$remedy
This was at its first boot; remove /etc/issue.d/50-tread-boot-image.issue once it is mended."
fi
mkdir -p "$issues" && printf '\n%s\n\n' "$text" >"$issue"
# Whoever looks at a login prompt already sees it too.
if [ -z "$root" ] && command -v agetty >/dev/null 2>&1; then agetty --reload 2>/dev/null; fi
printf '%s\n' "$text"
if [ "$stops" = yes ]; then
  report true
  exit 1
fi
report false
passes
