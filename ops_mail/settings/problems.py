"""One clear line for each mistake in the settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from ops_mail.settings.redaction import redact

# A word or a number helps to find the mistake; anything else could be a URL with a password in it.
_SHOWN_VALUE = re.compile(r"[\w.+ -]{1,24}")
# What is said in these never repeats the value: it may be, or hold, a secret.
_HIDDEN = ("password", "database_url", "webhook_url", "webhook_secret", "http_token", "username")


def problem_lines(error: ValidationError, model: type[BaseModel], label: Callable[[str], str]) -> list[str]:
    """A line for each field that `error` complains about; `label` tells how a field is called where it was set."""
    lines = []
    for detail in error.errors(include_url=False):
        key = str(detail["loc"][0])
        field = model.model_fields.get(key)
        if field is None:
            lines.append(f"{label(key)}: unknown key{did_you_mean(key, model.model_fields)}")
        else:
            lines.append(f"{label(key)}: {_sentence(dict(detail), field)}{_given(key, detail['input'])}")
    return list(dict.fromkeys(lines))


def did_you_mean(name: str, known: Iterable[str], prefix: str = "") -> str:
    """`; did you mean X?`, or nothing when no known name is near."""
    names = list(known)
    near = get_close_matches(name, names, n=1, cutoff=0.6) or sorted(
        (longer for longer in names if longer.startswith(f"{name}_")), key=len
    )
    return f"; did you mean {prefix}{near[0]}?" if near else ""


def _sentence(detail: dict[str, Any], field: FieldInfo) -> str:
    kind: str = detail["type"]
    context = detail.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind == "enum":
        return f"must be one of {context['expected'].replace(' or ', ', ').replace(chr(39), '')}"
    if kind in ("bool_parsing", "bool_type"):
        return "must be true or false"
    if kind in ("int_parsing", "int_type", "int_from_float", "int_parsing_size"):
        return f"must be a whole number{_bounds(field)}"
    if kind in ("float_parsing", "float_type"):
        return f"must be a number{_bounds(field)}"
    if kind in ("greater_than", "greater_than_equal", "less_than", "less_than_equal"):
        return f"must be{_bounds(field)}"
    if kind == "string_too_short":
        return "must not be empty"
    if kind == "string_too_long":
        return f"must be at most {context['max_length']} characters long"
    if kind == "string_type":
        return "must be a text"
    if kind in ("path_type", "path_error"):
        return "must be a path"
    return str(detail["msg"])[:1].lower() + str(detail["msg"])[1:]


def _bounds(field: FieldInfo) -> str:
    """` between 1 and 65535`, told from the field itself so that text and check cannot differ."""
    limits = {
        name: getattr(rule, name) for rule in _rules(field) for name in ("gt", "ge", "lt", "le") if hasattr(rule, name)
    }
    if "ge" in limits and "le" in limits:
        return f" between {_number(limits['ge'])} and {_number(limits['le'])}"
    if "gt" in limits and "le" in limits:
        return f" more than {_number(limits['gt'])} and at most {_number(limits['le'])}"
    return ""


def _rules(field: FieldInfo) -> list[Any]:
    rules = list(field.metadata)
    # An optional number keeps its rules inside the union, out of the field's own metadata.
    for part in getattr(field.annotation, "__args__", ()):
        for rule in getattr(part, "__metadata__", ()):
            rules.extend(rule.metadata if isinstance(rule, FieldInfo) else [rule])
    return rules


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


def _given(key: str, value: Any) -> str:
    """The value as it was given, when it helps and cannot be a secret."""
    if key.startswith(_HIDDEN) or not isinstance(value, (str, int, float)):
        return ""
    text = str(value)
    # A word that is known as a secret from its proper place was pasted here too.
    return f", not {value!r}" if _SHOWN_VALUE.fullmatch(text) and redact(text) == text else ""
