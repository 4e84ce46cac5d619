"""OPS_MAIL_HANDLER=extract_invoice:handle

Reads number and amount of an invoice out of a mail's text into a table of your own, exactly once: the row is written in
the same transaction that marks the mail as done, so there are both or neither, whatever is killed when. The table's
name has to begin with `ops_`:

    CREATE TABLE ops_invoice (mail_key VARCHAR(600) PRIMARY KEY, number VARCHAR(64) NOT NULL, cents BIGINT NOT NULL);
"""

# ruff: noqa: INP001 - a single file that is put where Python finds it

from __future__ import annotations

import re

from ops_mail.handlers import Discard, Done, Mail, Permanent, Write

INSERT = "INSERT INTO ops_invoice (mail_key, number, cents) VALUES (:key, :number, :cents)"
NUMBER = re.compile(r"Invoice\s+(?:No\.?|number)\s*:?\s*([A-Z0-9-]{3,64})", re.IGNORECASE)
AMOUNT = re.compile(r"Total\s*:?\s*(?:EUR|€)?\s*(\d{1,9})[.,](\d{2})\b", re.IGNORECASE)


def handle(mail: Mail) -> Done:
    """Read the invoice, write its row."""
    text = mail.text_body or ""
    number = NUMBER.search(text)
    if number is None:
        raise Discard("not an invoice")
    amount = AMOUNT.search(text)
    if amount is None:
        raise Permanent(f"invoice {number[1]} has no total that can be read")  # for a person to look at: dead show
    cents = int(amount[1]) * 100 + int(amount[2])
    write = Write(INSERT, {"key": mail.key, "number": number[1], "cents": cents})
    return Done({"invoice": number[1], "cents": cents}, writes=[write])
