"""The token that guards mails' content: asked for, compared, kept out of every URL and log."""

from __future__ import annotations

import time
from http.cookies import SimpleCookie
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from ops_mail.settings import Secret
from ops_mail.web import WebOptions, access, people
from tests.integration.web.conftest import Open, Site

TOKEN = "correct horse battery staple"
GUARDED = WebOptions(show_content=True, token=Secret("OPS_MAIL_HTTP_TOKEN", value=TOKEN))
PATHS = ("", "api/status", "events")


async def sign_in(site: Site, token: str = TOKEN, code: int = 303) -> SimpleCookie:
    async with site.client.post("sign-in", data={"token": token}, allow_redirects=False) as answer:
        assert answer.status == code
        return answer.cookies


async def code_of(site: Site, path: str, **headers: str) -> int:
    async with site.client.get(path, headers=headers) as answer:
        return answer.status


def test_content_without_a_token_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="token"):
        WebOptions(show_content=True)


async def test_without_the_token_nothing_of_the_page_is_given_out(open_site: Open) -> None:
    site = await open_site(GUARDED)
    site.rows.mail("orders", "dead", site.rows.now, subject="Secret merger")
    for path in PATHS:
        async with site.client.get(path) as answer:
            assert answer.status == 401
            body = await answer.text()
            assert "Secret merger" not in body
            assert "orders" not in body
    async with site.client.get("api/status") as answer:
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="ops-mail"'
    assert 'action="sign-in"' in await site.text("", 401)


async def test_probes_and_metrics_need_no_token(open_site: Open) -> None:
    site = await open_site(GUARDED)
    for path in ("healthz", "readyz", "metrics", "api/openapi.json", "static/page.css"):
        assert await code_of(site, path) == 200


async def test_a_program_sends_the_token_as_bearer(open_site: Open) -> None:
    site = await open_site(GUARDED)
    site.rows.mail("orders", "dead", site.rows.now, subject="Secret merger")
    body = await site.json("api/status", headers={"Authorization": f"Bearer {TOKEN}"})
    assert body["overview"]["dead_letters"][0]["subject"] == "Secret merger"
    for wrong in (f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer ", "Bearer", f"Basic {TOKEN}", TOKEN, "Bearer Ä"):
        assert await code_of(site, "api/status", Authorization=wrong) == 401, wrong


async def test_a_person_types_it_once(open_site: Open) -> None:
    site = await open_site(GUARDED)
    cookie = (await sign_in(site))[access.COOKIE]
    assert cookie["httponly"] is True
    assert cookie["samesite"] == "Strict"
    assert cookie["path"] == "/"
    assert int(cookie["max-age"]) == access.SESSION_SECONDS
    assert TOKEN not in cookie.value
    assert await code_of(site, "") == 200
    assert await code_of(site, "api/status") == 200
    async with site.client.post("sign-out", allow_redirects=False) as answer:
        assert answer.status == 303
    assert await code_of(site, "") == 401


async def test_after_signing_in_the_language_stays(open_site: Open) -> None:
    site = await open_site(GUARDED)
    assert 'action="sign-in?lang=zh"' in await site.text("?lang=zh", 401)
    async with site.client.post("sign-in?lang=zh", data={"token": TOKEN}) as answer:
        assert answer.status == 200
        assert answer.url.query_string == "lang=zh"
        assert '<html lang="zh-Hans"' in await answer.text()


async def test_behind_tls_the_cookie_is_for_tls_alone(open_site: Open) -> None:
    site = await open_site(GUARDED)
    headers = {"X-Forwarded-Proto": "https"}
    async with site.client.post("sign-in", data={"token": TOKEN}, headers=headers, allow_redirects=False) as answer:
        assert answer.cookies[access.COOKIE]["secure"] is True
    assert (await sign_in(site))[access.COOKIE]["secure"] == ""


async def test_a_wrong_token_is_refused_slowly_and_the_form_says_so(
    open_site: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people, "_REFUSAL_SECONDS", 0.3)
    site = await open_site(GUARDED)
    started = time.monotonic()
    async with site.client.post("sign-in", data={"token": "wrong"}) as answer:
        assert answer.status == 401
        assert "That was not the token." in await answer.text()
        assert access.COOKIE not in answer.cookies
    assert time.monotonic() - started >= 0.3
    monkeypatch.setattr(people, "_REFUSALS_AT_ONCE", 0)
    await sign_in(site, code=429)


@pytest.mark.parametrize(
    "cookie",
    [
        "",
        "x",
        ".",
        "9999999999.",
        "9999999999." + "0" * 64,
        "-1.0",
        "٣.x",
        "9" * 5000 + ".x",
    ],
)
async def test_a_made_up_cookie_opens_nothing(open_site: Open, cookie: str) -> None:
    site = await open_site(GUARDED)
    assert await code_of(site, "", Cookie=f"{access.COOKIE}={cookie}") == 401


async def test_a_session_ends_by_itself(open_site: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "SESSION_SECONDS", -1)
    site = await open_site(GUARDED)
    value = (await sign_in(site))[access.COOKIE].value
    assert await code_of(site, "", Cookie=f"{access.COOKIE}={value}") == 401
    later = f"{int(value.partition('.')[0]) + 1000}.{value.partition('.')[2]}"
    assert await code_of(site, "", Cookie=f"{access.COOKIE}={later}") == 401, "its date is signed"


async def test_another_instance_with_the_same_token_accepts_the_session(open_site: Open) -> None:
    first, second = await open_site(GUARDED), await open_site(GUARDED)
    value = (await sign_in(first))[access.COOKIE].value
    assert await code_of(second, "", Cookie=f"{access.COOKIE}={value}") == 200


async def test_a_token_in_a_file_is_rotated_without_a_restart(open_site: Open, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    site = await open_site(WebOptions(token=Secret("OPS_MAIL_HTTP_TOKEN_FILE", path=file)))
    await sign_in(site)
    assert await code_of(site, "") == 200
    file.write_text("another token of the same kind\n")
    assert await code_of(site, "") == 401, "sessions of the old token have ended"
    assert await code_of(site, "", Authorization="Bearer another token of the same kind") == 200
    file.unlink()
    assert await code_of(site, "") == 503
    assert await code_of(site, "api/status") == 503
    assert await code_of(site, "events") == 401
    assert "The token cannot be read here" in await site.text("", 503)
    await sign_in(site, code=503)


async def test_a_token_may_guard_a_page_without_content(open_site: Open) -> None:
    site = await open_site(WebOptions(token=Secret("OPS_MAIL_HTTP_TOKEN", value=TOKEN)))
    assert await code_of(site, "") == 401
    body = await site.json("api/status", headers={"Authorization": f"Bearer {TOKEN}"})
    assert body["content_shown"] is False


async def test_a_form_on_another_site_cannot_sign_in(open_site: Open) -> None:
    site = await open_site(GUARDED)
    headers = {"Sec-Fetch-Site": "cross-site"}
    async with site.client.post("sign-in", data={"token": TOKEN}, headers=headers) as answer:
        assert answer.status == 403


async def test_the_token_is_in_no_log_line_and_in_no_answer(open_site: Open) -> None:
    with capture_logs() as lines:
        site = await open_site(GUARDED)
        cookie = (await sign_in(site))[access.COOKIE].value
        await sign_in(site, "a wrong guess", 401)
        texts = [await site.text(path) for path in ("", "api/status", "metrics", "healthz", "readyz")]
        await code_of(site, "api/status", Authorization=f"Bearer {TOKEN}")
    assert [line["event"] for line in lines if line["event"] == "sign_in_refused"] == ["sign_in_refused"]
    for text in (repr(lines), repr(GUARDED), cookie, *texts):
        assert TOKEN not in text
        assert "a wrong guess" not in text
