"""Debian's Chromium, driven by Selenium; a machine without it fails here."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from ops_mail.core.status import MailboxStatus
from ops_mail.web import WebOptions
from tests.browser.eyes import Eyes
from tests.browser.stage import HERE, Stage, idling, real_clock, refused, standing_by

ARTEFACTS = Path("tests/artefacts")

# Everything that would call home is off: the page is all that this browser ever asks for.
SWITCHES = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--lang=en-US",
)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """One browser a run."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.fail("no browser here: install Debian's packages chromium and chromium-driver", pytrace=False)
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for switch in (*SWITCHES, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(switch)
    running = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield running
    finally:
        running.quit()


@pytest.fixture
def eyes(chromium: webdriver.Chrome) -> Iterator[Eyes]:
    """The browser as new: no cookies, a wide light window, English. What it complained about fails the test."""
    ARTEFACTS.mkdir(exist_ok=True)
    (ARTEFACTS / ".gitignore").write_text("*\n")
    looking = Eyes(chromium, ARTEFACTS)
    looking.begin()
    yield looking
    looking.end()


Open = Callable[..., Stage]


@pytest.fixture
def open_stage(tmp_path: Path) -> Iterator[Open]:
    """Opens a web server over a database of its own."""
    stages: list[Stage] = []

    def start(mailboxes: list[MailboxStatus] | None = None, options: WebOptions | None = None) -> Stage:
        clock = real_clock()
        stage = Stage(tmp_path, mailboxes or [idling("orders@example.org", clock)], options)
        stages.append(stage)
        return stage

    yield start
    for stage in stages:
        stage.close()


@pytest.fixture
def busy_stage(open_stage: Open) -> Stage:
    """A day of mail, a mailbox in each condition, dead letters with hostile subjects, four processes."""
    return fill(open_stage(all_conditions()))


def all_conditions() -> list[MailboxStatus]:
    clock = real_clock()
    return [
        idling("orders@example.org", clock),
        refused("billing@example.org", clock),
        standing_by("support@example.org", clock),
    ]


def fill(stage: Stage) -> Stage:
    """The rows behind the pictures."""
    rows = stage.rows
    rows.a_day("orders@example.org")
    rows.dead_letters("orders@example.org")
    rows.cursor("orders@example.org", HERE)
    rows.cursor("support@example.org", "mail-2:812:77aa01bc44de", epoch=12)
    rows.cursor("legal@example.org", None)
    rows.instance(HERE, "all")
    rows.instance("mail-2:812:77aa01bc44de", "all", 5)
    rows.instance("worker-1:92:0a41f00d2c11", "consumer", 2)
    rows.instance("worker-2:17:0b5e3c9a7f42", "consumer", 4000)
    return stage
