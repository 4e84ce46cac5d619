"""What the first log line tells."""

from __future__ import annotations

import pytest

from ops_mail.app.modules import what_is_used
from ops_mail.settings import load_settings

WEBHOOK = {"OPS_MAIL_HANDLER": "webhook", "OPS_MAIL_WEBHOOK_URL": "https://hooks.example.org/geheim-token"}


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({}, {"handler": "none", "store": "db"}),
        ({"OPS_MAIL_HANDLER": "shop.orders:handle"}, {"handler": "shop.orders:handle", "store": "db"}),
        (WEBHOOK | {"OPS_MAIL_STORE_URL": "file:///srv/mails"}, {"handler": "webhook", "store": "file"}),
        ({"OPS_MAIL_STORE_URL": "s3://bucket/prefix"}, {"handler": "none", "store": "s3"}),
    ],
)
def test_handler_and_store_are_named_without_addresses(variables: dict[str, str], told: dict[str, str]) -> None:
    assert what_is_used(load_settings(variables, None, mailboxes_required=False)) == told
