#!/bin/sh
# Installs what `make` needs and the machine lacks: Debian packages, and programs unpacked under target/tools.
#
#   scripts/install.sh build|test|bench
#
# It asks first (dpkg, command -v) and says nothing when all is there. Servers that only tests and benches start
# (nginx, caddy) are unpacked under target/tools instead of installed, so that no service appears on the machine.
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

install_wanted() {
    [ -n "$wanted" ] || return 0
    has apt-get || fail "missing:$wanted (their Debian names). This machine has no apt-get: install them in its own way"
    say "installing the Debian packages:$wanted"
    as_root apt-get update -q
    # shellcheck disable=SC2086 # a list of words
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $wanted
    wanted=
}

# Unpacks Debian packages without installing them: unpack FOLDER PROGRAM PACKAGE…; the program is then
# target/tools/FOLDER/PROGRAM. A program that the machine has already is used as it is.
unpack() {
    folder=$tools/$1 program=$2
    shift 2
    [ -x "$folder/$program" ] && return 0
    has apt-get || { say "no apt-get: doing without $*"; return 0; }
    say "unpacking for tests and benches: $*"
    rm -rf "$folder" && mkdir -p "$folder/packages"
    [ -n "$(apt-cache policy "$1" | grep Candidate)" ] || as_root apt-get update -q
    (cd "$folder/packages" && apt-get download -q "$@") || { rm -rf "$folder"; say "could not get $*: doing without"; return 0; }
    for package in "$folder"/packages/*.deb; do dpkg-deb --extract "$package" "$folder"; done
    rm -r "$folder/packages"
}

# What no package here brings, before anything is installed for nothing: Rust, and a Node that is there but too old.
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
    install_wanted
}

test_needs() {
    build_needs
    want ffmpeg ffmpeg
    want chromium chromium
    want python3 python3
    want pip3 python3-pip
    want curl curl
    install_wanted
    modern_ffmpeg
    has nginx || unpack nginx usr/sbin/nginx nginx nginx-common
    has caddy || unpack caddy usr/bin/caddy caddy
}

bench_needs() {
    build_needs
    want ffmpeg ffmpeg
    install_wanted
    if has nginx && [ -e /usr/lib/nginx/modules/ngx_rtmp_module.so ]; then return 0; fi
    unpack nginx-rtmp usr/sbin/nginx nginx nginx-common libnginx-mod-rtmp
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

mkdir -p "$tools"
case "${1:-}" in
    build) build_needs ;;
    test) test_needs ;;
    bench) bench_needs ;;
    *) fail "usage: scripts/install.sh build|test|bench" ;;
esac
