"""What a kustomization brings together: its resources, those of the ones it builds on, and its patches of settings.

Enough of Kustomize for these manifests, so that they can be checked where the program itself is not to be had.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

Manifest = dict[str, Any]
_KNOWN = {"apiVersion", "kind", "namespace", "resources", "images", "patches"}


@dataclass
class Built:
    """The manifests, and every file that was read for them."""

    manifests: list[Manifest] = field(default_factory=list)
    files: set[Path] = field(default_factory=set)

    def of_kind(self, *kinds: str) -> list[Manifest]:
        return [manifest for manifest in self.manifests if manifest["kind"] in kinds]

    def named(self, kind: str, name: str) -> Manifest:
        """The one manifest of this kind and name."""
        (found,) = [manifest for manifest in self.of_kind(kind) if manifest["metadata"]["name"] == name]
        return found

    def pods(self) -> Iterator[tuple[str, Manifest]]:
        """The name of each workload and its pod template."""
        for manifest in self.of_kind("Deployment", "Job"):
            yield manifest["metadata"]["name"], manifest["spec"]["template"]


def build(folder: Path) -> Built:
    """Raises FileNotFoundError for a file that is listed and not there, ValueError for what this does not know."""
    built = Built()
    path = folder / "kustomization.yaml"
    built.files.add(path)
    kustomization = yaml.safe_load(path.read_text())
    if unknown := kustomization.keys() - _KNOWN:
        raise ValueError(f"{path}: {unknown} is not known here")
    for name in kustomization["resources"]:
        target = (folder / name).resolve()
        if target.is_dir():
            below = build(target)
            built.manifests += below.manifests
            built.files |= below.files
        else:
            built.manifests += _read(target, built)
    for patch in kustomization.get("patches", ()):
        for change in _read(folder / patch["path"], built):
            if change["kind"] != "ConfigMap":
                raise ValueError(f"{patch}: only settings are patched here")
            built.named("ConfigMap", change["metadata"]["name"])["data"] |= change["data"]
    for image in kustomization.get("images", ()):
        _set_image(built, image["name"], f"{image['newName']}:{image['newTag']}")
    if namespace := kustomization.get("namespace"):
        for manifest in built.manifests:
            if manifest["kind"] != "Namespace":
                manifest["metadata"]["namespace"] = namespace
    return built


def _read(path: Path, built: Built) -> list[Manifest]:
    built.files.add(path)
    return [manifest for manifest in yaml.safe_load_all(path.read_text()) if manifest is not None]


def _set_image(built: Built, name: str, image: str) -> None:
    containers = [container for _, pod in built.pods() for container in pod["spec"]["containers"]]
    fitting = [container for container in containers if container["image"].split(":")[0] == name]
    if not fitting:
        raise ValueError(f"no container has the image {name}")
    for container in fitting:
        container["image"] = image
