"""Two ways to run an image: Docker, or plain Linux namespaces around what buildah has built."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol


class Container(Protocol):
    """A container that runs."""

    def running(self) -> bool: ...
    def health(self) -> int:
        """Exit code of the image's own health check, run inside."""

    def shell(self, command: str) -> str:
        """The output of a shell command inside, as the image's user."""

    def stop(self, seconds: float) -> int:
        """SIGTERM to PID 1, and its exit code; SIGKILL after the time."""

    def log(self) -> str: ...


def run(*command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """A command and what it says."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done


class Docker:
    """The Docker engine: a read-only root, /tmp in memory, no capabilities, the host's network."""

    def __init__(self, image: str) -> None:
        self._image = image
        self._names: list[str] = []

    def config(self) -> dict[str, Any]:
        """The image's configuration: User, Entrypoint, Healthcheck, …"""
        found: dict[str, Any] = self._inspect()["Config"]
        return found

    def megabytes(self) -> int:
        return int(self._inspect()["Size"]) // 1_000_000

    def start(self, environment: Mapping[str, str], secrets: Path) -> DockerContainer:
        """A container with `secrets` at /run/secrets."""
        name = f"ops-mail-try-{os.getpid()}-{len(self._names)}"
        settings = [part for key, value in environment.items() for part in ("--env", f"{key}={value}")]
        hard = ["--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
        mounts = ["--volume", f"{secrets}:/run/secrets:ro"]
        run("docker", "run", "--detach", "--network", "host", "--name", name, *hard, *mounts, *settings, self._image)
        self._names.append(name)
        return DockerContainer(name, self.config()["Healthcheck"]["Test"][1:])

    def remove(self) -> None:
        """Removes what was started."""
        for name in self._names:
            run("docker", "rm", "--force", name, check=False)

    def _inspect(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(run("docker", "image", "inspect", self._image).stdout)[0]
        return found


class DockerContainer:
    """One container of Docker's."""

    def __init__(self, name: str, health_check: Sequence[str]) -> None:
        self._name = name
        self._health_check = health_check

    def running(self) -> bool:
        return run("docker", "inspect", "--format", "{{.State.Running}}", self._name).stdout.strip() == "true"

    def health(self) -> int:
        return run("docker", "exec", self._name, *self._health_check, check=False).returncode

    def shell(self, command: str) -> str:
        return run("docker", "exec", self._name, "sh", "-c", command, check=False).stdout

    def stop(self, seconds: float) -> int:
        run("docker", "stop", "--time", str(round(seconds)), self._name)
        return int(run("docker", "inspect", "--format", "{{.State.ExitCode}}", self._name).stdout)

    def log(self) -> str:
        done = run("docker", "logs", self._name, check=False)
        return done.stdout + done.stderr


BUILDAH = ("buildah", "--storage-driver", "vfs")

# PID 1 of the new namespaces: mounts, gives up every privilege, and becomes the image's own command.
_INIT = """
set -e
root=$1 secrets=$2 folder=$3 user=$4
shift 4
mount --bind "$root" "$root"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount --bind "$secrets" "$root/run/secrets"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount -o remount,bind,ro "$root"
exec chroot "$root" setpriv --reuid="${user%:*}" --regid="${user#*:}" --clear-groups \
    --no-new-privs --bounding-set=-all --inh-caps=-all -- /usr/bin/env -i --chdir="$folder" "$@"
"""


class Buildah:
    """No engine: the root file system that buildah has built, run by unshare."""

    def __init__(self, image: str) -> None:
        self._image = image
        self._working: list[str] = []

    def config(self) -> dict[str, Any]:
        """The image's configuration: User, Entrypoint, Healthcheck, …"""
        found = json.loads(run(*BUILDAH, "inspect", "--type", "image", self._image).stdout)
        return dict(found["Docker"]["config"])

    def megabytes(self) -> int:
        size = run("du", "--summarize", "--block-size=1000000", "--one-file-system", str(self._mount()))
        return int(size.stdout.split()[0])

    def start(self, environment: Mapping[str, str], secrets: Path) -> Namespaces:
        """A process tree with `secrets` at /run/secrets."""
        root = self._mount()
        for folder in ("run/secrets", "proc", "dev"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        config = self.config()
        settings = [*config["Env"], *(f"{key}={value}" for key, value in environment.items())]
        return Namespaces(root, secrets, config, settings)

    def remove(self) -> None:
        """Removes buildah's working containers that were made here."""
        for container in self._working:
            run(*BUILDAH, "umount", container, check=False)
            run(*BUILDAH, "rm", container, check=False)

    def _mount(self) -> Path:
        container = run(*BUILDAH, "from", "--pull-never", self._image).stdout.strip()
        self._working.append(container)
        return Path(run(*BUILDAH, "mount", container).stdout.strip())


class Namespaces:
    """One process tree with mounts and process numbers of its own."""

    def __init__(self, root: Path, secrets: Path, config: Mapping[str, Any], settings: Sequence[str]) -> None:
        self._config = config
        self._settings = settings
        handle, log = tempfile.mkstemp(prefix="ops-mail-try-", suffix=".log")
        self._log = Path(log)
        inside = [str(root), str(secrets), config["WorkingDir"], config["User"], *settings]
        command = [*config["Entrypoint"], *config["Cmd"]]
        self._unshare = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "sh", "-c", _INIT, "init", *inside, *command],
            stdin=subprocess.DEVNULL,
            stdout=handle,
            stderr=handle,
        )
        os.close(handle)

    def running(self) -> bool:
        return self._unshare.poll() is None

    def health(self) -> int:
        return self._enter(self._config["Healthcheck"]["Test"][1:]).returncode

    def shell(self, command: str) -> str:
        return self._enter(["sh", "-c", command]).stdout

    def stop(self, seconds: float) -> int:
        for number, limit in ((signal.SIGTERM, seconds), (signal.SIGKILL, 5.0)):
            first = self._first()
            if first is not None:
                os.kill(first, number)
            try:
                return self._unshare.wait(limit)
            except subprocess.TimeoutExpired:
                continue
        raise RuntimeError("it does not end")

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def _first(self) -> int | None:
        """PID 1 of the namespace, by its number out here."""
        try:
            children = Path(f"/proc/{self._unshare.pid}/task/{self._unshare.pid}/children").read_text().split()
        except OSError:
            return None
        return int(children[0]) if children else None

    def _enter(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        first = self._first()
        if first is None:
            return subprocess.CompletedProcess(command, 1, "", "")
        user, _, group = self._config["User"].partition(":")
        entering = ["nsenter", f"--target={first}", "--mount", "--pid", "--root", f"--wd=/proc/{first}/root"]
        who = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"]
        return run(*entering, "--", *who, "/usr/bin/env", "-i", *self._settings, *command, check=False)


def engine(name: str, image: str) -> Docker | Buildah:
    """By the name that try.sh gives."""
    return Docker(image) if name == "docker" else Buildah(image)
