"""The texts: both languages whole, and true to the settings that they name."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest

from ops_mail.core.mail import MessageStatus
from ops_mail.core.states import State
from ops_mail.settings import KNOWN_NAMES, Role
from ops_mail.web.language import Language
from ops_mail.web.mailboxes import ORPHAN
from ops_mail.web.snapshot import Level
from ops_mail.web.trouble import Trouble
from ops_mail.web.words import Words, texts_of

ENGLISH, CHINESE = texts_of(Language.ENGLISH), texts_of(Language.CHINESE)
WEB = Path("ops_mail/web")


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def test_both_languages_say_the_same_things() -> None:
    assert list(ENGLISH) == list(CHINESE)


@pytest.mark.parametrize("key", ENGLISH)
def test_a_text_has_the_same_blanks_in_both_languages(key: str) -> None:
    assert fields(ENGLISH[key]) == fields(CHINESE[key])
    named = re.compile(r"OPS_MAIL_\w+|`[^`]+`")
    assert sorted(named.findall(ENGLISH[key])) == sorted(named.findall(CHINESE[key]))


@pytest.mark.parametrize("texts", [ENGLISH, CHINESE])
def test_every_setting_that_is_named_exists(texts: dict[str, str]) -> None:
    named = {name for text in texts.values() for name in re.findall(r"OPS_MAIL_[A-Z_]+", text)}
    assert named
    assert named <= set(KNOWN_NAMES)


def test_everything_that_may_be_shown_has_its_words() -> None:
    wanted = [f"state.{state}" for state in (*State, ORPHAN)]
    wanted += [f"level.{level}" for level in Level]
    wanted += [f"advice.{trouble}" for trouble in Trouble]
    wanted += [f"{group}.{status}" for group in ("status", "about.status") for status in MessageStatus]
    wanted += [f"role.{role}" for role in Role]
    wanted += [f"duty.{duty}" for duty in ("leader", "standby", "consumer", "gone")]
    assert [key for key in wanted if key not in ENGLISH] == []


def test_every_text_is_used() -> None:
    sources = "".join(path.read_text() for path in WEB.rglob("*") if path.suffix in (".html", ".py"))
    made = ("state.", "level.", "advice.", "status.", "about.", "role.", "duty.", "headline.")
    unused = [key for key in ENGLISH if f'"{key}"' not in sources and f"'{key}'" not in sources]
    assert [key for key in unused if not key.startswith(made)] == []


def test_one_and_many() -> None:
    english, chinese = Words(Language.ENGLISH), Words(Language.CHINESE)
    assert english.n("arrivals.total", 1) == "1 mail"
    assert english.n("arrivals.total", 12_345) == "12,345 mails"
    assert chinese.n("arrivals.total", 1) == "共 1 封"


def test_a_word_of_a_newer_version_is_shown_as_it_is() -> None:
    assert Words(Language.CHINESE).known("status", "archived") == "archived"
    assert Words(Language.CHINESE).known("status", "dead") == "死信"


def test_a_text_that_does_not_exist_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        Words(Language.ENGLISH)("no such text")
