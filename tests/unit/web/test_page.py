"""The HTML: whole in both languages, and nothing that somebody else wrote becomes part of it."""

from __future__ import annotations

from datetime import timedelta
from html.parser import HTMLParser
from typing import Any

import pytest

from ops_mail.core.mail import MessageStatus
from ops_mail.store.overview_model import Tally
from ops_mail.web.build import build_snapshot
from ops_mail.web.language import Language
from ops_mail.web.page import SECTIONS, Page, Reader
from tests.browser.rows import HOSTILE_ADDRESS, HOSTILE_SUBJECTS, SCRIPT
from tests.browser.stage import idling, refused, standing_by
from tests.unit.web.facts import BOOT, CLOCK, NOW, facts, instance, line, overview, process, row

PAGE = Page()
ALLOWED = {
    "html", "head", "meta", "title", "link", "script", "noscript", "body", "a", "header", "p", "svg", "rect", "path",
    "bdi", "span", "nav", "main", "section", "div", "h1", "h2", "h3", "small", "strong", "article", "dl", "dt", "dd",
    "time", "code", "wbr", "figure", "desc", "details", "summary", "table", "thead", "tbody", "tr", "th", "td",
    "footer", "circle", "form", "button", "label", "input",
}  # fmt: skip
VOID = {"meta", "link", "wbr", "input"}
SVG_SHAPES = {"rect", "path", "circle"}


class Outline(HTMLParser):
    """Collects tags, attributes and text; fails on a tag that closes another one."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        assert tag in SVG_SHAPES

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def hostile_facts(**more: Any) -> Any:
    subjects = [
        line(subject=subject, from_addr=HOSTILE_ADDRESS, from_name=SCRIPT, error=subject)
        for subject in HOSTILE_SUBJECTS
    ]
    mailbox = refused(f"\"'>{SCRIPT}", CLOCK)
    mailbox.last_error = SCRIPT
    mailbox.holder = SCRIPT
    looked = overview(
        row(f"other {SCRIPT}", last_error=SCRIPT, lease_live=False),
        row(SCRIPT, state="idling", holder=SCRIPT),
        set_aside=tuple(subjects),
        latest=tuple(subjects),
        instances=(instance(SCRIPT, role=SCRIPT),),
        statuses={status: Tally(3) for status in MessageStatus},
    )
    status = process(mailbox, standing_by(SCRIPT, CLOCK), idling("orders", CLOCK), instance=SCRIPT, role=SCRIPT)
    return facts(status, looked, **{"content_shown": True, "reasons": [SCRIPT]} | more)


@pytest.mark.parametrize("language", Language)
@pytest.mark.parametrize("content_shown", [True, False])
def test_foreign_text_never_becomes_markup(language: Language, content_shown: bool) -> None:
    snapshot = build_snapshot(hostile_facts(content_shown=content_shown))
    outline = Outline(PAGE.whole(snapshot, Reader(language, chosen=True, signed_in=True)))
    assert {tag for tag, _ in outline.tags} <= ALLOWED
    scripts = [attributes for tag, attributes in outline.tags if tag == "script"]
    assert [set(script) for script in scripts] == [{"src", "defer"}]
    for tag, attributes in outline.tags:
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "srcdoc")]
        for name in ("href", "src", "action"):
            target = attributes.get(name) or ""
            assert "://" not in target, f"{tag} leads away"
            assert not target.lower().startswith(("javascript:", "data:", "//"))
    assert SCRIPT in outline.text, "it is shown, as text"


@pytest.mark.parametrize("language", Language)
def test_the_pieces_for_the_live_feed_are_as_harmless(language: Language) -> None:
    frame = PAGE.frame(build_snapshot(hostile_facts()), language)
    assert tuple(frame.sections) == SECTIONS
    for html in frame.sections.values():
        outline = Outline(html)
        assert {tag for tag, _ in outline.tags} <= ALLOWED - {"script", "html", "link", "meta"}


@pytest.mark.parametrize("language", Language)
def test_the_form_that_asks_for_the_token_is_plain(language: Language) -> None:
    outline = Outline(PAGE.sign_in(Reader(language), "sign_in.wrong"))
    assert {tag for tag, _ in outline.tags} <= ALLOWED - {"script"}
    (form,) = [attributes for tag, attributes in outline.tags if tag == "form"]
    assert form["method"] == "post"


def test_what_a_mailbox_does_and_needs_is_in_words() -> None:
    snapshot = build_snapshot(facts(process(idling("orders", CLOCK), refused("billing", CLOCK)), overview()))
    english = Outline(PAGE.whole(snapshot, Reader(Language.ENGLISH))).text
    for words in ("1 mailbox is not ready", "billing/INBOX", "Listening (IDLE)", "Waiting to try again", "in 48 s",
                  "3 min ago", "17:22:21 UTC", "Epoch", "Reconnects", "refused the login", "Many providers want an app",
                  "OPS_MAIL_IMAP_PASSWORD_FILE", "No mail was set aside."):  # fmt: skip
        assert words in english, words
    chinese = Outline(PAGE.whole(snapshot, Reader(Language.CHINESE))).text
    for words in (
        "1 个邮箱未就绪",
        "正在监听（IDLE）",
        "等待重试",
        "48 秒后",
        "3 分钟前",
        "授权码",
        "没有被搁置的邮件。",
    ):
        assert words in chinese, words


def test_while_the_database_is_down_its_parts_say_so() -> None:
    status = process(idling("orders", CLOCK), database_ok=False, database_error="(2003, 'no route')")
    text = Outline(PAGE.whole(build_snapshot(facts(status)), Reader(Language.ENGLISH))).text
    assert "The database does not answer: (2003, 'no route')" in " ".join(text.split())
    assert "no mail is lost" in text
    assert "Listening (IDLE)" in text
    assert text.count("The database does not answer") >= 5, "headline, title, and each part that is missing"


def test_a_page_before_the_first_look_says_so() -> None:
    text = Outline(PAGE.whole(build_snapshot(facts(process(idling("orders", CLOCK)))), Reader(Language.ENGLISH))).text
    assert "Not read from the database yet" in text


def test_a_disabled_process_says_so() -> None:
    snapshot = build_snapshot(facts(process(enabled=False, database_ok=False, database_error="not connected yet")))
    text = Outline(PAGE.whole(snapshot, Reader(Language.ENGLISH))).text
    assert "Switched off" in text
    assert "not connected yet" not in text


def test_frames_differ_only_when_facts_do() -> None:
    status = process(idling("orders", CLOCK))
    one = PAGE.frame(build_snapshot(facts(status, overview())), Language.ENGLISH)
    later = facts(status, overview(), now=NOW + timedelta(seconds=50), now_boot=BOOT + 50)
    assert PAGE.frame(build_snapshot(later), Language.ENGLISH) == one
    status.mailboxes[0].backlog = 3
    other = PAGE.frame(build_snapshot(facts(status, overview())), Language.ENGLISH)
    assert [name for name in SECTIONS if other.sections[name] != one.sections[name]] == ["mailboxes"]


def test_the_icon_and_the_title_tell_trouble_in_a_row_of_tabs() -> None:
    well = PAGE.frame(build_snapshot(facts(process(idling("a", CLOCK)), overview())), Language.ENGLISH)
    ill = PAGE.frame(build_snapshot(facts(process(refused("a", CLOCK)), overview())), Language.ENGLISH)
    assert well.icon.startswith("static/icon-ok.svg")
    assert ill.icon.startswith("static/icon-bad.svg")
    assert ill.title == "1 mailbox is not ready · ops-mail · mail-1"


def test_many_mailboxes_and_all_statuses_render() -> None:
    mailboxes = [idling(f"box{number}", CLOCK) for number in range(100)]
    counts = {status: Tally(10_000, at_least=True) for status in MessageStatus}
    html = PAGE.whole(build_snapshot(facts(process(*mailboxes), overview(statuses=counts))), Reader(Language.ENGLISH))
    assert html.count('<article class="card ok">') == 100
    assert "10,000 or more" in html
