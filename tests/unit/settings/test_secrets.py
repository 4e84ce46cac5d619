"""Secrets: rotated without a restart, never shown."""

from __future__ import annotations

import base64
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops_mail.settings import Secret, SecretError, load_settings
from ops_mail.settings.database_url import DatabaseUrl, safe_database_url
from ops_mail.settings.redaction import Redactor


def test_repr_and_str_are_masked() -> None:
    secret = Secret("OPS_MAIL_IMAP_PASSWORD", value="hunter2")
    assert f"{secret!r} {secret!s} {secret}" == "Secret(***) Secret(***) Secret(***)"
    variables = {"OPS_MAIL_IMAP_HOST": "h", "OPS_MAIL_IMAP_USERNAME": "u", "OPS_MAIL_IMAP_PASSWORD": "hunter2"}
    variables["OPS_MAIL_DATABASE_URL"] = "mysql+aiomysql://u:geheim@h/db"
    settings = load_settings(variables, None)
    assert "hunter2" not in repr(settings)
    assert "geheim" not in repr(settings)


def test_a_file_is_read_again_at_each_call(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("first\r\n")
    secret = Secret("OPS_MAIL_IMAP_PASSWORD_FILE", path=path)
    assert secret.reveal() == "first"
    path.write_text(" second with spaces \n")
    assert secret.reveal() == " second with spaces "


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot read {}: No such file or directory"),
        (b"", "{} is empty"),
        (b"\n", "{} is empty"),
        (b"hunter2\xff", "{} is not UTF-8 text"),
        (b"x" * 65_537, "{} is larger than 65536 bytes, so it is not a secret's file"),
    ],
)
def test_an_unreadable_file_names_variable_and_path(tmp_path: Path, content: bytes | None, says: str) -> None:
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SecretError) as caught:
        Secret("OPS_MAIL_WEBHOOK_SECRET_FILE", path=path).reveal()
    assert str(caught.value) == f"OPS_MAIL_WEBHOOK_SECRET_FILE: {says.format(path)}"


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("mysql+aiomysql://u:p%40ss@h:3306/db?ssl_key=x", "mysql+aiomysql://u:***@h:3306/db"),
        ("sqlite+aiosqlite:///ops-mail.db", "sqlite+aiosqlite:///ops-mail.db"),
        ("nonsense", "(not a database URL)"),
    ],
)
def test_a_database_url_is_shown_without_password_and_options(url: str, safe: str) -> None:
    assert safe_database_url(url) == safe


def test_the_url_of_a_store_is_shown_safely() -> None:
    variables = {"OPS_MAIL_ENABLED": "false", "OPS_MAIL_DATABASE_URL": "mysql+aiomysql://u:geheim@h/db"}
    settings = load_settings(variables, None)
    assert settings.safe_url == settings.store.safe_url == "mysql+aiomysql://u:***@h/db"
    assert isinstance(settings.store.database_url, DatabaseUrl)


def test_a_registered_value_is_masked_in_every_spelling() -> None:
    redactor = Redactor()
    value = 'pa"ss/wörd\\1'
    redactor.register(value)
    spellings = [
        value,
        quote(value, safe=""),
        'pa\\"ss/wörd\\\\1',
        repr(ValueError(value)),
        base64.b64encode(value.encode()).decode(),
    ]
    for spelling in spellings:
        masked = redactor.redact(f"before {spelling} after")
        assert masked.startswith("before "), masked
        assert masked.endswith(" after"), masked
        assert "ss/w" not in masked, masked
        assert "***" in masked


@pytest.mark.parametrize("user", ["a", "ab", "abc"])
def test_a_secret_inside_of_a_longer_text_in_base64_is_masked(user: str) -> None:
    redactor = Redactor()
    redactor.register("Sesam öffne dich")
    plain, masked = (
        redactor.redact(f"AUTHENTICATE PLAIN {base64.b64encode(text.encode()).decode()} done")
        for text in (f"\0{user}\0something else", f"\0{user}\0Sesam öffne dich")
    )
    assert "***" not in plain
    assert masked.startswith("AUTHENTICATE PLAIN ")
    assert masked.endswith(" done")
    assert len(masked.replace("***", "")) < len("AUTHENTICATE PLAIN  done") + 12, "but for user and neighbours"


def test_a_secret_that_begins_like_another_leaves_no_tail() -> None:
    redactor = Redactor()
    redactor.register("hunter")
    redactor.register("hunter2secret")
    assert redactor.redact("a hunter2secret b hunter c") == "a *** b *** c"


def test_a_very_short_secret_is_masked_where_it_stands_alone() -> None:
    redactor = Redactor()
    redactor.register("ops")
    assert redactor.redact("ops_mail: login ops failed, password=ops") == "ops_mail: login *** failed, password=***"


def test_nothing_is_masked_before_anything_is_registered() -> None:
    redactor = Redactor()
    redactor.register("")
    assert redactor.redact("a text") == "a text"


@given(st.lists(st.sampled_from(["hunter2", "hunter2-long", "a", "b ", "***"])).map("".join), st.integers(1, 60))
def test_the_head_and_the_tail_of_a_text_hold_no_part_of_a_secret(text: str, limit: int) -> None:
    redactor = Redactor()
    redactor.register("hunter2")
    redactor.register("hunter2-long")
    head, tail = redactor.redact_head(text, limit), redactor.redact_tail(text, limit)
    assert len(head) <= limit
    assert len(tail) <= limit
    assert redactor.redact(text).startswith(head)
    assert redactor.redact(text).endswith(tail)


def test_the_head_and_the_tail_of_a_long_text_are_whole() -> None:
    redactor = Redactor()
    redactor.register("hunter2")
    text = "start" + "x" * 100_000 + "end"
    assert redactor.redact_head(text, 1000) == "start" + "x" * 995
    assert redactor.redact_tail(text, 1000) == "x" * 997 + "end"
