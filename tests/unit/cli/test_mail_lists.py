"""How lists and histories are written for people."""

from __future__ import annotations

from datetime import UTC, datetime

from ops_mail.cli.mail_lists import change_line
from ops_mail.store.operating import AuditRecord

AT = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def test_the_details_of_a_change_are_json_as_everywhere_else() -> None:
    change = AuditRecord(at=AT, actor="operator", action="dead_retry", detail={"by": "王@vm", "error": None})
    assert change_line(change) == '2026-01-31 12:00:00  operator  dead_retry  {"by": "王@vm", "error": null}'
    assert change_line(AuditRecord(at=AT, actor="system", action="dead", detail=None)).endswith("  dead")
