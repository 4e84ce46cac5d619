#!/usr/bin/env bash
# Installs what the tests need, then runs every check and every test:  bash tests/run.sh [--without-mysql] [pytest arguments]
#
# Needs Python 3.11 to 3.13 and, on Debian, root for what is missing: Dovecot, MariaDB, Prometheus, and a MySQL in a
# folder of its own. A normal user can run it where these are installed. Nothing global is started: the tests start their
# own servers on loopback.
#   --without-mysql   for a machine that can have no MySQL: the suites run on SQLite and MariaDB alone
# MySQL is kept between runs in ~/.cache/ops-mail-tests, about 560 MB.
set -euo pipefail
cd "$(dirname "$0")/.."
. deploy/lib.sh

PATH=$PATH:/usr/sbin:/sbin # a normal user's PATH lacks the servers
# Some containers set it. Hundreds of processes start here, and each would compile all of the program anew, half a second.
unset PYTHONDONTWRITEBYTECODE
cache=$HOME/.cache/ops-mail-tests

for arg in "$@"; do
    case $arg in
    -h | --help)
        sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"
        exit 0
        ;;
    esac
done

mysql_wanted=yes
pytest_args=()
for arg in "$@"; do
    if [ "$arg" = --without-mysql ]; then mysql_wanted=""; fi
    pytest_args+=("$arg")
done

has_real_mysql() { command -v mysqld >/dev/null && ! mysqld --version 2>/dev/null | grep -qi mariadb; }

# What the tests start or ask, and the Debian package that brings it. The core packages of MariaDB hold no service.
declare -A packages=(
    [/usr/lib/dovecot/imap]=dovecot-imapd
    [dovecot]=dovecot-imapd
    [mariadbd]=mariadb-server-core
    [my_print_defaults]=mariadb-client-core
    [prometheus]=prometheus
    [promtool]=prometheus
    [chromium]=chromium
    [chromedriver]=chromium-driver
    [ps]=procps
    [systemd-analyze]=systemd
)

ensure_servers() {
    local missing=() name
    for name in "${!packages[@]}"; do
        command -v "$name" >/dev/null || missing+=("${packages[$name]}")
    done
    if [ -n "$mysql_wanted" ] && ! has_real_mysql && [ ! -e "$cache/mysql-root" ]; then
        command -v debootstrap >/dev/null || missing+=(debootstrap)
        [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || missing+=(debian-archive-keyring)
    fi
    if [ ${#missing[@]} -gt 0 ]; then
        mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)
        apt_install "${missing[@]}"
    fi
    if [ -n "$mysql_wanted" ] && ! has_real_mysql; then ensure_mysql_root; fi
}

# Debian's stable archive has no MySQL, its development archive has: a small root of that, unpacked once and kept.
ensure_mysql_root() {
    local root=$cache/mysql-root new lock_fd
    # It is entered by chroot.
    is_root || fail "no MySQL here: needs its server (mysqld) on the PATH, or root, or --without-mysql to do without"
    [ -e "$root" ] && return
    mkdir -p "$cache"
    exec {lock_fd}>"$cache/lock"
    flock "$lock_fd" # another run may be making it
    if [ ! -e "$root" ]; then
        echo "unpacking MySQL into $root (about a minute, once)"
        rm -rf --one-file-system "$cache"/mysql-root.new.* # of a run that was killed
        new=$(mktemp -d "$cache/mysql-root.new.XXXXXX")
        chmod 755 "$new"
        if ! debootstrap --variant=minbase --include=mysql-server-core sid "$new" >"$new.log" 2>&1; then
            tail -n 20 "$new.log" >&2
            rm -rf --one-file-system "$new"
            fail "debootstrap could not unpack MySQL (log: $new.log); --without-mysql runs the rest"
        fi
        rm -rf "$new.log" "$new"/var/cache/apt/archives/*.deb
        mv "$new" "$root" # only a complete one has the name
    fi
    exec {lock_fd}>&-
}

failed=()
step() { # step NAME COMMAND…: all checks run, whatever came before; the summary tells
    local name=$1 start=$SECONDS
    shift
    echo "== $name"
    if "$@"; then
        echo "== $name: ok ($((SECONDS - start)) s)"
    else
        failed+=("$name")
        echo "== $name: FAILED ($((SECONDS - start)) s)"
    fi
}

ensure_servers
ensure_venv tests/requirements.lock
echo "ready after $SECONDS s: $(.venv/bin/python --version), $(dovecot --version | cut -d' ' -f1), $(mariadbd --version | cut -d' ' -f4)"

bin=$PWD/.venv/bin
step "ruff check" "$bin/ruff" check --quiet .
step "ruff format" "$bin/ruff" format --quiet --check .
step "mypy" "$bin/mypy"
step "import layers" "$bin/lint-imports" --no-logo
# Most tests wait for a server most of the time: four processes, each with servers of its own, keep two cores busy.
step "tests" "$bin/python" -m pytest -n 4 --dist loadfile --no-loadscope-reorder ${pytest_args[@]+"${pytest_args[@]}"}

if [ ${#failed[@]} -gt 0 ]; then
    printf 'FAILED after %d s: %s\n' "$SECONDS" "$(IFS=,; echo "${failed[*]}")"
    exit 1
fi
echo "all checks and tests passed in $SECONDS s"
