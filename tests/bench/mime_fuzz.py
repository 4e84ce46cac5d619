"""Throw broken mails at the parser for as long as you like.

    python -m tests.bench.mime_fuzz --minutes 10 [--seed 1]

Takes the corpus beside the repository, damages each mail (cuts, splices, flips, repeats, swaps of line breaks) and
checks what every record must keep. The first mail that breaks a rule is written to a file, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC
from pathlib import Path

from ops_mail.core.mail import ParsedMail
from ops_mail.mime import ParseLimits, parse_header_only, parse_mail
from ops_mail.mime.defects import Defect
from ops_mail.mime.report import as_json

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
LIMITS = ParseLimits()
SECONDS_A_MAIL = 5.0
_CODES = frozenset(defect.value for defect in Defect)
_SPICE = (
    b"\r\n\r\n", b"\n", b"\r", b"--", b"=?utf-8?B?", b"?=", b"=?", b'"', b"<", b">", b"(", b";", b":", b",", b"=",
    b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"begin 644 a\n", b"\nend\n", b"Content-Type: multipart/mixed; boundary=b\n",
    b"Content-Type: message/rfc822\n\n", b"Content-Transfer-Encoding: base64\n", b"; filename*0*=utf-8''%", b"\x1b$B",
    b"+2AA-", b"&#xD800;", b"<!--", b"<script>", b"<a '", b"charset=utf-7", b"charset=utf-16", b"x\x9f\x3e\x22",
)  # fmt: skip


class BrokenRuleError(AssertionError):
    """A record that breaks a promise of the parser."""


def check(raw: bytes) -> ParsedMail:
    """Parse and check everything that must hold for any bytes; raises BrokenRuleError."""
    mail = parse_mail(raw, LIMITS)
    for text in _texts(mail):
        if text is not None:
            _require(text.isprintable() or _encodes(text), "a text has lone surrogates")
    for text in (mail.text_body, mail.html_body):
        _require(text is None or (len(text) <= LIMITS.max_text_chars and "\0" not in text), "a text is over its bound")
    _require(Defect.PARSER_FAILED not in mail.defects, "the parser failed")
    _require(all(defect.split(":", 1)[0] in _CODES for defect in mail.defects), "an undocumented defect")
    _require(mail.sent_at is None or mail.sent_at.tzinfo is UTC, "a time is not in UTC")
    _require(len(mail.attachments) <= LIMITS.max_parts + 1, "too many attachments")
    _require(len(mail.headers) <= LIMITS.max_header_fields, "too many header fields")
    _require(not any("\n" in value or "\r" in value for _, value in mail.headers), "a header value of several lines")
    _require(all(_is_safe(item.filename) for item in mail.attachments), "an unsafe file name")
    json.loads(json.dumps(as_json("x", mail), ensure_ascii=False).encode())
    header = parse_header_only(raw[:65536])
    _require(Defect.PARSER_FAILED not in header.defects, "the header parser failed")
    return mail


def _texts(mail: ParsedMail) -> list[str | None]:
    texts = [mail.subject, mail.from_name, mail.from_addr, mail.message_id, mail.text_body, mail.html_body]
    texts += [mail.reply_to, mail.return_path, mail.auth_results, *mail.defects]
    texts += [text for pair in mail.headers for text in pair]
    texts += [text for item in (*mail.to_addrs, *mail.cc_addrs) for text in (item.name, item.addr)]
    for item in mail.attachments:
        texts += [item.filename, item.original_filename, item.content_type, item.disposition, item.content_id]
    return texts


def _encodes(text: str) -> bool:
    try:
        text.encode("utf_8")
    except UnicodeEncodeError:
        return False
    return True


def _is_safe(name: str | None) -> bool:
    if name is None:
        return True
    return bool(name.strip(". ")) and not set(name) & set("/\\\0\n\r") and len(name.encode()) <= 240


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise BrokenRuleError(rule)


def _cut(raw: bytes, _other: bytes, dice: random.Random) -> bytes:
    return raw[: dice.randrange(len(raw) + 1)]


def _cut_before(raw: bytes, _other: bytes, dice: random.Random) -> bytes:
    return raw[dice.randrange(len(raw) + 1) :]


def _splice(raw: bytes, other: bytes, dice: random.Random) -> bytes:
    begin = dice.randrange(len(other) + 1)
    at = dice.randrange(len(raw) + 1)
    return raw[:at] + other[begin : begin + dice.randrange(1, 5000)] + raw[at:]


def _flip(raw: bytes, _other: bytes, dice: random.Random) -> bytes:
    changed = bytearray(raw)
    for _ in range(dice.randrange(1, 40)):
        if changed:
            changed[dice.randrange(len(changed))] = dice.randrange(256)
    return bytes(changed)


def _repeat(raw: bytes, _other: bytes, dice: random.Random) -> bytes:
    begin = dice.randrange(len(raw) + 1)
    piece = raw[begin : begin + dice.randrange(1, 400)]
    return raw[:begin] + piece * dice.randrange(2, 60) + raw[begin:]


def _remove(raw: bytes, _other: bytes, dice: random.Random) -> bytes:
    begin = dice.randrange(len(raw) + 1)
    return raw[:begin] + raw[begin + dice.randrange(1, 200) :]


def _spice(raw: bytes, _other: bytes, dice: random.Random) -> bytes:
    for _ in range(dice.randrange(1, 8)):
        at = dice.randrange(min(len(raw), 4000) + 1)
        raw = raw[:at] + dice.choice(_SPICE) * dice.choice((1, 1, 1, 2, 50)) + raw[at:]
    return raw


def _breaks(raw: bytes, _other: bytes, dice: random.Random) -> bytes:
    return raw.replace(b"\r\n", b"\n").replace(b"\n", dice.choice((b"\r", b"\r\n", b"\n\r", b"\n\n")))


def _drop_lines(raw: bytes, _other: bytes, dice: random.Random) -> bytes:
    return b"".join(line for line in raw.splitlines(keepends=True) if dice.random() > 0.1)


_DAMAGE: Sequence[Callable[[bytes, bytes, random.Random], bytes]] = (
    _cut, _cut_before, _splice, _flip, _repeat, _remove, _spice, _breaks, _drop_lines,
)  # fmt: skip


def damaged(raw: bytes, other: bytes, dice: random.Random) -> bytes:
    """One to three kinds of damage to a mail; `other` is where foreign pieces come from."""
    for _ in range(dice.randrange(1, 4)):
        raw = dice.choice(_DAMAGE)(raw, other, dice)
    return raw[:2_000_000]


def corpus() -> list[bytes]:
    """The mails of the corpus, in a fixed order."""
    index = (CORPUS / "INDEX.tsv").read_text(encoding="utf-8").splitlines()[1:]
    return [(CORPUS / line.split("\t")[0]).read_bytes() for line in index]


def main() -> int:
    """Run until the time is over or a rule is broken."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--minutes", type=float, default=1.0)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", type=Path, default=Path("mime-fuzz-failure.eml"))
    chosen = options.parse_args()
    dice = random.Random(chosen.seed)
    mails = corpus()
    end = time.monotonic() + 60 * chosen.minutes
    count = size = 0
    slowest = 0.0
    while time.monotonic() < end:
        raw = damaged(dice.choice(mails), dice.choice(mails), dice)
        begin = time.process_time()
        try:
            check(raw)
            taken = time.process_time() - begin
            _require(taken < SECONDS_A_MAIL, f"it took {taken:.1f} s")
        except BrokenRuleError as error:
            chosen.out.write_bytes(raw)
            sys.stdout.write(f"after {count} mails: {error}; see {chosen.out}\n")
            return 1
        slowest = max(slowest, taken)
        count, size = count + 1, size + len(raw)
    sys.stdout.write(f"{count} mails, {size / 1e6:.0f} MB, slowest {slowest * 1000:.0f} ms, no rule broken\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
