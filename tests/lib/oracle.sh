# shellcheck shell=bash
# shellcheck disable=SC2154 # root and cache are set by whoever sources this
# The container runtime's own library, as a program that says what it makes of a
# node's files: see tests/oracle/runtime. Built against two releases of it. And
# OpenShift's own library, as one that renders mirror objects: see
# tests/oracle/mirrors. Both from Go's module proxy, and kept by the digest of what
# the programs are made of.

# RELEASE MODULE-FILE TAGS, a line each.
oracle_releases() {
  echo "5.38 go.mod containers_image_openpgp"
  echo "5.42 newer.mod containers_image_openpgp,namespace_proxy"
}

oracle_dir() {
  echo "$cache/oracle/$(oracle_digest)"
}

oracle_digest() {
  {
    cd "$root/tests/oracle"
    sha256sum -- runtime/*.{go,mod,sum} mirrors/*.{go,mod,sum}
    go env GOVERSION GOARCH
    oracle_releases
  } | sha256sum | cut -c 1-16
}

# Builds them unless they are there. Of several that want to, one builds.
build_oracle() {
  need_go
  local place release modules tags
  place=$(oracle_dir)
  mkdir -p "$cache/oracle"
  (
    flock 9
    if [ -d "$place" ]; then exit 0; fi
    rm -rf "$cache/oracle"/*.partial
    mkdir "$place.partial"
    cd "$root/tests/oracle/runtime"
    while read -r release modules tags; do
      echo "building what asks the runtime's library $release"
      build_pinned -modfile "$modules" -tags "$tags" -o "$place.partial/$release" .
    done < <(oracle_releases)
    cd "$root/tests/oracle/mirrors"
    echo "building what asks OpenShift's library"
    build_pinned -tags containers_image_openpgp -o "$place.partial/mirrors" .
    mv "$place.partial" "$place"
    find "$cache/oracle" -mindepth 1 -maxdepth 1 -type d -mtime +14 -exec rm -rf {} +
  ) 9>"$cache/oracle/lock"
}

# -mod=readonly: the dependencies are those that are pinned, or it fails.
build_pinned() {
  CGO_ENABLED=0 GOFLAGS=-mod=readonly go build -trimpath -buildvcs=false -ldflags "-s -w" "$@"
}

# ask_oracle [ARGUMENT...]
# Compares the policy with the runtime's library.
ask_oracle() {
  local release rest runtimes=()
  while read -r release rest; do
    runtimes+=(--runtime "$release=$(oracle_dir)/$release")
  done < <(oracle_releases)
  cargo test --locked --manifest-path policies/Cargo.toml -p tread-policy-registries \
    --test oracle -- "${runtimes[@]}" "$@"
}

# ask_oracle_of_mirrors [ARGUMENT...]
# Compares what the model renders of mirror objects with what OpenShift's library does.
ask_oracle_of_mirrors() {
  local package packages=()
  # Together, so that they are built as the suite model builds them.
  for package in tread-model tread-guest-sdk; do packages+=(--package "$package"); done
  cargo test --locked "${packages[@]}" --features tread-guest-sdk/toml --test oracle -- \
    --program "$(oracle_dir)/mirrors" "$@"
}
