"""What to do, in the words of the place where the mailbox is set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ops_mail.core.mailbox import VARIABLES, MailboxSource
from ops_mail.web.advice import Advice, advice_for
from ops_mail.web.as_json import as_json
from ops_mail.web.build import build_snapshot
from ops_mail.web.language import Language
from ops_mail.web.mailboxes import foreign_mailbox
from ops_mail.web.page import Page
from ops_mail.web.snapshot import MailboxView
from ops_mail.web.trouble import Trouble
from ops_mail.web.words import Words
from tests.browser.stage import refused
from tests.unit.web.facts import CLOCK, LIMIT_SECONDS, NOW, facts, process, row

ENGLISH = Words(Language.ENGLISH)
FILE = MailboxSource(Path("mailboxes.toml"), 'mailbox "orders"')


def in_trouble(trouble: Trouble | None, source: MailboxSource | None) -> MailboxView:
    return replace(foreign_mailbox(row("orders"), NOW, LIMIT_SECONDS), trouble=trouble, source=source)


def test_without_trouble_there_is_no_advice() -> None:
    assert advice_for(in_trouble(None, VARIABLES), ENGLISH) is None


def test_a_mailbox_of_a_file_is_told_by_entry_and_key() -> None:
    advice = advice_for(in_trouble(Trouble.UNREACHABLE, FILE), ENGLISH)
    assert advice is not None
    assert advice.text.startswith("Check `host`, `port`, and the firewall")
    assert advice.where == 'These settings stand in `mailboxes.toml`, under mailbox "orders".'


def test_a_mailbox_of_variables_needs_no_more_than_their_names() -> None:
    advice = advice_for(in_trouble(Trouble.FOLDER, VARIABLES), ENGLISH)
    assert advice is not None
    assert advice.text.startswith("Check OPS_MAIL_IMAP_FOLDER")
    assert advice.where is None


def test_where_another_process_keeps_its_settings_is_not_known() -> None:
    advice = advice_for(in_trouble(Trouble.AUTH, None), ENGLISH)
    assert advice is not None
    assert "OPS_MAIL_IMAP_USERNAME" in advice.text
    assert advice.where == ENGLISH("advice.file")


@pytest.mark.parametrize("trouble", list(Trouble))
def test_no_mailbox_of_a_file_is_sent_to_variables_that_it_may_not_have(trouble: Trouble) -> None:
    for language in Language:
        advice = advice_for(in_trouble(trouble, FILE), Words(language))
        assert isinstance(advice, Advice)
        assert "OPS_MAIL_IMAP_" not in str(advice)


def test_page_and_json_tell_it() -> None:
    box = refused("orders", CLOCK)
    box.source = FILE
    snapshot = build_snapshot(facts(process(box)))
    html = Page().frame(snapshot, Language.ENGLISH).sections["mailboxes"]
    assert "<code>username</code>" in html
    assert "under mailbox &#34;orders&#34;" in html
    advice = as_json(snapshot)["mailboxes"][0]["advice"]
    assert advice.startswith("Check `username` and `password`")
    assert advice.endswith('under mailbox "orders".')
