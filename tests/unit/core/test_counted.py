from __future__ import annotations

from ops_mail.core.counted import counted


def test_one_is_not_many() -> None:
    assert [counted(number, "mail") for number in (0, 1, 2, 12_345)] == ["0 mails", "1 mail", "2 mails", "12,345 mails"]
    assert counted(2, "reply", "replies") == "2 replies"
