# shellcheck shell=bash
# Phases: each is a function suite_NAME, run with its output in a log, timed,
# and counted at the end.

# What a whole run is to take in seconds on two cores that have nothing else to do, with nothing
# built before, and with everything but what changed. CONTRIBUTING.md says what it takes.
cold_goal=2700
warm_goal=1200
# What takes longer than this hangs. It is less than the 90 minutes after which CI may kill a run
# without showing anything of it.
most=${TREAD_TESTS_MOST:-80m}

start_phases() {
  local ended=0
  timeout "$most" true || ended=$?
  # Where it takes no such time. On a machine that stands still, a time may be over at once.
  if [ "$ended" -eq 125 ]; then
    echo "tests/run: TREAD_TESTS_MOST is a time such as 80m or 1h" >&2
    exit 2
  fi
  logs=$(mktemp -d)
  mkdir "$logs/groups"
  built=warm
  if [ ! -d "$(target_dir)/release/deps" ]; then built=cold; fi
  started=$(date +%s)
  beside_pids=()
  trap stop_phases EXIT
  trap 'interrupted 129' HUP
  trap 'interrupted 130' INT
  trap 'interrupted 143' TERM
  watch_over
}

# Ends this run if it takes too long, and its phases if it is killed itself.
watch_over() {
  set -m
  (
    set +e
    trap - EXIT
    # In this group, which ends as a whole.
    timeout --foreground "$most" tail --pid=$$ -f /dev/null
    if [ $? -eq 124 ]; then
      touch "$logs/too-long"
      kill -TERM $$
      timeout --foreground 1m tail --pid=$$ -f /dev/null
    elif kill -0 $$; then
      # Somebody killed what waits here.
      exit
    fi
    # shellcheck disable=SC2046 # a number each
    end_groups $(ls "$logs/groups")
    rm -rf "$logs"
    # Without the lock of whoever waits for this run to end.
  ) </dev/null >/dev/null 2>&1 9>&- &
  set +m
}

# What was done by then is not counted. Nobody may be there any more to whom that could be said.
interrupted() {
  (
    ends_of_logs
    if [ -e "$logs/too-long" ]; then echo "!!! TOO LONG: more than $most."; fi
    echo "!!! INTERRUPTED: this run shows nothing."
  ) 2>/dev/null || :
  exit "$1"
}

# The last lines of each phase that has not ended, so that whoever interrupts a run that hangs sees
# where. A phase may have further logs, PHASE-NAME.log.
ends_of_logs() {
  local log name
  for log in "$logs"/*.log; do
    name=$(basename "$log" .log)
    if [ -s "$log" ] && [ ! -e "$logs/${name%%-*}.outcome" ]; then
      echo "--- $name, which has not ended:"
      tail -n 5 "$log"
    fi
  done
}

# Ends what still runs, and removes the logs.
stop_phases() {
  set +e
  # Neither another signal nor an output that nobody reads any more cuts this short.
  trap '' HUP INT TERM PIPE
  # Also the one that has just been begun.
  # shellcheck disable=SC2046 # a number each
  end_groups $(jobs -p)
  rm -rf "$logs"
}

# end_groups GROUP...
# Ends phases, each of which is a process group of its own, and returns when nothing of them is left.
# What goes on for ten seconds is killed. Control planes and machines of tests are in other groups:
# they end by themselves when the test has ended.
end_groups() {
  local signal group left=$*
  for signal in TERM KILL; do
    for group in $left; do
      kill "-$signal" -- "-$group"
      kill -CONT -- "-$group"
    done
    for _ in {1..200}; do
      left=$(for group in $left; do if kill -0 -- "-$group"; then echo "$group"; fi; done)
      if [ -z "$left" ]; then return 0; fi
      sleep 0.05
    done
  done
} 2>/dev/null

say() {
  printf '== [%s] %s\n' "$(date +%H:%M:%S)" "$*"
}

outcome() {
  if [ -e "$logs/$1.outcome" ]; then cat "$logs/$1.outcome"; else echo "not run"; fi
}

# Runs one phase in front: its output is shown as it comes. As a job all the same: while bash
# waits for a job it hears of a signal at once, and while it runs a program only when that ends.
phase() {
  local name=$1 status=0
  say "$name"
  local begin=$SECONDS
  set -m
  (
    # -e counts inside of the inner subshell, which it would not behind `if` or `||`.
    set +e
    (set -e; counted "$name") 2>&1 | tee "$logs/$name.log"
    exit "${PIPESTATUS[0]}"
  ) </dev/null &
  local group=$!
  # At once: while it is set, bash tells of jobs that end.
  set +m
  touch "$logs/groups/$group"
  wait "$group" || status=$?
  rm "$logs/groups/$group"
  finish "$name" "$status" $((SECONDS - begin))
}

# Runs the function of a phase in a subshell of its own, and notes what processor
# time all its programs took, however it ends.
counted() {
  local name=$1
  # shellcheck disable=SC2064 # it is this name that is meant
  trap "times >'$logs/$name.times'" EXIT
  "suite_$name"
}

# Of what `times` says the sum in seconds.
processor_time() {
  awk '{ for (i = 1; i <= NF; i++) { split($i, part, "m"); sum += part[1] * 60 + part[2] } }
    END { printf "%.0f", sum }' "$@"
}

# beside NICENESS PHASE...
# Runs phases one after the other beside the ones in front. Of one that fails
# the output is shown at the end.
beside() {
  local niceness=$1
  shift
  [ $# -gt 0 ] || return 0
  say "beside, at niceness $niceness: $*"
  set -m
  (
    set +e
    renice -n "$niceness" -p "$BASHPID" >/dev/null 2>&1
    for name in "$@"; do
      begin=$SECONDS
      touch "$logs/$name.beside"
      (set -e; counted "$name") >"$logs/$name.log" 2>&1
      finish "$name" $? $((SECONDS - begin))
    done
  ) </dev/null &
  beside_pids+=($!)
  set +m
  touch "$logs/groups/$!"
}

wait_for_beside() {
  local pid
  [ ${#beside_pids[@]} -gt 0 ] || return 0
  say "waiting for what runs beside"
  for pid in ${beside_pids[@]+"${beside_pids[@]}"}; do
    wait "$pid" || :
    rm "$logs/groups/$pid"
  done
  beside_pids=()
}

finish() {
  local name=$1 status=$2 seconds=$3 outcome=ok
  if [ "$status" -ne 0 ]; then outcome=failed; fi
  echo "$outcome" >"$logs/$name.outcome"
  echo "$seconds" >"$logs/$name.seconds"
  echo "$name" >>"$logs/order"
  say "$name: $outcome, $seconds s"
}

# One line for each test binary: the suite, the binary, passed, failed, ignored.
results() {
  local name
  while read -r name; do
    awk -v suite="$name" '
      / Running / {
        what = $0; sub(/.* Running (unittests )?/, "", what)
        binary = what; sub(/.*\//, "", binary); sub(/-[0-9a-f]+\)$/, "", binary)
        sub(/ \(.*/, "", what); what = binary " " what
      }
      / Doc-tests / { what = $2 " examples in its documentation" }
      /^test result: / { printf "%s\t%s\t%d\t%d\t%d\n", suite, what, $4, $6, $8 }
    ' "$logs/$name.log"
  done <"$logs/order"
}

# What each test that failed said of it, in short: the whole is far above. So many tests, and so many
# lines of each.
failures() {
  awk -v most=12 -v lines=4 '
    FNR == 1 { of = "" }
    match($0, /thread .* panicked at /) {
      of = $0; sub(/.*thread \x27/, "", of); sub(/\x27.*/, "", of)
      if (of in said) { of = ""; next }
      sub(/.* panicked at /, ""); said[of] = "  at " substr($0, 1, 200); left = lines; next
    }
    /^stack backtrace:/ || /^note: / || /^test / || /^$/ { of = "" }
    of != "" && left > 0 { said[of] = said[of] "\n    " substr($0, 1, 300); left-- }
    match($0, /^test .* \.\.\. FAILED$/) {
      name = $0; sub(/^test /, "", name); sub(/ \.\.\. FAILED$/, "", name)
      if (!(name in failed)) { failed[name] = 1; order[++count] = name }
    }
    END {
      for (at = 1; at <= count && at <= most; at++) printf "%s:\n%s\n", order[at], said[order[at]]
      if (count > most) printf "and %d more\n", count - most
    }
  ' "$logs"/*.log
}

# What the runners said, and what did not run to its end. Fails if anything did.
summary() {
  local name passed failed broken=0
  results >"$logs/results"
  while read -r name; do
    [ "$(outcome "$name")" = failed ] || continue
    if [ -e "$logs/$name.beside" ]; then
      say "the output of $name, which failed:"
      cat "$logs/$name.log"
    fi
    # A phase may fail without a test that did: it counts as one.
    if ! awk -F '\t' -v suite="$name" '$1 == suite && $4 > 0 { found = 1 } END { exit !found }' \
      "$logs/results"; then
      broken=$((broken + 1))
    fi
  done <"$logs/order"
  while read -r name; do
    if [ "$(outcome "$name")" = "not run" ]; then
      echo "NOT RUN: $name"
      broken=$((broken + 1))
    fi
  done <"$logs/expected"

  printf '\n%-10s %-60s %6s %6s %7s\n' suite tests passed failed ignored
  awk -F '\t' '{ printf "%-10s %-60s %6d %6d %7d\n", $1, $2, $3, $4, $5 }' "$logs/results"
  printf '\n%-14s %-8s %7s %9s\n' phase outcome seconds processor
  while read -r name; do
    printf '%-14s %-8s %7s %9s\n' "$name" "$(outcome "$name")" "$(cat "$logs/$name.seconds")" \
      "$(processor_time "$logs/$name.times")"
  done <"$logs/order"
  local took=$(($(date +%s) - started)) goal=$warm_goal
  if [ "$built" = cold ]; then goal=$cold_goal; fi
  printf '%-14s %-8s %7s %9s\n' all "$built" "$took" "$(processor_time "$logs"/*.times)"
  printf 'The goal of a whole run that is %s, on two idle cores: %s s.\n\n' "$built" "$goal"

  passed=$(awk -F '\t' '{ sum += $3 } END { print sum + 0 }' "$logs/results")
  failed=$(awk -F '\t' '{ sum += $4 } END { print sum + 0 }' "$logs/results")
  failed=$((failed + broken))
  if [ "$failed" -gt 0 ]; then
    failures
    while read -r name; do
      if [ "$(outcome "$name")" = failed ]; then echo "FAILED: $name"; fi
    done <"$logs/order"
  fi
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
}
