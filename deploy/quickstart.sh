#!/usr/bin/env bash
# From a clean clone to a running ops-mail, on a machine that has Python 3.11 and apt and nothing else:
#   bash deploy/quickstart.sh            the demo: an embedded IMAP server, SQLite, nothing to configure
#   (with a file .env in this folder)    `ops-mail check`, and when all is well the real listener, `ops-mail run`
# Arguments are passed on (`bash deploy/quickstart.sh --port 9000`). Works as root and as a normal user, any number of times.
set -euo pipefail
cd "$(dirname "$0")/.."
. deploy/lib.sh

ensure_venv requirements.lock
if [ -e .env ]; then
    .venv/bin/ops-mail check || fail "the check above found what to repair first (.env in $PWD)"
    exec .venv/bin/ops-mail run "$@"
fi
exec .venv/bin/ops-mail demo "$@"
