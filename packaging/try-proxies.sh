#!/bin/bash
# Starts nginx and Caddy with the configurations beside this file and shows that a low-latency stream passes. Takes a minute.
#
#   packaging/try-proxies.sh                   before a substitute (try_upstream.py)
#   packaging/try-proxies.sh 127.0.0.1:8080    before a running service: its /healthz and an unknown stream's 404
#
# Loopback only, no root, everything in a temporary folder. The last line says how it went; code 1 when a check failed.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
tools=$here/../target/tools
PATH=$PATH:/usr/sbin
upstream=${1:-}
work=$(mktemp -d)
started=()
trials=()

stop_all() {
    for process in "${started[@]}"; do kill "$process" 2>/dev/null; wait "$process" 2>/dev/null; done
    rm -rf "$work"
}
trap stop_all EXIT

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

check() { # check TEXT CONDITION…
    local text=$1
    shift
    if "$@"; then echo "  ok    $text"; else echo "  FAIL  $text"; fi
}

wait_for() { # wait_for PORT
    for _ in $(seq 100); do
        (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return 0
        sleep 0.05
    done
    return 1
}

fetch() { # fetch PORT PATH OPTIONS…
    local port=$1 path=$2
    shift 2
    curl -sk --max-time 90 --resolve "live.example.org:$port:127.0.0.1" "$@" "https://live.example.org:$port$path"
}

at_least() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }'; }
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }

find_program() { # find_program NAME UNPACKED
    command -v "$1" || { [ -x "$tools/$2" ] && echo "$tools/$2"; }
}

make_certificate() {
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=live.example.org \
        -addext subjectAltName=DNS:live.example.org -keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null
}

start_nginx() { # start_nginx PROGRAM PORT
    mkdir -p "$work/nginx"
    {
        echo "daemon off; pid $work/nginx/pid; error_log $work/nginx/error.log;"
        echo "events {}"
        echo "http {"
        for kind in client_body proxy fastcgi uwsgi scgi; do echo "${kind}_temp_path $work/nginx/$kind;"; done
        echo "access_log off;"
        sed -e "s/127\.0\.0\.1:8080/$upstream/" -e "/listen \[::\]/d" \
            -e "s/listen 443/listen 127.0.0.1:$2/" -e "s/listen 80;/listen 127.0.0.1:$(free_port);/" \
            -e "s#/etc/ssl/live.example.org/fullchain.pem#$work/cert.pem#" \
            -e "s#/etc/ssl/live.example.org/privkey.pem#$work/key.pem#" "$here/nginx.conf"
        echo "}"
    } >"$work/nginx/nginx.conf"
    "$1" -p "$work/nginx" -e "$work/nginx/error.log" -c "$work/nginx/nginx.conf" 2>"$work/nginx/stderr" &
    started+=($!)
}

start_caddy() { # start_caddy PROGRAM PORT
    mkdir -p "$work/caddy"
    {
        echo "{"
        echo "admin off"
        echo "auto_https disable_redirects"
        echo "}"
        sed -e "s/127\.0\.0\.1:8080/$upstream/" \
            -e "s#^live.example.org {#live.example.org:$2 {\n\tbind 127.0.0.1\n\ttls $work/cert.pem $work/key.pem#" "$here/Caddyfile"
    } >"$work/caddy/Caddyfile"
    HOME=$work/caddy XDG_DATA_HOME=$work/caddy XDG_CONFIG_HOME=$work/caddy \
        "$1" run --adapter caddyfile --config "$work/caddy/Caddyfile" 2>"$work/caddy/stderr" &
    started+=($!)
}

# The substitute reports what arrived.
try_before_stand_in() { # try_before_stand_in PORT
    local port=$1 upload=$work/upload-$1 facts first second times
    check "HTTP/2 to the viewer" [ "$(fetch "$port" /headers -o /dev/null -w '%{http_version}')" = 2 ]

    facts=$(fetch "$port" /headers -H 'X-Forwarded-For: 203.0.113.9')
    fact() { python3 -c 'import json, sys; print(json.loads(sys.argv[1]).get(sys.argv[2], ""))' "$facts" "$1"; }
    check "HTTP/1.1 to the service" [ "$(fact version)" = HTTP/1.1 ]
    check "X-Forwarded-Proto is https" [ "$(fact x-forwarded-proto)" = https ]
    check "X-Forwarded-Host names the host" [ "$(fact x-forwarded-host | cut -d: -f1)" = live.example.org ]
    check "X-Forwarded-For ends in the peer's address" [ "$(fact x-forwarded-for | sed 's/.*[, ]//')" = 127.0.0.1 ]
    check "Host is passed on" [ "$(fact host | cut -d: -f1)" = live.example.org ]

    first=$(fact connection_number)
    facts=$(fetch "$port" /headers)
    second=$(fact connection_number)
    check "connections to the service are kept" [ "$first" = "$second" ]

    times=$(fetch "$port" '/live/v1/x/media.m3u8?_HLS_msn=7&_HLS_part=2&wait=62' -o /dev/null -w '%{http_code} %{time_total}')
    check "a blocking reload may take a minute (${times#* } s)" [ "${times% *}" = 200 ]

    times=$(fetch "$port" /drip -o /dev/null -w '%{time_starttransfer} %{time_total}')
    check "bytes are passed on as they come (first after ${times% *} s of ${times#* } s)" below "${times% *}" 0.2
    check "the whole of a slow answer arrives" at_least "${times#* }" 1.0

    head -c 20000000 /dev/zero >"$upload"
    check "an upload of 20 MB passes" [ "$(fetch "$port" /upload -T "$upload")" = 20000000 ]
}

# The service shows that it believes the proxy and that its answers pass unchanged.
try_before_service() { # try_before_service PORT
    check "/healthz answers" [ "$(fetch "$1" /healthz -o /dev/null -w '%{http_code}')" = 200 ]
    check "HTTP/2 to the viewer" [ "$(fetch "$1" /healthz -o /dev/null -w '%{http_version}')" = 2 ]
    check "an unknown stream is 404" [ "$(fetch "$1" /live/v1/pb_00000000000000000000/index.m3u8 -o /dev/null -w '%{http_code}')" = 404 ]
    check "and not to be stored" grep -qi '^cache-control:.*no-store' <(fetch "$1" /live/v1/pb_00000000000000000000/index.m3u8 -D - -o /dev/null)
}

# The proxies are tried side by side, since a blocking reload takes its minute; what each says is shown in turn.
try_proxy() { # try_proxy NAME PROGRAM
    local name=$1 program=$2 port
    if [ -z "$program" ]; then
        echo "  SKIP  $name is neither installed nor in target/tools" >"$work/$name.txt"
        return
    fi
    port=$(free_port)
    "start_$name" "$program" "$port"
    if wait_for "$port"; then
        "$try" "$port" >"$work/$name.txt" 2>&1 &
        trials+=($!)
    else
        { echo "  FAIL  $name does not start:"; cat "$work/$name/"{stderr,error.log}; } >"$work/$name.txt" 2>/dev/null
    fi
}

make_certificate
try=try_before_service
if [ -z "$upstream" ]; then
    upstream=127.0.0.1:$(free_port)
    try=try_before_stand_in
    python3 "$here/try_upstream.py" "${upstream#*:}" &
    started+=($!)
    wait_for "${upstream#*:}" || { echo "the substitute does not start"; exit 1; }
fi
try_proxy nginx "$(find_program nginx nginx/usr/sbin/nginx)"
try_proxy caddy "$(find_program caddy caddy/usr/bin/caddy)"
[ "${#trials[@]}" = 0 ] || wait "${trials[@]}"

for name in nginx caddy; do
    echo "$name:"
    cat "$work/$name.txt"
done
count() { cat "$work"/{nginx,caddy}.txt | grep -c "^  $1 "; }
failed=$(count FAIL)
echo "proxies: $(count ok) passed, $failed failed, $(count SKIP) skipped"
[ "$failed" = 0 ]
