# shellcheck shell=bash
# shellcheck disable=SC2154 # root and cache are set by whoever sources this
# The container runtime's own library, as a program that says what it makes of a
# node's files: see tests/oracle/runtime. Built against two releases of it, from
# Go's module proxy, and kept by the digest of what the programs are made of.

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
    cd "$root/tests/oracle/runtime"
    sha256sum -- *.go *.mod *.sum
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
      # -mod=readonly: the dependencies are those that are pinned, or it fails.
      CGO_ENABLED=0 GOFLAGS=-mod=readonly go build -trimpath -buildvcs=false -ldflags "-s -w" \
        -modfile "$modules" -tags "$tags" -o "$place.partial/$release" .
    done < <(oracle_releases)
    mv "$place.partial" "$place"
    find "$cache/oracle" -mindepth 1 -maxdepth 1 -type d -mtime +14 -exec rm -rf {} +
  ) 9>"$cache/oracle/lock"
}

# ask_oracle [ARGUMENT...]
# Compares the policy with them.
ask_oracle() {
  local release rest runtimes=()
  while read -r release rest; do
    runtimes+=(--runtime "$release=$(oracle_dir)/$release")
  done < <(oracle_releases)
  cargo test --locked --manifest-path policies/Cargo.toml -p tread-policy-registries \
    --test oracle -- "${runtimes[@]}" "$@"
}
