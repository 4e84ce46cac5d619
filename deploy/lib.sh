# shellcheck shell=bash
# Sourced by deploy/quickstart.sh and tests/run.sh: the right Python, Debian's packages, and a virtual environment that holds
# exactly what a lock file says. Works from a clean clone, as root and as a normal user, any number of times.

fail() {
    echo "$(basename "$0"): $*" >&2
    exit 1
}

is_root() { [ "$(id -u)" = 0 ]; }

# Installs Debian packages without questions; services they bring are neither started now nor at the next boot.
apt_install() {
    command -v apt-get >/dev/null || fail "needs the packages: $* (no apt-get here to install them with)"
    is_root || fail "needs the packages: $* (not root: please run: sudo apt-get install --no-install-recommends $*)"
    echo "installing Debian packages: $*"
    local policy=/usr/sbin/policy-rc.d ours="" status=0
    if [ ! -e "$policy" ]; then # Debian's own way to say "start nothing"
        printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy" && ours=yes
    fi
    apt_quietly update || true # a broken extra source need not matter: the install tells
    apt_quietly install --no-install-recommends "$@" || status=$?
    if [ -n "$ours" ]; then rm -f "$policy"; fi
    [ "$status" = 0 ] || fail "apt-get could not install: $*"
}

apt_quietly() {
    local log status=0
    log=$(mktemp)
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -qq -y "$@" </dev/null >"$log" 2>&1 || status=$?
    if [ "$status" != 0 ]; then tail -n 20 "$log" >&2; fi
    rm -f "$log"
    return "$status"
}

python_fits() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' >/dev/null 2>&1; }

python_has_venv() { "$1" -c 'import ensurepip, venv' >/dev/null 2>&1; }

# Prints the first Python that fits; a name on the PATH may be a shim that does not run, so each is tried.
find_python() {
    local name
    for name in python3.11 python3.12 python3.13 python3; do
        if python_fits "$name" && python_has_venv "$name"; then
            command -v "$name"
            return
        fi
    done
    return 1
}

ensure_python() {
    find_python >/dev/null && return
    local name
    for name in python3.11 python3.12 python3.13 python3; do
        if python_fits "$name"; then # Debian ships the venv module in a package of its own
            apt_install "python$("$name" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
            find_python >/dev/null && return
        fi
    done
    apt_install python3 python3-venv
    find_python >/dev/null || fail "needs Python 3.11, 3.12 or 3.13 with its venv module"
}

lock_hash() { cat "$1" deploy/build.lock pyproject.toml | sha256sum | cut -d' ' -f1; }

# ensure_venv LOCK: .venv holds exactly the versions of LOCK and this project, editable. Nothing to do when LOCK is unchanged.
ensure_venv() {
    local lock=$1 mark=.venv/installed-locks want lock_fd
    want=$(lock_hash "$lock")
    exec {lock_fd}>.venv.lock
    flock "$lock_fd" # two runs in one folder wait for each other
    if ! .venv/bin/python -c pass >/dev/null 2>&1 || ! python_fits .venv/bin/python ||
        ! .venv/bin/python -m pip --version >/dev/null 2>&1 || [ "$(cat .venv/home 2>/dev/null)" != "$PWD" ]; then
        ensure_python
        echo "making a virtual environment in .venv with $(find_python)"
        rm -rf .venv
        "$(find_python)" -m venv .venv
        echo "$PWD" >.venv/home # its scripts hold this path: a moved folder gets a new one
    fi
    if ! grep -qx "$want" "$mark" 2>/dev/null; then
        echo "installing what $lock names into .venv"
        rm -f "$mark"
        local pip=(.venv/bin/python -m pip -qq --disable-pip-version-check --no-input install --no-deps)
        "${pip[@]}" --require-hashes --requirement "$lock" --requirement deploy/build.lock ||
            fail "pip could not install $lock (the reason is above)"
        "${pip[@]}" --no-build-isolation --editable . || fail "pip could not install ops-mail itself (the reason is above)"
        echo "$want" >"$mark"
        lock_hash requirements.lock >>"$mark" # the other lock holds the same versions and more
    fi
    exec {lock_fd}>&-
}
