#!/usr/bin/env bash
# Sets up .venv with the locked packages and finds or installs a Chromium. Safe to interrupt and repeat:
# the stamp is written last, and while it matches, a call does nothing.
#
#   PYTHON=python3.12 scripts/setup.sh     choose the interpreter (3.11 or newer)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

LOCK=requirements.lock
PIP_VERSION=26.3
VENV_STAMP=.venv/.advsim-packages   # hash of everything the packages depend on
BROWSER_STAMP=.venv/.advsim-browser # path of the Chromium that was found

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# Runs a command as root, or fails when that is not possible without a password.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        sudo -n "$@"
    else
        return 1
    fi
}

apt_install() {
    command -v apt-get >/dev/null || return 1
    as_root true || return 1
    as_root apt-get -q -o Acquire::Retries=3 update >&2 || return 1
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get -q -y -o Acquire::Retries=3 install --no-install-recommends "$@" >&2
}

# The working folder is part of the hash: scripts in a virtual environment hold its full path.
wanted_hash() { { pwd; cat "$LOCK" pyproject.toml scripts/setup.sh; } | sha256sum | cut -d' ' -f1; }

up_to_date() {
    [ -x .venv/bin/python ] && [ -f "$VENV_STAMP" ] && [ "$(cat "$VENV_STAMP")" = "$1" ] &&
        [ -f "$BROWSER_STAMP" ] && [ -x "$(cat "$BROWSER_STAMP")" ]
}

find_python() {
    local candidate
    for candidate in "${PYTHON:-python3}" python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    die "Python 3.11 or newer is needed; found none. Install one, or name it: PYTHON=/path/to/python3 make …"
}

# pip writes INSTALLER when a package is complete; what lacks it was cut short and must be done again.
unfinished_packages() {
    local info
    for info in .venv/lib/python3*/site-packages/*.dist-info; do
        [ ! -d "$info" ] || [ -f "$info/INSTALLER" ] || echo "$info"
    done
}

make_venv() {
    if compgen -G '.venv/lib/python3*/site-packages/pip-*.dist-info/INSTALLER' >/dev/null &&
        .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        return
    fi
    local python
    python=$(find_python)
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        local package
        package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
        say "installing $package"
        apt_install "$package" || true
        "$python" -c 'import ensurepip, venv' 2>/dev/null ||
            die "$python cannot make virtual environments. Install what is missing: apt-get install $package"
    fi
    say "making .venv with $("$python" --version)"
    rm -rf .venv/bin .venv/lib .venv/lib64 .venv/include .venv/pyvenv.cfg
    "$python" -m venv .venv
}

install_packages() {
    local pip=(.venv/bin/python -m pip --disable-pip-version-check --no-input --retries 10)
    rm -f "$VENV_STAMP"
    make_venv
    unfinished_packages | xargs -r -d '\n' rm -rf
    say "installing the packages of $LOCK (a few minutes the first time)"
    {
        "${pip[@]}" install -q "pip==$PIP_VERSION" &&
            "${pip[@]}" install -q -r "$LOCK" &&
            "${pip[@]}" install -q --no-deps --no-build-isolation -e .
    } || die "pip could not install the packages of $LOCK: see its message above, then run make again"
    echo "$1" >"$VENV_STAMP"
}

# Prints the path of a Chromium that starts, looked for in browser_eval's order. Ubuntu's chromium-browser without its snap does not.
find_browser() {
    local candidate path
    for candidate in "${ADVSIM_CHROMIUM:-}" "$(.venv/bin/python - <<'PY'
from playwright.sync_api import sync_playwright

with sync_playwright() as p:
    print(p.chromium.executable_path)
PY
    )" chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable; do
        path=$(command -v "$candidate" || true)
        if [ -n "$path" ] && timeout 60 "$path" --version >/dev/null 2>&1; then
            echo "$path"
            return
        fi
    done
    return 1
}

playwright_install() {
    if as_root true; then
        as_root "$PWD/.venv/bin/python" -m playwright install-deps chromium >&2 || true
    fi
    .venv/bin/python -m playwright install chromium >&2
}

install_browser() {
    local path install
    if ! path=$(find_browser); then
        # Debian packages a real Chromium; Ubuntu's package is a stub for a snap, so there it comes second.
        local ways=(playwright_install "apt_install chromium fonts-liberation")
        if grep -qs '^ID=debian' /etc/os-release; then
            ways=("apt_install chromium fonts-liberation" playwright_install)
        fi
        for install in "${ways[@]}"; do
            say "no Chromium found; trying: $install"
            if $install && path=$(find_browser); then break; fi
        done
    fi
    [ -n "$path" ] || die "no Chromium could be installed. As root: 'apt-get install chromium' (Debian)," \
        "or as yourself: '.venv/bin/playwright install --with-deps chromium'. Then run make again."
    say "browser: $path"
    echo "$path" >"$BROWSER_STAMP"
}

hash=$(wanted_hash)
if up_to_date "$hash"; then exit 0; fi

# One set-up at a time: a second `make` waits for the first, then finds nothing to do.
mkdir -p .venv
exec 9>.venv/.advsim-setup-lock
if command -v flock >/dev/null; then flock 9; fi
if up_to_date "$hash"; then exit 0; fi

if [ "$(cat "$VENV_STAMP" 2>/dev/null)" != "$hash" ] || [ ! -x .venv/bin/python ]; then
    install_packages "$hash"
fi
install_browser
say "ready"
