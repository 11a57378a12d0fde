#!/bin/sh
# Runs a command beside an S3 server of its own (SeaweedFS): scripts/with-objects.sh COMMAND…
#
# SLUICE_TEST_OBJECTS is the address for store.objects_url, SLUICE_TEST_OBJECTS_ACCESS_KEY and SLUICE_TEST_OBJECTS_SECRET_KEY are
# its keys. The exit status is that of the command. The server is in a temporary folder, listens on loopback only, and ends with
# the command.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
tools=$here/../target/tools
start_within_s=30

say() { printf '%s\n' "with-objects: $*" >&2; }
fail() { say "$*"; exit 1; }

[ $# -gt 0 ] || { say "usage: scripts/with-objects.sh COMMAND…"; exit 2; }

# Without the proxies of the shell, which may not lead to this machine.
ask() { curl --noproxy '*' --silent --max-time 5 --output /dev/null --write-out '%{http_code}' "$@" 2>/dev/null || :; }

# Ports are below those that the system gives to clients.
start_server() {
    port=$(shuf -i 20000-31900 -n 1)
    # The time of elections counts after a kill too, since the only master elects itself.
    "$program" server -dir="$work/data" -ip=127.0.0.1 -ip.bind=127.0.0.1 \
        -master.port="$port" -master.port.grpc=$((port + 1)) -master.electionTimeout=1s -master.telemetry=false -master.volumeSizeLimitMB=256 \
        -volume.port=$((port + 2)) -volume.port.grpc=$((port + 3)) -volume.max=64 \
        -filer -filer.port=$((port + 4)) -filer.port.grpc=$((port + 5)) -filer.localSocket="$work/filer.sock" \
        -s3 -s3.port=$((port + 6)) -s3.port.grpc=$((port + 7)) -s3.localSocket="$work/s3.sock" -s3.config="$work/keys.json" \
        >"$work/server.log" 2>&1 &
    server=$!
    for _ in $(seq $((start_within_s * 5))); do
        kill -0 "$server" 2>/dev/null || return 1
        [ "$(ask "http://127.0.0.1:$((port + 6))/")" != 403 ] || return 0
        sleep 0.2
    done
    return 1
}

stop_server() {
    [ -z "$server" ] || { kill "$server" 2>/dev/null || :; wait "$server" 2>/dev/null || :; }
    [ -z "$work" ] || rm -rf "$work"
    # What its parts call each other by, which it leaves behind.
    [ -z "$port" ] || rm -f /tmp/seaweedfs-*-grpc-$((port + 1)).sock /tmp/seaweedfs-*-grpc-$((port + 3)).sock \
        /tmp/seaweedfs-*-grpc-$((port + 5)).sock /tmp/seaweedfs-*-grpc-$((port + 7)).sock
}

work='' server='' port=''
trap stop_server EXIT
# shellcheck source=scripts/run-command.sh
. "$here/run-command.sh"

"$here/install.sh" objects
program=$(command -v weed || echo "$tools/seaweedfs/bin/weed")
[ -x "$program" ] || fail "SeaweedFS is missing: put its program weed in PATH, or see what scripts/install.sh objects says"
work=$(mktemp -d "${TMPDIR:-/tmp}/sluice-objects.XXXXXX")
mkdir "$work/data"
secret=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
cat >"$work/keys.json" <<JSON
{"identities": [{"name": "sluice", "credentials": [{"accessKey": "sluice", "secretKey": "$secret"}], "actions": ["Admin"]}]}
JSON
start_server || { tail -n 20 "$work/server.log" >&2; fail "the server does not start"; }
# A bucket is a folder of the server's file service.
[ "$(ask --request POST "http://127.0.0.1:$((port + 4))/buckets/sluice/")" = 201 ] || fail "the server makes no bucket"
export SLUICE_TEST_OBJECTS="s3://sluice?endpoint=http://127.0.0.1:$((port + 6))"
export SLUICE_TEST_OBJECTS_ACCESS_KEY=sluice SLUICE_TEST_OBJECTS_SECRET_KEY="$secret"
status=0
run_command "$@" || status=$?
exit "$status"
