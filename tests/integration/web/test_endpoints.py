"""Every endpoint of a real server, as probes, programs and people ask them."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import aiohttp
import jsonschema
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from ops_mail.errors import OpsMailError
from ops_mail.settings import Secret
from ops_mail.web import WebOptions, WebServer
from tests.browser.stage import HERE, idling, refused, standing_by
from tests.integration.web.conftest import CLOCK, Open, Site

DESCRIPTION: dict[str, Any] = json.loads((files("ops_mail.web") / "openapi.json").read_bytes())


def check(answer: Any, path: str, code: int = 200) -> None:
    """The answer is what the description promises."""
    schema = DESCRIPTION["paths"][path]["get"]["responses"][str(code)]["content"]["application/json"]["schema"]
    whole = {**schema, "components": DESCRIPTION["components"]}
    validator = jsonschema.Draft202012Validator(whole, format_checker=jsonschema.FormatChecker())
    assert [error.message for error in validator.iter_errors(answer)] == []


def test_the_description_is_valid_openapi() -> None:
    OpenAPIV31SpecValidator(DESCRIPTION).validate()


async def test_the_description_is_served_and_names_every_route(open_site: Open) -> None:
    site = await open_site()
    assert await site.json("api/openapi.json") == DESCRIPTION
    for path in DESCRIPTION["paths"]:
        async with site.client.get(path.lstrip("/")) as answer:
            assert answer.status == 200, path


async def test_healthz_is_about_this_process_alone(open_site: Open) -> None:
    site = await open_site(database_ok=False, database_error="down", mailboxes=[refused("billing", CLOCK)])
    body = await site.json("healthz")
    assert (body["status"], body["instance"]) == ("alive", "mail-1")
    check(body, "/healthz")
    site.stuck.append("listener:billing has shown no life for 20 s longer than it promised")
    body = await site.json("healthz", 503)
    assert body["status"] == "stuck"
    assert body["reasons"] == site.stuck
    check(body, "/healthz", 503)


async def test_a_disabled_process_is_disabled_and_ready(open_site: Open) -> None:
    site = await open_site(enabled=False, database_ok=False, mailboxes=[])
    assert (await site.json("healthz"))["status"] == "disabled"
    assert await site.json("readyz") == {"ready": True, "role": "all", "database": "unused", "mailboxes": []}
    assert "Switched off" in await site.text("")


async def test_readyz_tells_each_mailbox(open_site: Open) -> None:
    site = await open_site(mailboxes=[idling("orders", CLOCK), standing_by("support", CLOCK)])
    body = await site.json("readyz")
    check(body, "/readyz")
    assert body["ready"] is True
    assert (body["role"], body["database"]) == ("all", "ok")
    orders, support = body["mailboxes"]
    assert set(orders) == {"name", "folder", "state", "ready", "reason", "holder", "backlog", "last_sync_age_seconds"}
    assert (orders["name"], orders["folder"], orders["state"], orders["holder"]) == ("orders", "INBOX", "idling", HERE)
    assert orders["last_sync_age_seconds"] >= 72
    assert (support["state"], support["ready"], support["reason"]) == (
        "standby", True, "standing by for mail-2:812:77aa01bc44de",
    )  # fmt: skip


@pytest.mark.parametrize(
    "change", [{"database_ok": False, "database_error": "no route"}, {"mailboxes": [refused("billing", CLOCK)]}]
)
async def test_readyz_is_503_while_work_is_not_done(open_site: Open, change: dict[str, Any]) -> None:
    site = await open_site(**change)
    body = await site.json("readyz", 503)
    check(body, "/readyz", 503)
    assert body["ready"] is False


async def test_metrics_are_prometheus_text(open_site: Open) -> None:
    site = await open_site()
    async with site.client.get("metrics") as answer:
        assert answer.status == 200
        assert answer.content_type == "text/plain"
        assert "ops_mail_event_loop_lag_seconds_bucket" in await answer.text()


def fill(site: Site) -> None:
    site.rows.a_day("orders")
    site.rows.dead_letters("orders")
    site.rows.cursor("orders", HERE)
    site.rows.cursor("support", "mail-2:812:77aa01bc44de", state="backoff", failures=2, last_error="refused the login")
    site.rows.cursor("legal", None)
    site.rows.instance(HERE, "all")
    site.rows.instance("worker-2:17:0b", "consumer", 4000)


@pytest.mark.parametrize("show", [False, True])
async def test_api_status_is_as_described(open_site: Open, show: bool) -> None:
    options = WebOptions(show_content=show, token=Secret("TOKEN", value="correct horse battery"))
    mailboxes = [idling("orders", CLOCK), refused("billing", CLOCK), standing_by("support", CLOCK)]
    site = await open_site(options, mailboxes=mailboxes)
    fill(site)
    body = await site.json("api/status", headers={"Authorization": "Bearer correct horse battery"})
    check(body, "/api/status")
    assert body["content_shown"] is show
    assert [mailbox["name"] for mailbox in body["mailboxes"]] == ["orders", "billing", "support", "legal"]
    assert body["mailboxes"][1]["advice"].startswith("Check OPS_MAIL_IMAP_USERNAME")
    assert body["mailboxes"][2]["leader"]["last_error"] == "refused the login"
    looked = body["overview"]
    assert sum(hour["count"] for hour in looked["arrivals"]) == sum(
        tally["count"] for tally in looked["messages"].values()
    )
    assert looked["messages"]["dead"] == {"count": 10, "at_least": False}
    assert (looked["latest"] is None) is not show
    subjects = {mail["subject"] for mail in looked["dead_letters"]}
    assert subjects == {None} if not show else "报价单：二〇二六年十一月的订单" in subjects


@pytest.mark.parametrize(
    "change",
    [
        {"database_ok": False, "database_error": "no answer"},
        {"enabled": False, "mailboxes": [], "database_ok": False},
        {"role": "consumer", "mailboxes": []},
    ],
)
async def test_api_status_is_as_described_in_every_condition(open_site: Open, change: dict[str, Any]) -> None:
    site = await open_site(**change)
    body = await site.json("api/status")
    check(body, "/api/status")
    assert (body["overview"] is None) is (not change.get("database_ok", True))


async def test_api_status_says_all_that_readyz_says(open_site: Open) -> None:
    site = await open_site(mailboxes=[idling("orders", CLOCK), refused("billing", CLOCK)])
    ready, status = await site.json("readyz", 503), await site.json("api/status")
    for key in ("ready", "role", "database"):
        assert status[key] == ready[key]
    for mine, probe in zip(status["mailboxes"], ready["mailboxes"], strict=True):
        assert {key: mine[key] for key in probe if key not in ("reason", "last_sync_age_seconds")} == {
            key: value for key, value in probe.items() if key not in ("reason", "last_sync_age_seconds")
        }


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "", 200),
        ("HEAD", "", 200),
        ("GET", "healthz", 200),
        ("GET", "readyz", 200),
        ("GET", "metrics", 200),
        ("GET", "api/status", 200),
        ("GET", "api/openapi.json", 200),
        ("GET", "static/page.css", 200),
        ("GET", "nothing", 404),
        ("GET", "static/nothing.css", 404),
        ("GET", "static/..%2fserver.py", 404),
        ("GET", "static/%2e%2e/server.py", 404),
        ("POST", "", 405),
        ("DELETE", "api/status", 405),
        ("HEAD", "events", 405),
    ],
)
async def test_every_answer_carries_the_security_headers(open_site: Open, method: str, path: str, code: int) -> None:
    site = await open_site()
    async with site.client.request(method, path) as answer:
        assert answer.status == code
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; style-src 'self'; script-src 'self'")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["Server"] == "ops-mail", "no versions"
        if not path.startswith("static/") or code != 200:
            assert answer.headers["Cache-Control"] == "no-store"


async def test_style_and_script_may_be_kept_by_their_content(open_site: Open) -> None:
    site = await open_site()
    html = await site.text("")
    for name in ("page.css", "live.js", "icon-ok.svg"):
        link = next(part for part in html.split('"') if part.startswith(f"static/{name}?v="))
        async with site.client.get(link) as answer:
            assert "immutable" in answer.headers["Cache-Control"]
        async with site.client.get(f"static/{name}?v=old") as answer:
            assert answer.headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize(
    ("header", "query", "tag", "words"),
    [
        ("zh-CN,zh;q=0.9", "", "zh-Hans", "监听正常"),
        ("de", "", "en", "is being listened to"),
        ("en", "?lang=zh", "zh-Hans", "监听正常"),
        ("zh", "?lang=en", "en", "is being listened to"),
    ],
)
async def test_the_reader_gets_the_language_asked_for(
    open_site: Open, header: str, query: str, tag: str, words: str
) -> None:
    site = await open_site()
    async with site.client.get(query or "/", headers={"Accept-Language": header}) as answer:
        html = await answer.text()
        assert answer.headers["Content-Language"] == tag
        assert "Accept-Language" in answer.headers["Vary"]
    assert f'<html lang="{tag}"' in html
    assert words in html


async def test_a_taken_port_is_told_with_the_setting(open_site: Open, tmp_path: Path) -> None:
    site = await open_site()
    second = WebServer(site.server._sources)
    with pytest.raises(OpsMailError, match="OPS_MAIL_HTTP_PORT"):
        await second.start("127.0.0.1", site.server.port)


async def test_a_large_upload_is_refused(open_site: Open) -> None:
    site = await open_site(WebOptions(token=Secret("TOKEN", value="correct horse battery")))
    form = aiohttp.FormData({"token": "x" * 100_000})
    async with site.client.post("sign-in", data=form) as answer:
        assert answer.status == 413
