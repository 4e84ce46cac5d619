"""The documented list of shortfalls that a parsed mail may carry."""

from __future__ import annotations

from enum import StrEnum


class Defect(StrEnum):
    """Stable codes; `code` or `code:detail` in `ParsedMail.defects`."""

    BAD_DATE = "bad_date"  # the Date header holds no date
    UNKNOWN_CHARSET = "unknown_charset"  # the label names no charset
    PARSER_FAILED = "parser_failed"  # the tree could not be read; only what is known is filled in
