#!/bin/sh
# Stands in the place of the program for tests: its workers misbehave when an input asks for it. `sluice` lies beside it.
exec "$(dirname "$0")/sluice" "$@" --faults
