"""The page as people see it, in each of its looks; pictures are kept in tests/artefacts."""

from __future__ import annotations

import re

import pytest

from ops_mail.settings import Secret
from ops_mail.web import WebOptions
from tests.browser.conftest import Open, all_conditions, fill
from tests.browser.eyes import Eyes
from tests.browser.stage import Stage, idling, real_clock, standing_by

LOOKS = {
    "light": ("light", 1280, "en"),
    "dark": ("dark", 1280, "en"),
    "tablet": ("light", 820, "en"),
    "phone": ("light", 390, "en"),
    "phone-dark": ("dark", 360, "en"),
    "chinese": ("light", 1280, "zh-CN,zh;q=0.9,en;q=0.1"),
    "chinese-phone-dark": ("dark", 390, "zh"),
}


@pytest.mark.parametrize("look", LOOKS)
def test_every_look_is_whole_readable_and_fits(eyes: Eyes, busy_stage: Stage, look: str) -> None:
    scheme, width, languages = LOOKS[look]
    eyes.scheme(scheme)
    eyes.window(width)
    eyes.languages(languages)
    eyes.open(busy_stage.url)
    eyes.wait_live()
    eyes.picture(look)

    assert eyes.overflows() == []
    assert eyes.weak_contrasts() == []
    red, green, blue = map(int, re.findall(r"\d+", eyes.one("body").value_of_css_property("background-color"))[:3])
    assert (red + green + blue < 150) is (scheme == "dark")
    text = eyes.text()
    for word in (
        ("1 个邮箱未就绪", "正在监听（IDLE）", "如何处理", "死信", "由其他进程负责")
        if languages.startswith("zh")
        else ("1 mailbox is not ready", "Listening (IDLE)", "What to do", "Dead letters", "Run by other processes")
    ):
        assert word in text, word
    assert eyes.one("html").get_attribute("lang") == ("zh-Hans" if languages.startswith("zh") else "en")
    for mailbox in ("orders", "billing", "support", "legal"):
        assert f"{mailbox}@example.org" in text
    assert len(eyes.all("#arrivals rect")) > 15


def test_all_is_well(eyes: Eyes, open_stage: Open) -> None:
    clock = real_clock()
    stage = open_stage([idling("orders@example.org", clock), standing_by("support@example.org", clock)])
    stage.rows.a_day("orders@example.org")
    stage.rows.instance(stage.status.instance_id, "all")
    eyes.open(stage.url)
    eyes.wait_live()
    eyes.picture("all-is-well")
    assert "listened to" in eyes.text("#headline h1")
    assert "No mail was set aside." in eyes.text("#dead")
    assert (eyes.one("#icon").get_attribute("href") or "").startswith(f"{stage.url}static/icon-ok.svg")


def test_while_the_database_is_down(eyes: Eyes, busy_stage: Stage) -> None:
    def down() -> None:
        busy_stage.status.database_ok = False
        busy_stage.status.database_error = "asking the database for an answer: (2003, \"Can't connect to 'db'\")"

    busy_stage.change(down)
    eyes.open(busy_stage.url)
    eyes.wait("live", lambda: eyes.text("#live-text") == "Live")
    eyes.picture("database-down")
    assert "Can't connect to 'db'" in eyes.text("#headline")
    assert len(eyes.all(".gap")) == 4
    assert "Listening (IDLE)" in eyes.text("#mailboxes")
    assert eyes.weak_contrasts() == []


def test_colour_is_never_the_only_sign(eyes: Eyes, busy_stage: Stage) -> None:
    eyes.open(busy_stage.url)
    eyes.wait_live()
    badges = eyes.all("#mailboxes .badge")
    assert [badge.text for badge in badges] == ["Ready", "Not ready", "Standby", "Not ready"]
    shapes = {str(badge.get_attribute("innerHTML")).partition("</svg>")[0] for badge in badges}
    assert len(shapes) == 3


def test_a_keyboard_is_enough_and_where_it_is_shows(eyes: Eyes, busy_stage: Stage) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    eyes.open(busy_stage.url)
    eyes.wait_live()

    def tab() -> str:
        ActionChains(eyes.browser).send_keys(Keys.TAB).perform()
        return str(eyes.ask("return document.activeElement.textContent.trim()"))

    assert tab() == "Skip to the mailboxes"
    assert eyes.ask("return document.activeElement.getBoundingClientRect().top >= 0"), "the link comes into sight"
    assert tab() == "English"
    assert eyes.ask("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    reached = [tab() for _ in range(6)]
    assert "As a table" in reached


def test_movement_is_left_out_for_those_who_want_none(eyes: Eyes, busy_stage: Stage) -> None:
    eyes.open(busy_stage.url)
    eyes.wait_live()
    style = "return getComputedStyle(document.querySelector('.dot')).animationName"
    assert eyes.ask(style) == "breathe"
    eyes.scheme("light", calm=True)
    assert eyes.ask(style) == "none"


def test_the_chart_can_be_read_without_seeing_it(eyes: Eyes, busy_stage: Stage) -> None:
    eyes.open(busy_stage.url)
    eyes.wait_live()
    chart = eyes.one("#arrivals svg[role=img]")
    described = chart.find_element("id", "chart-desc").get_attribute("textContent") or ""
    assert re.search(r"last 24 hours: \d+ mails in all, at most \d+ an hour", described)
    eyes.one("#arrivals-summary").click()
    rows = eyes.all("#arrivals-table tbody tr")
    assert len(rows) == 24
    total = sum(int(row.find_elements("tag name", "td")[1].text) for row in rows)
    assert f"{total} mails" in eyes.text("#arrivals .sum")


def test_with_content_shown(eyes: Eyes, open_stage: Open) -> None:
    token = "correct horse battery staple"
    stage = fill(open_stage(all_conditions(), WebOptions(show_content=True, token=Secret("TOKEN", value=token))))
    eyes.expected_complaints = ["401 (Unauthorized)"]
    eyes.open(stage.url)
    eyes.picture("sign-in")
    eyes.one("#token").send_keys(token)
    eyes.one("button").click()
    eyes.wait_live()
    eyes.picture("content")
    assert eyes.overflows() == []
    assert eyes.weak_contrasts() == []
    assert "报价单：二〇二六年十一月的订单" in eyes.text("#dead")
    eyes.window(390)
    eyes.picture("content-phone")
    assert eyes.overflows() == []
