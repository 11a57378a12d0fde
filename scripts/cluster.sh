#!/bin/sh
# Three nodes behind HAProxy on this machine, until Ctrl-C (`make cluster`): scripts/cluster.sh [PROGRAM]
#
# PostgreSQL and the S3 server are those of SLUICE_TEST_POSTGRES (scripts/with-postgres.sh) and SLUICE_TEST_OBJECTS
# (scripts/with-objects.sh). Everything is in a temporary folder and listens on loopback only. A node that ends is started again
# after AGAIN_AFTER seconds, as systemd would, only later, so that the others are seen to take over.
#
# CLUSTER_PORT is the balancer's port (7300); CLUSTER_PORT + 1 to + 50 are taken too.
set -eu

cd "$(dirname "$0")/.."
program=${1:-target/release/sluice}
port=${CLUSTER_PORT:-7300}
again_after=${AGAIN_AFTER:-20}
start_within_s=60
nodes='1 2 3'

say() { printf '%s\n' "cluster: $*" >&2; }
fail() { say "$*"; exit 1; }

: "${SLUICE_TEST_POSTGRES:?start it by scripts/with-postgres.sh}"
: "${SLUICE_TEST_OBJECTS:?start it by scripts/with-objects.sh}"
[ -x "$program" ] || fail "$program is missing: make build"
scripts/install.sh cluster
haproxy=$(command -v haproxy || echo target/tools/haproxy/haproxy)
[ -x "$haproxy" ] || fail "HAProxy is missing: install it (Debian's package haproxy)"

letters() { # letters COUNT
    tr -dc A-Za-z0-9 </dev/urandom | head -c "$1"
}

is_ready() { # is_ready NUMBER
    curl --noproxy '*' --silent --fail --max-time 2 --output /dev/null "http://127.0.0.1:$((port + $1))/readyz"
}

# Starts a node and, when it has ended by itself, starts it again. It has a session of its own, so that a Ctrl-C is one signal to it,
# by this shell: the second one would end it at once.
keep_node() { # keep_node NUMBER
    trap - EXIT
    trap 'stopping=1; kill "$node" 2>/dev/null || :' INT TERM
    stopping='' node=''
    while [ -z "$stopping" ]; do
        env SLUICE_STORE__DATA_DIR="$work/node$1" SLUICE_STORE__MIN_FREE='256 MB' \
            SLUICE_STORE__DATABASE_URL="$SLUICE_TEST_POSTGRES" SLUICE_STORE__DATABASE_SCHEMA=cluster \
            SLUICE_STORE__OBJECTS_URL="$SLUICE_TEST_OBJECTS" SLUICE_STORE__OBJECTS_ACCESS_KEY="$SLUICE_TEST_OBJECTS_ACCESS_KEY" \
            SLUICE_STORE__OBJECTS_SECRET_KEY="$SLUICE_TEST_OBJECTS_SECRET_KEY" \
            SLUICE_CLUSTER__NAME="node$1" SLUICE_CLUSTER__LISTEN="127.0.0.1:$((port + 10 + $1))" \
            SLUICE_HTTP__LISTEN="127.0.0.1:$((port + $1))" SLUICE_HTTP__BASE_URL="http://127.0.0.1:$port" SLUICE_HTTP__TRUSTED_PROXIES=127.0.0.1 \
            SLUICE_RTMP__LISTEN="127.0.0.1:$((port + 20 + $1))" SLUICE_RTMP__PUBLIC_URL="rtmp://127.0.0.1:$((port + 20))" \
            SLUICE_SRT__LISTEN="127.0.0.1:$((port + 30 + $1))" \
            SLUICE_WEBRTC__LISTEN="127.0.0.1:$((port + 40 + $1))" SLUICE_WEBRTC__TCP_LISTEN="127.0.0.1:$((port + 40 + $1))" \
            SLUICE_OUTBOUND__ALLOW=127.0.0.0/8 \
            SLUICE_BOOTSTRAP__API_KEY="$key" SLUICE_BOOTSTRAP__ADMIN_PASSWORD="$password" \
            setsid "$program" serve >>"$work/node$1.log" 2>&1 </dev/null &
        node=$!
        echo "$node" >"$work/node$1.pid"
        ended=0
        wait "$node" || ended=$?
        # A signal to this shell ends the first wait.
        while kill -0 "$node" 2>/dev/null; do wait "$node" || :; done
        [ -z "$stopping" ] || return 0
        say "node$1 has ended ($ended) and is started again in $again_after s; its log is $work/node$1.log"
        sleep "$again_after" &
        wait $! || :
    done
}

# The file in packaging with the addresses of this machine, and without TLS.
start_balancer() {
    set -- -e "s/bind :443 .*/bind 127.0.0.1:$port/" -e "s/bind :1935/bind 127.0.0.1:$((port + 20))/"
    for number in $nodes; do
        set -- "$@" -e "s/10\.0\.0\.$number:8080/127.0.0.1:$((port + number))/" -e "s/10\.0\.0\.$number:1935/127.0.0.1:$((port + 20 + number))/" \
            -e "/server node$number /s/check port 8080/check port $((port + number))/"
    done
    sed "$@" packaging/haproxy.cfg >"$work/haproxy.cfg"
    "$haproxy" -db -f "$work/haproxy.cfg" >"$work/haproxy.log" 2>&1 </dev/null &
    started="$started $!"
}

wait_ready() {
    for number in $nodes; do
        waited=0
        until is_ready "$number"; do
            waited=$((waited + 1))
            [ "$waited" -lt $((start_within_s * 2)) ] || { tail -n 30 "$work/node$number.log" >&2; fail "node$number does not start"; }
            sleep 0.5
        done
    done
    # By the balancer, which looks each half second.
    for _ in 1 2 3 4 5; do
        is_ready 0 && return 0
        sleep 1
    done
    cat "$work/haproxy.log" >&2
    fail "no request passes HAProxy"
}

stop_all() {
    trap '' INT TERM
    # All at once: each lets its running requests finish.
    # shellcheck disable=SC2086 # a list of words
    kill $started 2>/dev/null || :
    wait
    rm -rf "$work"
}

show() {
    address=http://127.0.0.1:$port
    cat <<TEXT

  Three nodes behind a balancer: $address

    dashboard     $address/app/system/nodes    (admin, $password)
    nodes         http://127.0.0.1:$((port + 1)) … $((port + 3)), processes $(cat "$work"/node?.pid | tr '\n' ' ')
    RTMP          rtmp://127.0.0.1:$((port + 20))
    PostgreSQL    $SLUICE_TEST_POSTGRES, schema cluster
    S3            $SLUICE_TEST_OBJECTS
    logs          $work/node?.log

  Kill a node in the middle of 200 jobs, and count what was done:

    KEY=$key SLUICE=$address
    curl -s \$SLUICE/api/files -H "Authorization: Bearer \$KEY" -F file=@docs/images/files-light.png    # the same from each node
    for n in \$(seq 200); do curl -s \$SLUICE/api/jobs -H "Authorization: Bearer \$KEY" \\
      -F jobType=convert -F format=webp -F resizeWidth=\$((300 + n)) -F files=@docs/images/files-light.png -o /dev/null; done &
    sleep 5; kill -9 \$(cat $work/node2.pid)      # the others take over within 6 s; it is started again after $again_after s
    psql $SLUICE_TEST_POSTGRES -c 'SELECT state, count(*) FROM cluster.jobs GROUP BY 1'

  Ctrl-C ends all of it.

TEXT
}

work=$(mktemp -d "${TMPDIR:-/tmp}/sluice-cluster.XXXXXX")
started=''
trap stop_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
key=svc_$(letters 43)
password=$(letters 20)
for number in $nodes; do
    keep_node "$number" &
    started="$started $!"
done
start_balancer
wait_ready
show
wait
