"""What is known of the big mail providers, each with its reason. Data and one pure function."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum


class Keepalive(StrEnum):
    """The command that keeps a polled session alive."""

    NOOP = "NOOP"
    STATUS = "STATUS"


@dataclass(frozen=True, slots=True)
class Note:
    """One thing an operator should know, and where it comes from."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class ProviderProfile:
    """How to treat a provider.

    `idle_trusted` false: the server is polled, even when it announces IDLE. `keepalive_seconds`: a polled session must
    send `keepalive` at least this often (None = the poll itself is enough). `poll_seconds`: a sensible lower limit for
    POLL_SECONDS, `min_login_gap_seconds` one for the time between two logins (0 = no limit known).
    """

    name: str
    label: str
    hosts: tuple[str, ...] = ()
    idle_trusted: bool = True
    keepalive: Keepalive = Keepalive.NOOP
    keepalive_seconds: int | None = None
    poll_seconds: int = 0
    min_login_gap_seconds: int = 0
    notes: tuple[Note, ...] = ()


GENERIC = ProviderProfile("generic", "any IMAP server")

NETEASE = ProviderProfile(
    "netease",
    "NetEase (163, 126, yeah.net)",
    hosts=("163.com", "126.com", "yeah.net", "188.com", "netease.com"),
    keepalive=Keepalive.STATUS,
    keepalive_seconds=55,
    poll_seconds=30,
    notes=(
        Note(
            "SELECT is refused with `Unsafe Login` until the client has sent ID after its login",
            "https://github.com/OfflineIMAP/offlineimap/issues/696",
        ),
        Note(
            "the password is an authorisation code from the web mail, where IMAP must be switched on",
            "https://github.com/pimalaya/himalaya/issues/651",
        ),
        Note("IDLE may not be announced", "https://github.com/smiley22/S22.Imap/issues/167"),
        Note("NOOP does not renew the idle timer, STATUS does", "field observation"),
    ),
)

TENCENT = ProviderProfile(
    "tencent",
    "Tencent (QQ mail, Exmail)",
    hosts=("qq.com", "foxmail.com"),
    idle_trusted=False,
    poll_seconds=30,
    min_login_gap_seconds=15,
    notes=(
        Note("IDLE is accepted but may never push, so the folder is polled", "field observation"),
        Note(
            "SEARCH ignores its criteria; nothing here relies on it", "https://github.com/mscdex/node-imap/issues/686"
        ),
        Note(
            "about ten logins within two minutes and further ones are refused for a while",
            "https://github.com/NousResearch/hermes-agent/pull/92753",
        ),
        Note("the password is an authorisation code from the web mail", "field observation"),
    ),
)

GMAIL = ProviderProfile(
    "gmail",
    "Google (Gmail, Workspace)",
    hosts=("gmail.com", "googlemail.com"),
    notes=(
        Note("at most 15 connections an account", "https://support.google.com/mail/answer/7126229"),
        Note("needs OAuth2 or an app password", "https://support.google.com/accounts/answer/185833"),
        Note("ends a session after about a day", "https://github.com/mscdex/node-imap/issues/921"),
    ),
)

OUTLOOK = ProviderProfile(
    "outlook",
    "Microsoft (Microsoft 365, Outlook.com)",
    hosts=("office365.com", "outlook.com", "hotmail.com", "live.com", "partner.outlook.cn"),
    min_login_gap_seconds=5,
    notes=(
        Note(
            "OAuth2 only: set OPS_MAIL_IMAP_AUTH=oauth2",
            "https://learn.microsoft.com/en-us/exchange/clients-and-mobile-in-exchange-online/"
            "deprecation-of-basic-authentication-exchange-online",
        ),
        Note(
            "`BAD User is authenticated but not connected`: throttled, or the token does not fit the mailbox",
            "https://github.com/mscdex/node-imap/issues/689",
        ),
        Note(
            "ends the session with BYE when the access token it began with runs out (about an hour)",
            "https://github.com/postalsys/imapflow/releases/tag/v2.11.0",
        ),
        Note("sizes in a listing are estimates, and IDLE is ended by the server", "field observation"),
    ),
)

PROVIDERS = (NETEASE, TENCENT, GMAIL, OUTLOOK)

# Company domains hosted there answer under other names; these capabilities give them away.
_CAPABILITIES = (("X-GM-EXT-1", GMAIL), ("X-CM-EXT-1", NETEASE))


def provider_for(host: str, capabilities: AbstractSet[str]) -> ProviderProfile:
    """The profile of the provider behind `host`; by its domain, else by what its server announces, else GENERIC."""
    name = host.lower().rstrip(".")
    for profile in PROVIDERS:
        if any(name == domain or name.endswith("." + domain) for domain in profile.hosts):
            return profile
    for capability, profile in _CAPABILITIES:
        if capability in capabilities:
            return profile
    return GENERIC
