#!/usr/bin/env bash
# Refreshes both lock files: `bash deploy/lock.sh` takes what is new, `bash deploy/lock.sh --keep` only what pyproject.toml asks for.
# requirements.lock: what runs (with every extra but `test`), for Python 3.11 to 3.13, each file by its hash.
# tests/requirements.lock: the same versions and the tools of tests/run.sh beside them.
set -euo pipefail
cd "$(dirname "$0")/.."

tool=$(mktemp -d)
trap 'rm -rf "$tool"' EXIT
uv=$(command -v uv || true)
if [ -z "$uv" ]; then
    python3 -m venv "$tool"
    "$tool/bin/pip" install --quiet --disable-pip-version-check uv
    uv=$tool/bin/uv
fi

upgrade=--upgrade
[ "${1:-}" = --keep ] && upgrade=
# No address of a package index is written: the machine that installs chooses its own.
compile=("$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links
    --custom-compile-command "bash deploy/lock.sh" ${upgrade:+$upgrade})
"${compile[@]}" --extra demo --extra asyncmy --extra s3 pyproject.toml --output-file requirements.lock
"${compile[@]}" --all-extras --constraint requirements.lock pyproject.toml --output-file tests/requirements.lock
# deploy/build.lock: what builds the package itself, so that an install asks for nothing that is not locked.
printf '%s\n' hatchling editables | "${compile[@]}" --constraint tests/requirements.lock - --output-file deploy/build.lock
