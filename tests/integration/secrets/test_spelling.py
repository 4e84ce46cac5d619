"""The search for secrets finds them; else the other tests here would mean nothing."""

from __future__ import annotations

import json
from base64 import b64encode
from html import escape
from urllib.parse import quote

import pytest

from tests.integration.secrets.spelling import leaks

SECRET = 'Im"ap\\Wörd+7=&%41?'
QUOTED = 'Im\\"ap\\\\Wörd+7=&%41?'


@pytest.mark.parametrize(
    "text",
    [
        f"the password is {SECRET}.",
        f"mysql://user:{quote(SECRET, safe='')}@host",
        json.dumps({"password": SECRET}),
        repr(ValueError(f"no {SECRET}")),
        f'LOGIN "ops" "{QUOTED}"',
        json.dumps(f'LOGIN "{QUOTED}"'),
        f"<td>{escape(SECRET)}</td><td>it said: {escape(QUOTED)}</td>",
        b64encode(SECRET.encode()).decode(),
        *(b64encode(f"\0{'u' * length}\0{SECRET}".encode()).decode() for length in range(1, 4)),
        *(b64encode(f"user={'u' * length}\1auth=Bearer {SECRET}\1\1".encode()).decode() for length in range(1, 4)),
    ],
)
def test_a_secret_is_found_in_every_spelling(text: str) -> None:
    assert leaks({"here": text}, [SECRET])
    assert not leaks({"here": text.lower()}, ["Some other word"])
