# shellcheck shell=bash
# shellcheck disable=SC2154 # root and logs are set by tests/run
# The suites. Each is a function that fails when something is wrong.

# The packages whose tests need a control plane. They run in the suite cluster
# and in no other; without a control plane they fail.
need_bed=(tread-kube tread-cluster tread-enforce tread-front tread-agent tread-test-bed)

# The packages whose tests need a machine with a systemd of its own. They run in the
# suite node and in no other; without root, systemd or namespaces they fail.
need_machine=(tread-node tread-test-machine)

# Those that the suite model runs, in a profile that checks more. What is built
# without them has the same features.
in_model=(tread-model tread-guest-sdk)

suites=(leftovers fmt clippy build guests policies oracle model node tests doc deny readme examples cluster demo)

is_suite() {
  contains "$1" "${suites[@]}"
}

list_suites() {
  cat <<'END'
  leftovers  nothing unfinished, silenced or bound to one machine is in the tree
  fmt        the code is formatted
  clippy     no warning in the host, the SDK and the policies
  build      the host, in the release profile
  guests     the built-in policies, rebuilt from source; the committed ones are not stale
  policies   the built-in policies' own tests, native
  oracle     registries and mirror objects against the runtime's and OpenShift's own libraries, in short (tests/oracle/run)
  model      the tests of the model and the SDK, with overflow checks
  node       what happens on a node, with a real systemd and real reboots; needs root
  tests      all other tests of the host, and every case against the policies in the sandbox
  doc        the documentation has no dead links
  deny       licences, banned and duplicate dependencies, sources
  readme     the commands of the README and of the examples do what stands there
  examples   the policies in examples/policies, built, tested and packed outside of the tree
  cluster    what needs a control plane, against a real one; builds that and Ignition from source; needs root
  demo       the story that tests/demo tells is true
END
}

# The directory that cargo builds into.
target_dir() {
  echo "${CARGO_TARGET_DIR:-$root/target}"
}

tread() {
  "$(target_dir)/release/tread" "$@"
}

suite_leftovers() {
  local unfinished machine
  # In pieces, so that this file does not find itself.
  unfinished="TO""DO|FIX""ME|\\bX""XX\\b|todo""!\(|unimplemented""!\(|dbg""!\(|#\[ign""ore"
  machine="/ro""ot/|/ho""me/[a-z]|/wo""rk/|/Us""ers/"
  git ls-files -z --cached --others --exclude-standard -- ':!*.wasm' ':!*Cargo.lock' >"$logs/tree"
  {
    xargs -0 grep -sInE "$unfinished" <"$logs/tree" || :
    # The user of OpenShift's nodes has a home that configs may name.
    xargs -0 grep -sInE "$machine" <"$logs/tree" | grep -vE "/ho""me/core|\"/ro""ot/\\." || :
  } | tee "$logs/found"
  if [ -s "$logs/found" ]; then
    echo "These lines are unfinished, or true on one machine only." >&2
    return 1
  fi
}

suite_fmt() {
  cargo fmt --all --check
  cargo fmt --all --check --manifest-path policies/Cargo.toml
}

# Cargo, with a directory of its own to build into, for what only checks: cargo locks a directory while
# it builds anything in it, and the tests of nodes would wait for that.
cargo_to_check() {
  CARGO_TARGET_DIR=$(target_dir)/checked cargo "$@"
}

suite_clippy() {
  cargo_to_check clippy --locked --workspace --all-targets --features tread-guest-sdk/toml -- -D warnings
  # --all-targets leaves out those that are not run with all tests, also where they are named beside it.
  cargo_to_check clippy --locked --workspace --test service --test product --test labels --test protocol --test oracle \
    --features tread-guest-sdk/toml -- -D warnings
  cargo_to_check clippy --locked --workspace --all-targets --manifest-path policies/Cargo.toml -- -D warnings
  cargo_to_check clippy --locked --workspace --test oracle --manifest-path policies/Cargo.toml -- -D warnings
}

# In the release profile: cargo with tests/lib/rustc. As an option, so that a test that calls cargo
# calls it as a user does. It wraps the compiler of all crates and not of ours alone: what cargo builds
# with a wrapper for ours alone, it keeps apart from what README's first command built.
cargo_for_tests() {
  local command=$1
  shift
  cargo "$command" --config "build.rustc-wrapper=\"$root/tests/lib/rustc\"" --locked --release "$@"
}

suite_build() {
  cargo_for_tests build --workspace
}

# The built-in policies from source. The cases find them by TREAD_REBUILT, and
# are run against them.
suite_guests() {
  prebuilt_are_fresh
  guests_are_rebuilt
  guests_do_not_depend_on_where_they_are_built
}

prebuilt_are_fresh() {
  tread policy prebuilt --check "$root"
}

guests_are_rebuilt() {
  local prebuilt name
  rm -rf "$(rebuilt_dir)"
  mkdir -p "$(rebuilt_dir)"
  for prebuilt in policies/prebuilt/*.wasm; do
    name=$(basename "$prebuilt" .wasm)
    tread policy build "policies/$name" -o "$(rebuilt_dir)/$name.wasm"
    if ! cmp -s "$prebuilt" "$(rebuilt_dir)/$name.wasm"; then
      echo "$name differs from the committed one: another compiler than the one it was built with."
    fi
  done
}

rebuilt_dir() {
  echo "$(target_dir)/rebuilt"
}

# One of them in a copy of the tree elsewhere, with an empty target directory.
guests_do_not_depend_on_where_they_are_built() {
  local copy=$logs/elsewhere
  mkdir -p "$copy/tree"
  git ls-files -z --cached --others --exclude-standard |
    tar --create --null --files-from=- --ignore-failed-read | tar --extract --directory "$copy/tree"
  local tread
  tread=$(target_dir)/release/tread
  CARGO_TARGET_DIR=$copy/target "$tread" policy build "$copy/tree/policies/ssh-keys" -o "$copy/ssh-keys.wasm"
  if ! cmp "$copy/ssh-keys.wasm" "$(rebuilt_dir)/ssh-keys.wasm"; then
    echo "ssh-keys has other bytes when it is built in another directory." >&2
    return 1
  fi
}

suite_policies() {
  cargo test --no-fail-fast --locked --workspace --manifest-path policies/Cargo.toml
}

# Where the host is built by now, some of it is planned by the binary too.
suite_oracle() {
  local tread=()
  if [ "$(outcome build)" = ok ]; then tread=(--tread "$(target_dir)/release/tread"); fi
  build_oracle
  ask_oracle --pairs 300 --seed "$PROPTEST_RNG_SEED" ${tread[@]+"${tread[@]}"}
  ask_oracle_of_mirrors --sets 300 --seed "$PROPTEST_RNG_SEED"
}

suite_model() {
  local package packages=()
  for package in "${in_model[@]}"; do packages+=(--package "$package"); done
  cargo test --no-fail-fast --locked "${packages[@]}" --features tread-guest-sdk/toml
}

# More tests than there are cores: a machine waits for boots and units three quarters of its time.
suite_node() {
  local package selection=(--locked)
  for package in "${need_machine[@]}"; do selection+=(--package "$package"); done
  cargo test --no-fail-fast "${selection[@]}" -- --test-threads 4
}

suite_tests() {
  if [ -d "$(rebuilt_dir)" ] && wanted guests; then
    TREAD_REBUILT=$(rebuilt_dir)
    export TREAD_REBUILT
  fi
  local package without=()
  for package in "${need_bed[@]}" "${need_machine[@]}" "${in_model[@]}"; do without+=(--exclude "$package"); done
  # Where a test fails, the protocol is searched all the same.
  local failed=0
  cargo_for_tests test --no-fail-fast --workspace "${without[@]}" || failed=1
  cargo_for_tests test --no-fail-fast --workspace --test protocol || failed=1
  return "$failed"
}

suite_cluster() {
  cluster_selection
  cargo_for_tests test --no-run "${selection[@]}" "${targets[@]}" "${of_bed[@]}" \
    --test product --test enforce --test service --test registry_child --test agent_of_a_cluster
  # What runs on hosts. By itself a test has cargo build it, which waits for whatever else is built
  # beside, while control planes and machines wait for the test.
  local static
  static="$(uname -m)-unknown-linux-musl"
  cargo build --locked --package tread-node --bin tread-node --target "$static" --config profile.dev.strip=true
  TREAD_NODE_PROGRAM=$(target_dir)/$static/debug/tread-node
  # It is there, or being built beside: then this waits for it.
  suite_build_bed
  suite_build_ignition
  TREAD_BED=$(bed_dir)
  TREAD_IGNITION=$(ignition_program)
  export TREAD_NODE_PROGRAM TREAD_BED TREAD_IGNITION
  # Most tests wait for something more than half of their time, and the last one of a program has
  # nobody beside it: so several programs run at a time, and more tests than there are cores. With
  # still more of them each takes longer, and a control plane takes processor time for as long as it
  # is there. Those of product wait longest, for what an installation waits for.
  local chain pids=() failed=0
  for chain in "product others" enforce "service child"; do
    # shellcheck disable=SC2086 # one word for each
    one_after_the_other $chain &
    pids+=($!)
  done
  tests_of_cluster 2 "${targets[@]}" || failed=1
  local pid
  for pid in "${pids[@]}"; do
    wait "$pid" || failed=1
  done
  cat "$logs"/cluster-*.log
  cargo_for_tests test --no-fail-fast "${selection[@]}" --doc || failed=1
  return "$failed"
}

# one_after_the_other NAME...: each with a log of its own.
one_after_the_other() {
  local name failed=0
  for name in "$@"; do
    "tests_of_$name" >"$logs/cluster-$name.log" 2>&1 || failed=1
  done
  return "$failed"
}

tests_of_product() {
  tests_of_cluster 2 --test product
}

tests_of_enforce() {
  tests_of_cluster 4 --test enforce
}

tests_of_service() {
  tests_of_cluster 2 --test service
}

tests_of_child() {
  tests_of_cluster 1 --test registry_child
}

tests_of_others() {
  local failed=0
  tests_of_cluster 2 --test agent_of_a_cluster || failed=1
  tests_of_cluster 2 "${of_bed[@]}" || failed=1
  return "$failed"
}

# tests_of_cluster THREADS TARGET...
tests_of_cluster() {
  local threads=$1
  shift
  # With the binary also where only tests of another package are run: for those alone cargo would
  # build nearly everything once more.
  cargo_for_tests test --no-fail-fast "${selection[@]}" --bin tread "$@" -- --nocapture --test-threads "$threads"
}

# What the suite cluster builds, in `selection`, `targets` and `of_bed`; some of its programs are named
# by themselves.
cluster_selection() {
  # With the binary, whose features are those that all suites build with: else
  # cargo would build half of everything again.
  local package file
  selection=(--package tread)
  for package in "${need_bed[@]}"; do selection+=(--package "$package"); done
  targets=(--lib --bins --test kube --test cluster --test shared_plans --test front)
  of_bed=()
  for file in tests/bed/tests/*.rs; do of_bed+=(--test "$(basename "$file" .rs)"); done
}

# With the programs of the suite cluster: after that nothing is built but the
# policy of the story. It waits for what it tells, and fails where that does not
# come; what else it shows is looked for here.
suite_demo() {
  local said word=ok passed=0 failed=0
  suite_build
  suite_build_bed
  TREAD_BED=$(bed_dir) TREAD_PROGRAMS=$(target_dir)/release CARGO_TARGET_DIR=$(target_dir) \
    tests/demo </dev/null | tee "$logs/demo.said"
  while read -r said; do
    if grep -Eq -- "$said" "$logs/demo.said"; then
      passed=$((passed + 1))
    else
      echo "The demo does not say: $said" >&2
      failed=$((failed + 1))
      word=FAILED
    fi
  done <<'END'
^time\.chrony +template +time/chrony +[0-9.]+ +Loaded
^Pool worker: restart chronyd\.service$
^worker\.mc\.50-chrony\.[0-9a-f]+ +worker +MachineConfig/50-chrony changed +restart chronyd\.service
^time\.chrony +template +time/chrony +[0-9.]+ +LastGood
PolicyLastGood
END
  echo "     Running the story (demo/story-0)"
  echo "test result: $word. $passed passed; $failed failed; 0 ignored"
  [ "$failed" -eq 0 ]
}

suite_doc() {
  RUSTDOCFLAGS="-D warnings" cargo_to_check doc --locked --workspace --no-deps --features tread-guest-sdk/toml
  RUSTDOCFLAGS="-D warnings" cargo_to_check doc --locked --workspace --no-deps --manifest-path policies/Cargo.toml
}

# Advisories are left out: their database is fetched with git from another host,
# which a test must not depend on.
suite_deny() {
  install_cargo_deny
  cargo deny --locked --workspace check licenses bans sources
  cargo deny --locked --workspace --manifest-path policies/Cargo.toml --config deny.toml \
    check --allow unmatched-skip --allow unnecessary-skip licenses bans sources
}

# The first command of the README gives what the README shows; each example
# begins its answer as its README says.
suite_readme() {
  local dir command expected found passed=0 failed=0 word=ok
  for dir in ./ examples/*/; do
    # Those are policies, for the suite examples, and pages that need a cluster.
    case $dir in
      examples/policies/ | examples/install/ | examples/bootimages/ | examples/pools/) continue ;;
    esac
    command=$(first_command "${dir}README.md")
    found=$(run_as_written "$command")
    if [ "$dir" = ./ ]; then
      expected=$(shown_output README.md)
    else
      # The second indented line is the first one of the answer.
      expected=$(sed -n 's/^    //p' "${dir}README.md" | sed -n 2p)
      found=$(sed -n 1p <<<"$found")
    fi
    if diff -u --label "${dir}README.md" --label "$command" <(echo "$expected") <(echo "$found"); then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
      word=FAILED
    fi
  done
  echo "     Running as written (commands/README-0)"
  echo "test result: $word. $passed passed; $failed failed; 0 ignored"
  [ "$failed" -eq 0 ]
}

first_command() {
  grep -m 1 -E '^ +cargo run ' "$1" | sed 's/^ *//'
}

# The block between the two marks, without its fences.
shown_output() {
  sed -n '/^<!-- output of the command above -->$/,/^<!-- end of output -->$/p' "$1" |
    sed '/^<!--/d;/^```/d' | sed '/./,$!d'
}

# What a command prints on standard output. A plan may end with 4: refused.
run_as_written() {
  local status=0
  bash -c "$1" 2>"$logs/readme.errors" || status=$?
  if [ "$status" -ne 0 ] && [ "$status" -ne 4 ]; then
    echo "exit code $status"
    cat "$logs/readme.errors"
  fi
}
