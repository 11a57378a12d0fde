#!/bin/sh
# Builds the program of an earlier commit and prints its path: scripts/older-program.sh COMMIT
#
# For the rolling upgrade of tests/cluster (`make cluster-soak FROM=COMMIT`). It is built once, in a work tree under target/older.
set -eu

cd "$(dirname "$0")/.."
[ $# = 1 ] || { echo "older-program: usage: scripts/older-program.sh COMMIT" >&2; exit 2; }
commit=$(git rev-parse --verify --quiet "$1^{commit}") || { echo "older-program: $1 is no commit of this repository" >&2; exit 1; }
tree=$(pwd)/target/older/$commit
program=$tree/target/debug/sluice
[ -x "$program" ] || {
    [ -d "$tree" ] || git worktree add --quiet --detach "$tree" "$commit"
    # Its front end is not asked for.
    (cd "$tree" && make web && CARGO_TARGET_DIR="$tree/target" "${CARGO:-cargo}" build --locked --bin sluice) >&2
}
echo "$program"
