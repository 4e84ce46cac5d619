from __future__ import annotations

import pytest

from ops_mail.core.providers import (
    GENERIC,
    GMAIL,
    NETEASE,
    OUTLOOK,
    PROVIDERS,
    TENCENT,
    Keepalive,
    ProviderProfile,
    provider_for,
)


@pytest.mark.parametrize(
    ("host", "profile"),
    [
        ("imap.163.com", NETEASE),
        ("IMAP.126.COM", NETEASE),
        ("imap.yeah.net.", NETEASE),
        ("imaphz.qiye.163.com", NETEASE),
        ("imap.qq.com", TENCENT),
        ("imap.exmail.qq.com", TENCENT),
        ("imap.gmail.com", GMAIL),
        ("outlook.office365.com", OUTLOOK),
        ("imap-mail.outlook.com", OUTLOOK),
        ("imap.example.org", GENERIC),
        ("not163.com", GENERIC),
        ("163.com.example.org", GENERIC),
        ("127.0.0.1", GENERIC),
    ],
)
def test_a_provider_is_known_by_its_domain(host: str, profile: ProviderProfile) -> None:
    assert provider_for(host, frozenset()) is profile


def test_a_company_domain_is_known_by_what_its_server_announces() -> None:
    assert provider_for("mail.example.org", {"IMAP4REV1", "X-GM-EXT-1"}) is GMAIL
    assert provider_for("mail.example.org", {"IMAP4REV1", "X-CM-EXT-1"}) is NETEASE


def test_quirks_that_change_what_is_done() -> None:
    assert NETEASE.keepalive is Keepalive.STATUS
    assert NETEASE.keepalive_seconds is not None
    assert not TENCENT.idle_trusted
    assert GENERIC.idle_trusted


def test_every_note_names_its_source() -> None:
    assert all(note.text and note.source for profile in PROVIDERS for note in profile.notes)
