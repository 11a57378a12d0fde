#!/bin/sh
# Moves the symbols and line tables of a program into PROGRAM.debug beside it, where backtraces and profilers find them
# by the program's debug link: scripts/separate-debug.sh PROGRAM. A program that is stripped already is left as it is.
set -eu

program=$1
[ -f "$program" ] || { echo "there is no $program" >&2; exit 1; }
if ! readelf -S "$program" | grep -q '\.debug_line'; then exit 0; fi

objcopy --only-keep-debug "$program" "$program.debug.new"
strip --strip-all -o "$program.new" "$program"
mv "$program.debug.new" "$program.debug"
objcopy --add-gnu-debuglink="$program.debug" "$program.new"
# A new file: the old one may be another name of what cargo keeps.
mv "$program.new" "$program"
