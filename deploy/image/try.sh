#!/usr/bin/env bash
# Builds the image and runs it against a real Dovecot and a real MariaDB: starts, becomes healthy and ready, lands mails,
# ends on SIGTERM, writes nowhere but where it may.
#   bash deploy/image/try.sh
# With a Docker engine it is built and run by that. Without one (root, on Debian) buildah builds it on a base image that
# debootstrap makes, and it runs in namespaces of its own: PID 1, a read-only root file system, an ordinary user.
#   IMAGE  the name that the image gets (localhost/ops-mail:try)
#   BASE   another base image
set -euo pipefail
cd "$(dirname "$0")/../.."
. deploy/lib.sh

PATH=$PATH:/usr/sbin:/sbin
missing=()
command -v dovecot >/dev/null || missing+=(dovecot-imapd)
command -v mariadbd >/dev/null || missing+=(mariadb-server-core mariadb-client-core)
if [ ${#missing[@]} -gt 0 ]; then apt_install "${missing[@]}"; fi
ensure_venv tests/requirements.lock

image=${IMAGE:-localhost/ops-mail:try}
start=$SECONDS
if docker info >/dev/null 2>&1; then
    docker build --quiet ${BASE:+--build-arg "BASE=$BASE"} --tag "$image" . >/dev/null
    engine=docker
else
    bash deploy/image/base.sh
    # This machine's own certificate authorities serve pip alone, while it builds.
    authorities=()
    for folder in /etc/ssl/certs /usr/local/share/ca-certificates; do
        if [ -d "$folder" ]; then authorities+=(--volume "$folder:$folder:ro"); fi
    done
    buildah --storage-driver vfs bud --quiet --isolation chroot --format docker --network host "${authorities[@]}" \
        --build-arg "BASE=${BASE:-localhost/ops-mail-base}" --tag "$image" . >/dev/null
    engine=buildah
fi
echo "built $image with $engine in $((SECONDS - start)) s"
exec .venv/bin/python -m tests.image.trial "$engine" "$image"
