#!/usr/bin/env bash
# Makes localhost/ops-mail-base, a base image for the Dockerfile where no registry can be reached: Debian 12 with Python 3.11.
#   bash deploy/image/base.sh        (root, on Debian; about a minute, once)
set -euo pipefail
cd "$(dirname "$0")/../.."
. deploy/lib.sh

name=localhost/ops-mail-base
buildah=(buildah --storage-driver vfs)

is_root || fail "needs root: debootstrap unpacks a root file system"
command -v debootstrap >/dev/null || apt_install debootstrap
command -v buildah >/dev/null || apt_install buildah
if "${buildah[@]}" inspect --type image "$name" >/dev/null 2>&1; then exit; fi

folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder"' EXIT
echo "unpacking Debian 12 with Python"
debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates bookworm "$folder/root" >"$folder/log" 2>&1 || {
    tail -n 20 "$folder/log" >&2
    fail "debootstrap failed"
}
rm -rf "$folder"/root/var/cache/apt/archives/*.deb "$folder"/root/var/lib/apt/lists/*
container=$("${buildah[@]}" from scratch)
"${buildah[@]}" add --quiet "$container" "$folder/root" / >/dev/null
"${buildah[@]}" commit --quiet --rm "$container" "$name" >/dev/null
echo "made $name"
