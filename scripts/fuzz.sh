#!/bin/sh
# Runs fuzz targets, two at a time, each for TIME seconds: scripts/fuzz.sh TIME [TARGET …]; without targets, all that have seeds.
set -eu

cd "$(dirname "$0")/.."
program=target/fuzz/x86_64-unknown-linux-gnu/debug/sluice-fuzz
work=target/fuzz
time=$1
shift
# shellcheck disable=SC2046 # one word each
[ $# -gt 0 ] || set -- $(ls fuzz/seeds)

(cd fuzz && cargo build --locked)
mkdir -p "$work/logs" "$work/findings"

# A target that finds a defect leaves the input in findings/ and does not keep the others from running.
run() { # run TARGET
    mkdir -p "$work/corpus/$1"
    FUZZ_TARGET=$1 nice -n 19 "$program" -max_total_time="$time" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$work/findings/$1-" "$work/corpus/$1" "fuzz/seeds/$1" >"$work/logs/$1.log" 2>&1 \
        && result=ok || result="FAILED, see $work/logs/$1.log"
    executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/logs/$1.log")
    echo "fuzz: $1: ${executed:-0} inputs: $result"
}

while [ $# -gt 0 ]; do
    run "$1" &
    shift
    if [ $# -gt 0 ]; then run "$1" & shift; fi
    wait
done
[ -z "$(ls "$work/findings")" ]
