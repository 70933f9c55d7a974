# shellcheck shell=bash
# shellcheck disable=SC2154 # root and logs are set by tests/run
# The suite `examples`: the policies in examples/policies, as a stranger has them
# who copied one: outside of the tree and of git, without a workspace around.

suite_examples() {
  local place=$logs/stranger dir name
  cargo_for_tests build --quiet -p tread
  example_policies_are_formatted
  # Beside each other as in the tree: their manifests name the SDK by ../../../guest-sdk.
  mkdir -p "$place/examples/policies"
  cp -R guest-sdk wit "$place/"
  # What the SDK inherits from the workspace that it lies in.
  workspace_of_the_sdk >"$place/Cargo.toml"
  for dir in examples/policies/*/; do
    name=$(basename "$dir")
    git ls-files -z --cached --others --exclude-standard "$dir" |
      tar --create --null --files-from=- | tar --extract --directory "$place"
    (cd "$place/$dir" && example_policy_works "$name")
  done
}

example_policies_are_formatted() {
  local dir
  for dir in examples/policies/*/; do
    cargo fmt --check --manifest-path "$dir/Cargo.toml"
  done
}

# The tree's own manifest, with the SDK as its only member.
workspace_of_the_sdk() {
  sed -e '/^members = \[/,/\]/c\members = ["guest-sdk"]' -e 's|^exclude = .*|exclude = ["examples"]|' Cargo.toml
}

# In the directory of a policy, with one target directory for all of them.
example_policy_works() {
  local name=$1
  export CARGO_TARGET_DIR
  CARGO_TARGET_DIR=$(cd "$root" && target_dir)/examples
  local tread=$CARGO_TARGET_DIR/../release/tread
  echo "     $name"
  cargo clippy --quiet --locked --all-targets -- -D warnings
  cargo test --locked
  "$tread" policy build
  "$tread" policy test "$name.wasm" | tee "$logs/$name.cases"
  # As the other runners say it, so that they are counted.
  echo "     Running its cases (commands/$name-0)"
  sed -n '$s/^\([0-9]*\) passed, \([0-9]*\) failed$/test result: ok. \1 passed; \2 failed; 0 ignored/p' \
    "$logs/$name.cases"
  "$tread" policy inspect "$name.wasm" -o json >"$logs/$name.json"
  "$tread" policy pack "$name.wasm" -n a-namespace --name "$name" >"$logs/$name.yaml"
  "$tread" policy unpack "$logs/$name.yaml" -o "$logs/$name.wasm"
  cmp "$name.wasm" "$logs/$name.wasm"
  example_plan_is_as_its_readme_says "$tread" "$name"
}

# The README shows one plan: the command, and the first line of its answer.
example_plan_is_as_its_readme_says() {
  local tread=$1 name=$2 command expected found status=0
  command=$(grep -m 1 -E '^ +tread plan ' README.md | sed 's/^ *tread //')
  expected=$(grep -m 1 -A 1 -E '^ +tread plan ' README.md | sed -n '2s/^ *//p')
  # shellcheck disable=SC2086 # it is a command line
  found=$("$tread" $command | sed -n 1p) || status=$?
  if [ "$status" -ne 0 ] && [ "$status" -ne 4 ]; then return "$status"; fi
  if [ -z "$expected" ] || [ "$found" != "$expected" ]; then
    echo "$name: tread $command says: $found; its README says: $expected" >&2
    return 1
  fi
}
