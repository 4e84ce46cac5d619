"""As much of JSON Schema as `webhook.json` uses; a keyword it does not know is an error, not a pass."""

from __future__ import annotations

import re
from typing import Any

_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)
}  # fmt: skip
_SILENT = {"$schema", "$id", "$defs", "title", "description"}


def check(value: Any, schema: dict[str, Any], root: dict[str, Any] | None = None, where: str = "$") -> None:
    """Raises AssertionError, saying where, unless `value` is as `schema` says."""
    root = schema if root is None else root
    for keyword, wanted in schema.items():
        if keyword not in _SILENT:
            _RULES[keyword](value, wanted, root, where, schema)


def _type(value: Any, wanted: Any, _root: Any, where: str, _schema: Any) -> None:
    names = [wanted] if isinstance(wanted, str) else wanted
    kinds = [name for name in names if isinstance(value, _TYPES[name])]
    assert kinds, f"{where}: {value!r} is none of {names}"
    assert not (isinstance(value, bool) and "boolean" not in names), f"{where}: a boolean"


def _properties(value: Any, wanted: Any, root: Any, where: str, schema: Any) -> None:
    for name, each in value.items():
        if name in wanted:
            check(each, wanted[name], root, f"{where}.{name}")
        else:
            assert schema.get("additionalProperties", True), f"{where}: {name} is not foreseen"


def _required(value: Any, wanted: Any, _root: Any, where: str, _schema: Any) -> None:
    assert set(wanted) <= value.keys(), f"{where}: lacks {set(wanted) - value.keys()}"


def _items(value: Any, wanted: Any, root: Any, where: str, _schema: Any) -> None:
    for index, each in enumerate(value or ()):
        check(each, wanted, root, f"{where}[{index}]")


def _pattern(value: Any, wanted: Any, _root: Any, where: str, _schema: Any) -> None:
    assert value is None or re.search(wanted, value), f"{where}: {value!r} is not {wanted}"


def _const(value: Any, wanted: Any, _root: Any, where: str, _schema: Any) -> None:
    assert value == wanted, f"{where}: {value!r} is not {wanted!r}"


def _ref(value: Any, wanted: Any, root: Any, where: str, _schema: Any) -> None:
    check(value, root["$defs"][wanted.removeprefix("#/$defs/")], root, where)


def _length(value: Any, wanted: Any, _root: Any, where: str, schema: Any) -> None:
    assert schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)), f"{where}: {len(value)} items"


def _nothing(*_all: Any) -> None:
    """Looked at by _properties."""


_RULES = {
    "type": _type, "properties": _properties, "required": _required, "items": _items, "pattern": _pattern,
    "const": _const, "$ref": _ref, "minItems": _length, "maxItems": _length, "additionalProperties": _nothing,
}  # fmt: skip
