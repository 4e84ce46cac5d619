"""What the set-up scripts share: the choice of Python, and one clear line when something cannot be had."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from ops_mail.cli.main import app

ROOT = Path(__file__).resolve().parents[3]
BIN = "/usr/bin:/bin"


def shell(commands: str, path: str = BIN) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/bash", "-c", f"set -euo pipefail; . deploy/lib.sh; {commands}", "setup.sh"],
        cwd=ROOT,
        env={"PATH": path, "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder for the PATH, where a test puts programs of its own making."""
    return tmp_path


def python(folder: Path, name: str, *, version: str, venv: bool = True) -> str:
    """A Python that says it has another version, and that may lack its venv module."""
    program = folder / name
    program.write_text(
        "#!/bin/sh\n"
        f'case "$2" in *ensurepip*) exit {0 if venv else 1};; esac\n'
        f'exec {sys.executable} -c "import sys; sys.version_info = ({version}); exec(sys.argv[1])" "$2"\n'
    )
    program.chmod(0o755)
    return str(program)


def test_the_first_python_that_runs_and_fits_is_taken(programs: Path) -> None:
    (programs / "python3.11").write_text("#!/bin/sh\necho 'pyenv: python3.11: command not found' >&2\nexit 127\n")
    (programs / "python3.11").chmod(0o755)
    python(programs, "python3.12", version="3, 12, 4", venv=False)
    expected = python(programs, "python3.13", version="3, 13, 0")
    python(programs, "python3", version="3, 12, 0")
    assert shell("find_python", f"{programs}:{BIN}").stdout == f"{expected}\n"


@pytest.mark.parametrize("version", ["3, 10, 9", "3, 14, 0"])
def test_a_python_outside_of_the_supported_range_is_passed_over(programs: Path, version: str) -> None:
    for name in ("python3.11", "python3.12", "python3.13", "python3"):
        python(programs, name, version=version)
    assert shell("find_python", f"{programs}:{BIN}").returncode == 1


def test_a_normal_user_is_told_in_one_line_which_packages_to_install() -> None:
    done = shell("is_root() { false; }; apt_install dovecot-imapd mariadb-server-core")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        "setup.sh: needs the packages: dovecot-imapd mariadb-server-core (not root: please run: "
        "sudo apt-get install --no-install-recommends dovecot-imapd mariadb-server-core)\n"
    )


def test_without_apt_the_line_names_the_packages_too(programs: Path) -> None:
    for tool in ("bash", "basename", "id"):
        (programs / tool).symlink_to(f"/usr/bin/{tool}")
    done = shell("apt_install debootstrap", str(programs))
    assert done.returncode == 1
    assert done.stderr == "setup.sh: needs the packages: debootstrap (no apt-get here to install them with)\n"


@pytest.mark.parametrize(
    "script", ["deploy/lib.sh", "deploy/quickstart.sh", "deploy/lock.sh", "tests/run.sh", ".ci/run"]
)
def test_every_script_is_valid_shell(script: str) -> None:
    assert subprocess.run(["/bin/bash", "-n", ROOT / script], check=False).returncode == 0


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone whose environment is installed already, with an ops-mail that writes down how it was called."""
    deploy = tmp_path / "deploy"
    deploy.mkdir()
    (deploy / "quickstart.sh").write_text((ROOT / "deploy" / "quickstart.sh").read_text())
    (deploy / "lib.sh").write_text((ROOT / "deploy" / "lib.sh").read_text() + "\nensure_venv() { :; }\n")
    program = tmp_path / ".venv" / "bin" / "ops-mail"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$@" >>calls\ntest "$1" != check || test ! -e broken\n')
    program.chmod(0o755)
    return tmp_path


def quickstart(clone: Path, *arguments: str) -> tuple[int, list[str]]:
    done = subprocess.run(["/bin/bash", clone / "deploy" / "quickstart.sh", *arguments], cwd="/", check=False)
    return done.returncode, (clone / "calls").read_text().splitlines()


def test_quickstart_runs_the_demo_and_passes_arguments_on(clone: Path) -> None:
    assert quickstart(clone, "--port", "9000") == (0, ["demo --port 9000"])


def test_quickstart_tells_what_it_does_and_the_options_of_the_demo(
    clone: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (clone / "calls").touch()
    assert quickstart(clone, "--port", "9000", "--help") == (0, [])
    told = capfd.readouterr().out
    assert told.startswith("Usage: bash deploy/quickstart.sh")
    demo = typer.main.get_command(app).commands["demo"]  # type: ignore[attr-defined] # a group has commands
    options = {option for param in demo.params for option in param.opts}
    assert set(re.findall(r"^ +(--[a-z]+) [A-Z]", told, re.MULTILINE)) == options


def test_quickstart_with_settings_takes_no_options(clone: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (clone / ".env").touch()
    (clone / "calls").touch()
    assert quickstart(clone, "--port", "9000") == (2, [])
    assert "OPS_MAIL_HTTP_PORT instead of --port" in capfd.readouterr().err


def test_quickstart_with_settings_checks_them_and_then_runs_the_listener(clone: Path) -> None:
    (clone / ".env").touch()
    assert quickstart(clone) == (0, ["check", "run"])


def test_quickstart_runs_nothing_when_the_check_fails(clone: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (clone / ".env").touch()
    (clone / "broken").touch()
    assert quickstart(clone) == (1, ["check"])
    assert capfd.readouterr().err == (f"quickstart.sh: the check above found what to repair first (.env in {clone})\n")
