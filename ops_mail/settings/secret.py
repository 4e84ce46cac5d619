"""A value that must not be seen: a password, a token, a URL with a password in it."""

from __future__ import annotations

from pathlib import Path

from ops_mail.errors import OpsMailError
from ops_mail.settings.redaction import MASK, register_secret

_LARGEST_FILE = 64 * 1024


class SecretError(OpsMailError):
    """The file that should hold a secret cannot be read; the message names the variable and the path."""


class Secret:
    """Holds a secret, or the path of the file that holds it. Its repr and str never show the value.

    `name` is the setting it came from, for error messages.
    """

    __slots__ = ("_path", "_value", "name")

    def __init__(self, name: str, *, value: str | None = None, path: Path | None = None) -> None:
        if (value is None) == (path is None):
            raise ValueError("a secret is either a value or a file")
        self.name = name
        self._value = value
        # Read again and again, also after a handler has changed the folder of the process.
        self._path = None if path is None else path.absolute()

    def reveal(self) -> str:
        """The value; a file is read again at each call, so that it can be rotated without a restart.

        Line ends at the end of a file are not part of the value. Raises SecretError.
        """
        value = self._read()
        register_secret(value)
        return value

    def _read(self) -> str:
        if self._value is not None:
            return self._value
        assert self._path is not None  # noqa: S101 - the constructor's either-or, told to the type checker
        return _read(self.name, self._path)

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and (self._value, self._path) == (other._value, other._path)

    def __hash__(self) -> int:
        return hash((self._value, self._path))


def _read(name: str, path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise SecretError(f"{name}: cannot read {path}: {error.strerror or type(error).__name__}") from error
    if len(content) > _LARGEST_FILE:
        raise SecretError(f"{name}: {path} is larger than {_LARGEST_FILE} bytes, so it is not a secret's file")
    try:
        value = content.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise SecretError(f"{name}: {path} is not UTF-8 text") from None  # the cause would show bytes of it
    if not value:
        raise SecretError(f"{name}: {path} is empty")
    return value
