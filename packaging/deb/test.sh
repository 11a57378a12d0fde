#!/bin/bash
# Installs the Debian package in a new Debian root and shows that the service starts as its unit says, that an upgrade keeps
# data and settings, and that a purge leaves nothing (`make test-deb`). Takes 2 to 3 minutes, most of it for 200 MB of packages
# from the Debian mirror that this machine's apt uses.
#
#   BINARY=target/debug/sluice packaging/deb/test.sh
#
# It needs root, since it makes a root folder and a system user in there. Everything is in target/deb-test, the service
# listens on loopback only, and all processes end with this one. The last line says how it went; code 1 when a check failed.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
export BINARY=${BINARY:-target/debug/sluice}
unset VERSION
work=$PWD/target/deb-test
root=$work/root

say() { printf '%s\n' "deb: $*"; }
fail() { say "FAILED: $*" >&2; exit 1; }

skip() { say "SKIPPED: $*"; exit 0; }

become_root() {
    [ "$(id -u)" = 0 ] && return 0
    sudo -n true 2>/dev/null && exec sudo -n BINARY="$BINARY" "$here/test.sh"
    skip "it needs root, and sudo does not give it without a password. Run: sudo packaging/deb/test.sh"
}

# Mounts and processes of its own, which end with this script.
separate() {
    [ -z "${SLUICE_TEST_SEPARATED:-}" ] || return 0
    unshare --mount --pid --fork --mount-proc true 2>/dev/null \
        || skip "it needs mounts of its own, which this container does not allow (CAP_SYS_ADMIN)"
    exec env SLUICE_TEST_SEPARATED=1 unshare --mount --pid --fork --kill-child --mount-proc "$here/test.sh"
}

clean_up() {
    local status=$?
    stop_service
    umount --lazy "$root/proc" 2>/dev/null || true
    [ "$status" = 0 ] || { echo "--- the service's last output:"; tail -n 40 "$work/service.log" 2>/dev/null || true; }
    rm -rf --one-file-system "$work"
    exit "$status"
}

check() { # check TEXT COMMAND…
    local text=$1
    shift
    "$@" || fail "$text"
    say "ok    $text"
}

absent() { [ ! -e "$root$1" ] && [ ! -L "$root$1" ]; }

wait_for() { # wait_for COMMAND…: until it succeeds, while the service runs
    local deadline=$((SECONDS + 120))
    until "$@"; do
        kill -0 "$service" 2>/dev/null || fail "the service has ended"
        [ "$SECONDS" -lt "$deadline" ] || fail "waited two minutes for: $*"
        sleep 0.1
    done
}

debian_sources() {
    # shellcheck disable=SC2016 # fields of apt
    apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian'
}

# From the Debian mirror of this machine's apt, through the same proxies.
make_root() {
    local mmdebstrap=target/tools/mmdebstrap/usr/bin/mmdebstrap sources release line options=()
    mmdebstrap=$(command -v mmdebstrap || echo "$mmdebstrap")
    [ -x "$mmdebstrap" ] || fail "there is no mmdebstrap: run scripts/install.sh deb, which gets it by apt"
    local key=/usr/share/keyrings/debian-archive-keyring.gpg
    sources=$(debian_sources)
    [ -n "$sources" ] || { apt-get update -q >/dev/null; sources=$(debian_sources); }
    [ -n "$sources" ] || fail "this machine's apt has no mirror of Debian among its sources"
    [ ! -e $key ] || sources=${sources//deb /deb [signed-by=$key] }
    release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    while read -r line; do options+=(--aptopt="$line"); done < <(apt-config dump | grep -E '^Acquire::https?::Proxy' || true)
    "$mmdebstrap" --quiet --mode=root --variant=apt --dpkgopt=force-unsafe-io --aptopt='Acquire::Retries "3"' "${options[@]}" \
        "$release" "$root" - <<<"$sources" || fail "mmdebstrap could not make a root"
    mount -t proc proc "$root/proc"
    mkdir -p "$root/packages" "$root/stub"
    in_root apt-get update -q >/dev/null
}

# A substitute for systemctl that writes down what is asked of it. What only makes links is left to the real one.
make_stub() {
    cat >"$root/stub/systemctl" <<'STUB'
#!/bin/sh
echo "$*" >>/stub/calls
case "$*" in
    *is-enabled*) [ ! -L /etc/systemd/system/multi-user.target.wants/sluice.service ] || echo enabled ;;
    *preset*) exec /bin/systemctl "$@" ;;
esac
STUB
    chmod +x "$root/stub/systemctl"
}

pretend_systemd() { mkdir -p "$root/run/systemd/system"; : >"$root/stub/calls"; }

asked_of_systemd() { grep -E " ?$1 sluice.service" "$root/stub/calls"; }
not_asked_of_systemd() { ! asked_of_systemd "$1"; }

path=/stub:/usr/sbin:/usr/bin:/sbin:/bin
enter=(env -i PATH="$path" LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive chroot "$root")
in_root() { "${enter[@]}" "$@" </dev/null; }

# A question of a script or of dpkg would end in a failure, since there is nothing to read.
apt() {
    in_root apt-get -y -q --no-install-recommends -o DPkg::Path="$path" "$@" >"$work/apt.log" 2>&1 \
        || { tail -n 30 "$work/apt.log"; fail "apt-get $*"; }
}

unit() { # unit KEY: the values of the installed unit
    sed -n "s/^$1=//p" "$root/usr/lib/systemd/system/sluice.service"
}

# Starts the service as systemd would: with the user, the folder, the variables and the command of the unit.
start_service() {
    local user group folder command
    user=$(unit User) group=$(unit Group) folder=$(unit WorkingDirectory)
    read -ra command <<<"$(unit ExecStart)"
    # No function, which would be a process between: signals are for the service itself.
    # shellcheck disable=SC2046 # one word for each variable
    "${enter[@]}" env --chdir="$folder" $(unit Environment) setpriv --reuid "$user" --regid "$group" --init-groups --no-new-privs \
        sh -c 'umask 0077; exec "$@"' sh "${command[@]}" </dev/null >>"$work/service.log" 2>&1 &
    service=$!
    wait_for test -s "$root/var/lib/sluice/addresses.json"
    wait_for is_ready
}

is_ready() {
    address=$(sed -n 's|.*"http": *"\([^"]*\)".*|\1|p' "$root/var/lib/sluice/addresses.json")
    [ -n "$address" ] && curl -sf --max-time 5 -o /dev/null "http://${address#http://}/readyz"
}

service=
stop_service() {
    [ -n "$service" ] || return 0
    kill "$service" 2>/dev/null || true
    wait "$service" || true
    service=
    rm -f "$root/var/lib/sluice/addresses.json"
}

api() { # api PATH OPTIONS…
    local path=$1
    shift
    curl -sf --max-time 60 -H "Authorization: Bearer $key" "$@" "http://${address#http://}$path"
}

same_file() { api "/api/files/$file" -o "$work/downloaded" && cmp "$work/downloaded" README.md; }

become_root
separate
[ -x "$BINARY" ] || fail "there is no program $BINARY"
rm -rf --one-file-system "$work"
mkdir -p "$work"
trap clean_up EXIT
trap 'exit 1' INT TERM

export COMPRESSION=none
first=$(OUTPUT=$work/first packaging/deb/build.sh)
version=$(dpkg-deb --field "$first" Version)+1
second=$(OUTPUT=$work/second VERSION=$version packaging/deb/build.sh)
make_root
mv "$first" "$root/packages/first.deb"
mv "$second" "$root/packages/second.deb"

apt install /packages/first.deb
grep '^sluice:' "$work/apt.log"
check "the installation says where the first credentials are" grep -q 'journalctl -u sluice' "$work/apt.log"
check "the unit is enabled" test -L "$root/etc/systemd/system/multi-user.target.wants/sluice.service"
check "its keys are those of systemd" in_root systemd-analyze verify --man=no sluice.service
check "the settings are readable for the service only" test "$(in_root stat -c %U:%G:%a /etc/sluice/sluice.toml)" = root:sluice:640
check "the data folder is the service's" test "$(in_root stat -c %U:%G:%a /var/lib/sluice)" = sluice:sluice:700
check "files are as the package has them" in_root dpkg --verify sluice
for file in man/man1/sluice.1.gz man/man1/sluice-users.1.gz bash-completion/completions/sluice zsh/vendor-completions/_sluice \
    fish/vendor_completions.d/sluice.fish doc/sluice/copyright doc/sluice/changelog.gz; do
    check "there is $file" test -s "$root/usr/share/$file"
done
make_stub

# An administrator's change: free ports of loopback.
cat >>"$root/etc/sluice/sluice.toml" <<'SETTINGS'
[http]
listen = "127.0.0.1:0"
[rtmp]
listen = "127.0.0.1:0"
tls_listen = "127.0.0.1:0"
[srt]
listen = "127.0.0.1:0"
[webrtc]
listen = "127.0.0.1:0"
tcp_listen = "127.0.0.1:0"
SETTINGS
cp "$root/etc/sluice/sluice.toml" "$work/edited.toml"
in_root setpriv --reuid sluice --regid sluice --init-groups sluice --config /etc/sluice/sluice.toml doctor >"$work/doctor.log" 2>&1 \
    || { cat "$work/doctor.log"; fail "sluice doctor finds faults after the installation"; }
say "ok    sluice doctor finds the libraries, the plug-ins and the typeface"
start_service
key=$(grep -oE 'svc_[0-9A-Za-z_]+' "$work/service.log" | grep -v '^svc_live_' | head -n 1)
file=$(api /api/files -F file=@README.md | sed -n 's/.*"id": *"\([^"]*\)".*/\1/p')
check "a file is uploaded and read" same_file
stop_service

pretend_systemd
apt install /packages/second.deb
# shellcheck disable=SC2016 # a field of dpkg-query
check "the second version is installed" test "$(in_root dpkg-query -W -f '${Version}' sluice)" = "$version"
check "an upgrade restarts the service" asked_of_systemd restart
check "an upgrade does not stop it beforehand" not_asked_of_systemd stop
check "an upgrade keeps the edited settings" cmp "$root/etc/sluice/sluice.toml" "$work/edited.toml"
start_service
check "an upgrade keeps the data" same_file
stop_service

pretend_systemd
apt remove sluice
check "a removal stops the service" asked_of_systemd stop
check "a removal takes the program" absent /usr/bin/sluice
check "a removal keeps the settings" cmp "$root/etc/sluice/sluice.toml" "$work/edited.toml"
check "a removal keeps the data" test -n "$(ls "$root/var/lib/sluice")"

pretend_systemd
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod +x "$root/usr/sbin/policy-rc.d"
apt install /packages/second.deb
check "a policy against starting is followed" not_asked_of_systemd 're?start|start'
rm "$root/usr/sbin/policy-rc.d"
check "an installation after a removal keeps the edited settings" cmp "$root/etc/sluice/sluice.toml" "$work/edited.toml"
apt purge sluice
pretend_systemd
apt install /packages/second.deb
check "an installation starts the service" asked_of_systemd start
apt purge sluice
in_root dpkg --purge sluice >/dev/null 2>&1 || fail "a second purge fails"

rm -r "$root/packages" "$root/stub"
left=$(find "$root" -xdev -path "$root/proc" -prune -o -name '*sluice*' -print)
check "a purge leaves no file${left:+: $left}" test -z "$left"
check "a purge leaves no user and no group" test -z "$(grep -h '^sluice' "$root"/etc/{passwd,group,shadow,gshadow})"
say "passed"
