"""The page in use: live, without script, signed in, and with mails that mean harm."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta

import pytest

from ops_mail.core.states import State
from ops_mail.errors import Failure
from ops_mail.settings import Secret
from ops_mail.web import WebOptions
from tests.browser.conftest import Open, all_conditions, fill
from tests.browser.eyes import Eyes
from tests.browser.rows import SCRIPT
from tests.browser.stage import Stage

TOKEN = "correct horse battery staple"
GUARDED = WebOptions(show_content=True, token=Secret("OPS_MAIL_HTTP_TOKEN", value=TOKEN))


def fails(stage: Stage) -> None:
    mailbox = stage.status.mailboxes[0]
    mailbox.state, mailbox.state_since = State.BACKOFF, stage.clock.now()
    mailbox.failures, mailbox.last_failure = 1, Failure.LOST
    mailbox.last_error = "imap.example.org:993: the server closed the connection"


def test_a_change_is_seen_at_once_and_without_a_reload(eyes: Eyes, open_stage: Open) -> None:
    stage = open_stage()
    eyes.open(stage.url)
    eyes.wait_live()
    assert "being listened to" in eyes.text("#headline h1")
    eyes.ask("window.stillTheSamePage = true")
    stage.change(lambda: fails(stage))
    eyes.wait("the headline", lambda: "has trouble" in eyes.text("#headline h1"))
    assert "the server closed the connection" in eyes.text("#mailboxes")
    assert "lower OPS_MAIL_IDLE_SECONDS" in eyes.text("#mailboxes")
    assert eyes.browser.title.startswith("Running, 1 mailbox has trouble")
    assert "icon-bad.svg" in (eyes.one("#icon").get_attribute("href") or "")
    assert eyes.ask("return window.stillTheSamePage") is True
    eyes.picture("live-update")


def test_a_mail_that_lands_is_seen_without_a_reload(eyes: Eyes, open_stage: Open) -> None:
    stage = open_stage()
    eyes.open(stage.url)
    eyes.wait_live()
    stage.rows.mail("orders@example.org", "dead", stage.clock.now(), last_error="no such order")
    eyes.wait("the dead letter", lambda: "no such order" in eyes.text("#dead"))
    eyes.wait("the bar", lambda: len(eyes.all("#arrivals rect.now")) == 1)


def test_times_count_on_and_are_local(eyes: Eyes, open_stage: Open) -> None:
    stage = open_stage()
    eyes.clock_of("Asia/Shanghai")
    eyes.open(stage.url)
    eyes.wait_live()
    moment = "#mailboxes .fact:nth-child(3) time"
    before = eyes.text(f"{moment} .rel")
    eyes.wait("another second", lambda: eyes.text(f"{moment} .rel") != before)
    at = eyes.one(moment).get_attribute("datetime") or ""
    in_shanghai = datetime.fromisoformat(at) + timedelta(hours=8)
    assert f"{in_shanghai:%H:%M}" in eyes.text(f"{moment} .abs")
    assert at in (eyes.one(moment).get_attribute("title") or ""), "UTC is there for those who compare logs"


def test_what_the_reader_has_opened_focused_or_marked_stays(eyes: Eyes, open_stage: Open) -> None:
    stage = open_stage()
    stage.rows.mail("orders@example.org", "done", stage.clock.now())
    eyes.open(stage.url)
    eyes.wait_live()
    eyes.one("#arrivals-summary").click()
    total = eyes.text("#arrivals .sum")
    stage.rows.mail("orders@example.org", "done", stage.clock.now())
    eyes.wait("the second mail", lambda: eyes.text("#arrivals .sum") != total)
    assert eyes.one("#arrivals-table").get_attribute("open") is not None
    assert eyes.ask("return document.activeElement.id") == "arrivals-summary"

    eyes.ask("getSelection().selectAllChildren(document.querySelector('#mailboxes h3'))")
    stage.change(lambda: fails(stage))
    eyes.wait("the headline", lambda: "has trouble" in eyes.text("#headline h1"))
    assert eyes.ask("return String(getSelection())").strip().startswith("orders@example.org")
    assert "Waiting to try again" not in eyes.text("#mailboxes")
    eyes.ask("getSelection().removeAllRanges()")
    eyes.wait("the part that waited", lambda: "Waiting to try again" in eyes.text("#mailboxes"))


def test_a_server_that_goes_away_is_told_and_one_that_comes_back_is_followed(eyes: Eyes, open_stage: Open) -> None:
    eyes.expected_complaints = ["ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING"]
    stage = open_stage()
    eyes.open(stage.url)
    eyes.wait_live()
    started = time.monotonic()
    stage.run(stage.server.close())
    assert time.monotonic() - started < 2.5, "an open page must not hold the process"
    eyes.wait("the warning", lambda: "Connection lost" in eyes.text("#live-text"))
    assert "Listening (IDLE)" in eyes.text("#mailboxes"), "what was known is still shown"
    eyes.picture("connection-lost")
    stage.reopen()
    stage.change(lambda: fails(stage))
    eyes.wait("the feed", lambda: eyes.text("#live-text") == "Live")
    eyes.wait("the news", lambda: "has trouble" in eyes.text("#headline h1"))


def test_readers_beyond_the_limit_are_kept_up_to_date_too(
    eyes: Eyes, open_stage: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops_mail.web.live.READER_LIMIT", 0)
    eyes.expected_complaints = ["503 (Service Unavailable)"]
    stage = open_stage()
    eyes.open(stage.url)
    eyes.ask("window.stillTheSamePage = true")
    stage.change(lambda: fails(stage))
    eyes.wait("the headline", lambda: "has trouble" in eyes.text("#headline h1"))
    assert eyes.ask("return window.stillTheSamePage") is True


def test_without_script_everything_is_there_and_reloads(eyes: Eyes, busy_stage: Stage) -> None:
    eyes.without_script()
    eyes.open(busy_stage.url)
    eyes.wait("the database's part", lambda: eyes.all("#dead .list"))
    text = eyes.text()
    for words in ("1 mailbox is not ready", "Listening (IDLE)", "s ago", "UTC", "Reloads every 10 s", "What to do",
                  "mails · at most", "Gone without a word"):  # fmt: skip
        assert words in text, words
    assert "Live" not in eyes.text("#live")
    refresh = eyes.one("meta[http-equiv=refresh]")
    assert refresh.get_attribute("content") == "10"
    eyes.picture("without-script")
    shown = eyes.one("html").get_attribute("data-now")
    eyes.wait("a reload by itself", lambda: eyes.one("html").get_attribute("data-now") != shown)


def test_hostile_mails_do_nothing_but_show(eyes: Eyes, open_stage: Open) -> None:
    stage = fill(open_stage(all_conditions(), GUARDED))
    stage.status.mailboxes[1].last_error = f"NO {SCRIPT}"
    stage.rows.cursor(f"evil {SCRIPT}", f"{SCRIPT}:1:2", last_error=SCRIPT, state=SCRIPT[:32])
    stage.rows.instance(f"{SCRIPT}:9:x", SCRIPT[:32])
    eyes.expected_complaints = ["401 (Unauthorized)"]
    eyes.open(stage.url)
    eyes.one("#token").send_keys(TOKEN)
    eyes.one("button").click()
    eyes.wait_live()
    eyes.picture("hostile")
    stage.change(lambda: setattr(stage.status.mailboxes[0], "last_error", SCRIPT))  # through the live feed as well
    time.sleep(1.5)
    assert "owned" not in eyes.browser.title
    assert eyes.ask("return document.querySelectorAll('main script, main img, main iframe, main [onload]').length") == 0
    text = eyes.text("#dead")
    assert "<script>document.title='owned'</script>" in text
    assert "Invoice gnp.exe hidden report" in text
    assert "{{ 7*7 }}" in text
    assert not set("\u202e\u2066\u2069\x1b\x00") & set(eyes.ask("return document.documentElement.outerHTML"))
    assert eyes.overflows() == []


def test_signing_in_keeps_the_token_out_of_every_address(eyes: Eyes, open_stage: Open) -> None:
    stage = open_stage(options=GUARDED)
    eyes.expected_complaints = ["401 (Unauthorized)"]
    eyes.languages("zh")
    eyes.open(f"{stage.url}?lang=en")
    assert "asks for the token" in eyes.text()
    assert "orders@example.org" not in eyes.browser.page_source
    field = eyes.one("#token")
    assert field.get_attribute("type") == "password"
    field.send_keys("a wrong guess")
    eyes.one("button").click()
    eyes.wait("the refusal", lambda: "That was not the token." in eyes.text())
    assert "guess" not in eyes.browser.current_url
    eyes.one("#token").send_keys(TOKEN)
    eyes.one("button").click()
    eyes.wait_live()
    assert eyes.browser.current_url == f"{stage.url}?lang=en"
    assert eyes.ask("return document.cookie") == "", "no script reads the session"
    (cookie,) = eyes.browser.get_cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert TOKEN not in json.dumps(cookie)
    eyes.one(".out button").click()
    eyes.wait("the form", lambda: eyes.all("#token"))


def test_a_session_that_ended_is_told_on_the_open_page(
    eyes: Eyes, open_stage: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops_mail.web.live.LONGEST_SECONDS", 3.0)
    eyes.expected_complaints = ["401 (Unauthorized)", "ERR_INCOMPLETE_CHUNKED_ENCODING"]
    stage = open_stage(options=GUARDED)
    eyes.open(stage.url)
    eyes.one("#token").send_keys(TOKEN)
    eyes.one("button").click()
    eyes.wait_live()
    eyes.browser.delete_all_cookies()
    eyes.wait("the word of it", lambda: "Signed out" in eyes.text("#live-text"))


def test_the_language_is_a_click_away_and_stays(eyes: Eyes, open_stage: Open) -> None:
    stage = open_stage()
    eyes.open(stage.url)
    eyes.one(".tongues [lang=zh-Hans]").click()
    eyes.wait_live()
    assert eyes.browser.current_url.endswith("?lang=zh")
    assert "邮箱监听正常" in eyes.text("#headline")
    stage.change(lambda: fails(stage))
    eyes.wait("the news in Chinese", lambda: "个邮箱有故障" in eyes.text("#headline"))
    assert "秒前" in eyes.text("#mailboxes")


def test_nothing_is_asked_of_any_other_place(eyes: Eyes, busy_stage: Stage) -> None:
    eyes.open(busy_stage.url)
    eyes.wait_live()
    asked = eyes.ask("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert asked
    assert [name for name in asked if not name.startswith(busy_stage.url)] == []
    assert "://" not in eyes.browser.page_source
