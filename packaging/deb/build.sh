#!/bin/sh
# Makes the Debian package sluice_VERSION_ARCHITECTURE.deb of a program that is built already (`make deb`), in place of an earlier
# one, and prints its path.
#
#   BINARY=target/release/sluice      the program; it is stripped in the package
#   VERSION=…                         the version of Cargo.toml
#   OUTPUT=target/deb                 the folder of the package
#   COMPRESSION=xz                    none, gzip, xz or zstd
#
# The package is for the Debian release on which it is made: its dependencies are the libraries that are installed here.
set -eu
umask 022

here=$(dirname "$0")
here=$(cd "$here" && pwd)
cd "$here/../.."
BINARY=${BINARY:-target/release/sluice}
VERSION=${VERSION:-$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)}
OUTPUT=${OUTPUT:-target/deb}
COMPRESSION=${COMPRESSION:-xz}

fail() { printf '%s\n' "deb: $*" >&2; exit 1; }
[ -x "$BINARY" ] || fail "there is no program $BINARY: run \`make build\` first, or name one with BINARY=…"
for tool in dpkg-deb dpkg-shlibdeps; do
    command -v "$tool" >/dev/null || fail "$tool is missing: install the Debian package dpkg-dev"
done

architecture=$(dpkg --print-architecture)
stage=$OUTPUT/debian/sluice
rm -rf "$OUTPUT/debian" "$OUTPUT"/sluice_*.deb
mkdir -p "$stage/DEBIAN" "$stage/usr/bin"
put() { # put FILE FOLDER [MODE]
    mkdir -p "$stage$2"
    install -m "${3:-644}" "$1" "$stage$2/"
}

program() {
    install -m 755 "$BINARY" "$stage/usr/bin/sluice"
    scripts/separate-debug.sh "$stage/usr/bin/sluice"
    rm -f "$stage/usr/bin/sluice.debug"
}

unit_and_settings() {
    mkdir -p "$stage/usr/lib/systemd/system"
    sed -e '/^# systemd unit/d' -e 's|/usr/local/bin/sluice|/usr/bin/sluice|' -e 's|^Documentation=|&man:sluice(1) |' \
        packaging/sluice.service >"$stage/usr/lib/systemd/system/sluice.service"
    # The file may hold secrets later; postinst gives it to the service's group.
    put packaging/deb/sluice.toml /etc/sluice 640
}

manual_and_completions() {
    generated=$OUTPUT/debian/generated
    "$BINARY" manual "$generated"
    for page in "$generated"/man1/*; do put "$page" /usr/share/man/man1; done
    gzip -9n "$stage"/usr/share/man/man1/*
    put "$generated/completions/_sluice" /usr/share/zsh/vendor-completions
    put "$generated/completions/sluice.fish" /usr/share/fish/vendor_completions.d
    mkdir -p "$stage/usr/share/bash-completion/completions"
    install -m 644 "$generated/completions/sluice.bash" "$stage/usr/share/bash-completion/completions/sluice"
}

documents() {
    doc=/usr/share/doc/sluice
    put packaging/deb/copyright $doc
    put README.md $doc
    put SECURITY.md $doc
    for folder in docs/guide docs/reference; do
        for page in "$folder"/*.md; do put "$page" "$doc/$folder"; done
    done
    put config/default.toml $doc
    gzip -9nc CHANGELOG.md >"$stage$doc/changelog.gz"
}

# Packages of the libraries that the program links, from the records of dpkg. libsrt is wanted with its corrections.
libraries() {
    printf 'Source: sluice\n\nPackage: sluice\nArchitecture: any\n' >"$OUTPUT/debian/control"
    srt=$(sed -n 's/^srt=//p' scripts/install.sh)
    (cd "$OUTPUT" && dpkg-shlibdeps -O "$PWD/debian/sluice/usr/bin/sluice") \
        | sed -n 's/^shlibs:Depends=//p' | sed "s/\(libsrt1\.5-[a-z]*\) ([^)]*)/\1 (>= $srt)/"
}

# Besides the libraries: the plug-ins that GStreamer loads, the typeface of watermarks and of text in SVGs, the
# authorities that webhooks and other outgoing requests are checked with, and the program that makes the service's user.
control() {
    linked=$(libraries)
    [ -n "$linked" ] || fail "dpkg-shlibdeps found no libraries"
    cat >"$stage/DEBIAN/control" <<CONTROL
Package: sluice
Version: $VERSION
Architecture: $architecture
Maintainer: The Sluice maintainers <sluice@localhost>
Installed-Size: $(du -sk --apparent-size "$stage" | cut -f1)
Section: video
Priority: optional
Depends: $linked, gstreamer1.0-plugins-base, gstreamer1.0-plugins-good, gstreamer1.0-plugins-bad,
 gstreamer1.0-plugins-ugly, gstreamer1.0-libav, fonts-dejavu-core, ca-certificates, passwd
Description: self-hosted media service: live streams, files, images
 Live ingest by RTMP, SRT and RTSP with low-latency HLS, an image CDN,
 conversions of images, video and audio, files with share links, workflows and
 webhooks, in one program with one data folder and a REST API.
CONTROL
    (cd "$stage" && find etc -type f -printf '/%p\n') >"$stage/DEBIAN/conffiles"
    (cd "$stage" && find usr -type f -exec md5sum {} +) >"$stage/DEBIAN/md5sums"
    for script in postinst prerm postrm; do install -m 755 "packaging/deb/scripts/$script" "$stage/DEBIAN/"; done
}

program
unit_and_settings
manual_and_completions
documents
control
package=$OUTPUT/sluice_${VERSION}_$architecture.deb
dpkg-deb --root-owner-group -Z"$COMPRESSION" --build "$stage" "$package" >/dev/null
rm -rf "$OUTPUT/debian"
echo "$package"
