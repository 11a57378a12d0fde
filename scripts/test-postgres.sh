#!/bin/sh
# Runs the tests of the store and of the actors on the PostgreSQL server of SLUICE_TEST_POSTGRES (scripts/with-postgres.sh).
#
# They are the programs that `make test-rust` has built; with the environment of that target nothing is built again. The two
# crates run side by side, the programs of one after each other. What a program prints is in target/test-postgres, and shown
# when it fails.
set -eu

cd "$(dirname "$0")/.."
: "${SLUICE_TEST_POSTGRES:?start it by scripts/with-postgres.sh}"
logs=$(pwd)/target/test-postgres

# Prints a line for each program of tests: crate, name, program, folder of the crate.
list_programs() {
    # Only what is selected as there has the same features, and is the same program.
    "${CARGO:-cargo}" test --workspace --locked --no-run --message-format=json-render-diagnostics >"$logs/cargo.json"
    python3 - "$logs/cargo.json" <<'PYTHON'
import json, os, sys

for line in open(sys.argv[1]):
    message = json.loads(line) if line.startswith("{") else {}
    if message.get("reason") != "compiler-artifact" or not message["executable"] or not message["profile"]["test"]:
        continue
    folder = os.path.dirname(message["manifest_path"])
    target = message["target"]
    if os.path.relpath(folder) in ("store", "actors") and target["kind"][0] in ("lib", "test"):
        name = "lib" if target["kind"][0] == "lib" else target["name"]
        print(os.path.basename(folder), name, message["executable"], folder)
PYTHON
}

# Runs the programs of a crate; fails when one of them failed.
run_crate() { # run_crate CRATE
    result=0 running=
    trap 'kill $running 2>/dev/null || :; exit 143' TERM
    while read -r crate name program folder; do
        [ "$crate" = "$1" ] || continue
        log=$logs/$crate-$name.log
        (cd "$folder" && CARGO_MANIFEST_DIR=$folder exec "$program") >"$log" 2>&1 </dev/null &
        running=$!
        status=0
        wait "$running" || status=$?
        report "$crate" "$name" "$status" "$log"
        [ "$status" = 0 ] || result=1
    done <"$logs/programs"
    return "$result"
}

# In one write, since the other crate reports too.
report() { # report CRATE NAME STATUS LOG
    closing=$(grep '^test result:' "$4" || echo "error: test failed: $2 of $1 ended with status $3 before its last test")
    shown=
    [ "$3" = 0 ] || shown=$(grep -v -e '^test .* \.\.\. ok$' -e '^test result:' "$4" || :)
    printf '%s\n' "test-postgres: $1: $2${shown:+
$shown}" "$closing"
}

mkdir -p "$logs"
list_programs >"$logs/programs"
[ "$(wc -l <"$logs/programs")" -ge 5 ] || { echo "test-postgres: too few programs in $logs/programs" >&2; exit 1; }

run_crate store &
store=$!
run_crate actors &
actors=$!
trap 'kill "$store" "$actors" 2>/dev/null || :; exit 143' INT TERM
failed=0
wait "$store" || failed=1
wait "$actors" || failed=1
exit "$failed"
