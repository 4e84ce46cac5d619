"""Where variables come from: the process environment over `.env`."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path

from dotenv.parser import parse_stream
from pydantic_settings import BaseSettings, EnvSettingsSource

from ops_mail.settings.inputs import PREFIX

# Kubernetes adds these to every container for each Service of the namespace; one called "ops-mail" makes them look
# like settings. (https://kubernetes.io/docs/tutorials/services/connect-applications-service/#environment-variables)
_SERVICE_LINK = re.compile(
    r"OPS_MAIL_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_SERVICE_LINK_PORT = re.compile(r"(tcp|udp|sctp)://")


class MergedSource(EnvSettingsSource):
    """Reads a settings class from variables merged beforehand instead of from os.environ."""

    def __init__(self, settings_cls: type[BaseSettings], merged: Mapping[str, str]) -> None:
        self._merged = merged
        super().__init__(settings_cls)

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return {name.lower(): value for name, value in self._merged.items()}


def merged_variables(env: Mapping[str, str], env_file: Path | None, problems: list[str]) -> dict[str, str]:
    """All OPS_MAIL_ variables that are set; an empty value counts as unset, so it does not hide the one in `.env`."""
    merged = {} if env_file is None else _dotenv(env_file, problems)
    merged |= {
        name: value
        for name, value in env.items()
        if name.upper().startswith(PREFIX) and value.strip() and not _is_service_link(name, value)
    }
    return merged


def _dotenv(path: Path, problems: list[str]) -> dict[str, str]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):  # some keep a virtual environment in .env
        return {}
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        problems.append(f"{path}: cannot be read: {reason}")
        return {}
    found: dict[str, str] = {}
    # The parser alone: python-dotenv's own loader would replace ${…} inside passwords, and only logs what it skips.
    for binding in parse_stream(io.StringIO(text)):
        line = binding.original.line + len(binding.original.string) - len(binding.original.string.lstrip("\n"))
        if binding.error:
            problems.append(f"{path} line {line}: cannot be understood; write NAME=value, with quotes closed")
        elif binding.key is not None and binding.key.upper().startswith(PREFIX):
            if binding.value is None:
                problems.append(f"{binding.key}: has no value in {path} line {line}; write {binding.key}=value")
            elif binding.value.strip():
                found[binding.key] = binding.value
            else:
                found.pop(binding.key, None)
    return found


def _is_service_link(name: str, value: str) -> bool:
    if _SERVICE_LINK.fullmatch(name):
        return True
    return name.endswith("_PORT") and _SERVICE_LINK_PORT.match(value) is not None
