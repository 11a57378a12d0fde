#!/bin/sh
# Replaces the program in tests: its workers misbehave when an input demands it. `sluice` is in the same folder.
exec "$(dirname "$0")/sluice" "$@" --faults
