"""What `check` tells of a provider's profile."""

from __future__ import annotations

from dataclasses import replace

from ops_mail.cli.check.provider import provider_row
from ops_mail.cli.check.rows import Row, Verdict
from ops_mail.core.providers import GENERIC, NETEASE, OUTLOOK, PROVIDERS, TENCENT, ProviderProfile
from ops_mail.settings import AuthMethod, load_settings

SETTINGS = load_settings(
    {"OPS_MAIL_IMAP_HOST": "h", "OPS_MAIL_IMAP_USERNAME": "u", "OPS_MAIL_IMAP_PASSWORD": "p"}, None
)
(MAILBOX,) = SETTINGS.mailboxes


def row(
    provider: ProviderProfile, *, auth: AuthMethod = AuthMethod.PASSWORD, poll_seconds: float = 60, polled: bool = True
) -> Row:
    session = replace(SETTINGS.session, poll_seconds=poll_seconds)
    return provider_row(provider, replace(MAILBOX, auth=auth), session, polled=polled, group="g", step="provider")


def test_an_ordinary_server_needs_nothing() -> None:
    found = row(GENERIC)
    assert (found.verdict, found.detail) == (Verdict.OK, "none in particular: nothing is done differently")


def test_every_note_on_a_provider_is_told() -> None:
    for provider in PROVIDERS:
        detail = row(provider, auth=AuthMethod.OAUTH2).detail
        assert detail.startswith(f"{provider.label}: ")
        assert all(note.text in detail for note in provider.notes)


def test_what_the_profile_changes_is_told() -> None:
    assert "a polled folder is asked by STATUS at least every 55 seconds" in row(NETEASE).detail
    tencent = row(TENCENT).detail
    assert "IDLE is not used, the folder is polled" in tencent
    assert "at least 15 seconds between a failure and a login" in tencent


def test_settings_that_do_not_suit_the_provider_are_warned_of() -> None:
    outlook = row(OUTLOOK)
    assert (outlook.verdict, outlook.advice) == (
        Verdict.WARN,
        "set OPS_MAIL_IMAP_AUTH to oauth2, with an access token as the password",
    )
    assert row(OUTLOOK, auth=AuthMethod.OAUTH2).verdict is Verdict.OK
    hasty = row(TENCENT, poll_seconds=5)
    assert hasty.advice == "set OPS_MAIL_POLL_SECONDS to 30 or more: 5 is too often for this provider"
    assert row(NETEASE, poll_seconds=5, polled=False).verdict is Verdict.OK
