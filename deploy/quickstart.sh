#!/usr/bin/env bash
# From a clean clone to a running ops-mail, on a machine that has Python 3.11 and apt and nothing else:
#   bash deploy/quickstart.sh            the demo: an embedded IMAP server, SQLite, nothing to configure
#   (with a file .env in this folder)    `ops-mail check`, and when all is well the real listener, `ops-mail run`
# Options are the demo's (`bash deploy/quickstart.sh --port 9000`). Works as root and as a normal user, any number of times.
set -euo pipefail
cd "$(dirname "$0")/.."
. deploy/lib.sh

usage() {
    cat <<EOF
Usage: bash deploy/quickstart.sh [OPTIONS OF THE DEMO]

Installs ops-mail with its locked requirements into $PWD/.venv (and Python 3.11 to 3.13 with apt, if there is none and
this is root), which takes a minute the first time and nothing later. Then:

  without .env in $PWD
      runs the demo (ops-mail demo): mails arrive in an embedded IMAP server and land in SQLite in a temporary folder;
      nothing to configure, nothing stays behind. Ctrl-C ends it. Its options:
        --count N         end after so many mails
        --every SECONDS   between two mails
        --port PORT       of the page; 8080, or a free one, if not given
  with .env in $PWD
      runs the check (ops-mail check), and if nothing is wrong the real listener (ops-mail run). These take no options
      here: everything is a setting, the page's port for example OPS_MAIL_HTTP_PORT.

Exit codes: those of ops-mail (see README.md); 1 when something could not be installed or the check found a fault.
EOF
}

for argument in "$@"; do
    case $argument in
    -h | --help)
        usage
        exit 0
        ;;
    esac
done
if [ -e .env ] && [ $# != 0 ]; then
    echo "quickstart.sh: with .env in $PWD the real listener runs, which takes no options: $*" >&2
    echo "quickstart.sh: put a setting into .env (OPS_MAIL_HTTP_PORT instead of --port), or see --help" >&2
    exit 2
fi

ensure_venv requirements.lock
if [ -e .env ]; then
    .venv/bin/ops-mail check || fail "the check above found what to repair first (.env in $PWD)"
    exec .venv/bin/ops-mail run
fi
exec .venv/bin/ops-mail demo "$@"
