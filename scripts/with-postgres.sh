#!/bin/sh
# Runs a command beside a PostgreSQL server of its own: scripts/with-postgres.sh COMMAND…
#
# SLUICE_TEST_POSTGRES is the server's URL for the command, whose exit status is that of this script. The server is in a
# temporary folder, listens on loopback only, flushes nothing (but for figures, with POSTGRES_FSYNC=on), and ends with the
# command. When the command fails, the last errors of the server's log are printed.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# The oldest server that the store accepts, and the time that a new one may take to answer.
oldest=14
start_within_s=60

say() { printf '%s\n' "with-postgres: $*" >&2; }
fail() { say "$*"; exit 1; }

[ $# -gt 0 ] || { say "usage: scripts/with-postgres.sh COMMAND…"; exit 2; }
# They would change where the command and the programs below connect.
unset PGHOST PGHOSTADDR PGPORT PGDATABASE PGUSER PGPASSWORD PGPASSFILE PGSERVICE PGSSLMODE PGOPTIONS

# Prints the folder of the newest server's programs; Debian keeps them out of PATH.
find_programs() {
    {
        printf '%s\n' /usr/lib/postgresql/*/bin | sort -V -r
        pg_config --bindir 2>/dev/null || :
        dirname "$(command -v initdb)" 2>/dev/null || :
    } | while read -r folder; do
        [ -x "$folder/initdb" ] && [ -x "$folder/postgres" ] || continue
        version=$("$folder/postgres" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
        [ "$version" -ge "$oldest" ] || continue
        printf '%s\n' "$folder"
        break
    done
}

# The server refuses to run as root.
as_server() {
    if [ "$(id -u)" != 0 ]; then exec "$@"; fi
    user=$(id -un postgres 2>/dev/null || echo nobody)
    exec setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups "$@"
}

make_cluster() {
    work=$(mktemp -d "${TMPDIR:-/tmp}/sluice-postgres.XXXXXX")
    mkdir "$work/data" "$work/socket"
    [ "$(id -u)" != 0 ] || {
        chown "$(id -un postgres 2>/dev/null || echo nobody)" "$work/data" "$work/socket"
        chmod 711 "$work"
    }
    (cd "$work" && as_server "$programs/initdb" --pgdata="$work/data" --username=postgres --locale=C.UTF-8 --encoding=UTF8 \
        --auth=trust --no-sync --no-instructions) >"$work/initdb.log" 2>&1 || { cat "$work/initdb.log" >&2; fail "initdb failed"; }
    {
        echo "listen_addresses = '127.0.0.1'"
        echo "unix_socket_directories = '$work/socket'"
        echo "max_connections = 400"
        echo "shared_buffers = 256MB"
        echo "autovacuum = on"
        # What was committed is in files when a process dies, only not when the machine does.
        echo "synchronous_commit = on"
        echo "fsync = ${POSTGRES_FSYNC:-off}"
        echo "full_page_writes = ${POSTGRES_FSYNC:-off}"
    } >>"$work/data/postgresql.conf"
}

# A port that is taken ends the server, and another one is tried. They are below those that the system gives to clients.
start_server() {
    for _ in 1 2 3 4 5; do
        port=$(shuf -i 20000-32000 -n 1)
        control start --timeout="$start_within_s" --options="-p $port" && return 0
    done
    cat "$work/control.log" "$work/data/server.log" >&2
    fail "the server does not start"
}

control() { # control ACTION OPTIONS…
    (cd "$work" && as_server "$programs/pg_ctl" "$@" --wait --pgdata="$work/data" --log="$work/data/server.log") >"$work/control.log" 2>&1
}

stop_server() {
    [ -n "$work" ] || return 0
    # Fast: open sessions are ended.
    if [ -e "$work/data/postmaster.pid" ]; then control stop --mode=fast || cat "$work/control.log" >&2; fi
    rm -rf "$work"
}

show_errors() {
    errors=$(grep -E '(ERROR|FATAL|PANIC): ' "$work/data/server.log" | tail -n 40)
    [ -z "$errors" ] || { say "the last errors in the server's log:"; printf '%s\n' "$errors" >&2; }
}

work=''
trap stop_server EXIT
# shellcheck source=scripts/run-command.sh
. "$here/run-command.sh"

programs=$(find_programs)
[ -n "$programs" ] || { "$here/install.sh" postgres; programs=$(find_programs); }
[ -n "$programs" ] || fail "PostgreSQL $oldest or newer is missing: install its server (Debian's package postgresql)"
make_cluster
start_server
export SLUICE_TEST_POSTGRES="postgres://postgres@127.0.0.1:$port/postgres"
status=0
run_command "$@" || status=$?
[ "$status" = 0 ] || show_errors
exit "$status"
