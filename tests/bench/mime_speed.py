"""How fast mails are read: ours beside Python's email package (policy.default), in the same run.

    python -m tests.bench.mime_speed [--seconds 3]

Both read the same: every header decoded, addresses taken apart, the date, texts decoded, attachments decoded.
"""

from __future__ import annotations

import argparse
import base64
import email
import email.policy
import sys
import time
from collections.abc import Callable, Sequence

from ops_mail.mime import parse_mail
from tests.bench.mime_fuzz import corpus


def small_mail() -> bytes:
    """A 4 KB mail as they come: folded headers, encoded words, text and HTML, a small attachment."""
    text = "Guten Tag,\r\n\r\n" + "im Anhang finden Sie die =C3=9Cbersicht f=C3=BCr das n=C3=A4chste Quartal.\r\n" * 12
    page = "<html><body>" + "<p>im Anhang finden Sie die &Uuml;bersicht</p>\r\n" * 12 + "</body></html>\r\n"
    attachment = base64.encodebytes(bytes(range(256)) * 3).decode().replace("\n", "\r\n")
    return (
        "Return-Path: <anna@example.org>\r\n"
        "Received: from mail.example.org (mail.example.org [192.0.2.1])\r\n"
        "\tby mx.example.net (Postfix) with ESMTPS id 4VXy8q2Z\r\n"
        "\tfor <bob@example.net>; Mon,  6 May 2024 10:00:05 +0200 (CEST)\r\n"
        "Authentication-Results: mx.example.net; dkim=pass header.d=example.org; spf=pass\r\n"
        "From: =?utf-8?Q?Anna_M=C3=BCller?= <anna@example.org>\r\n"
        'To: "Doe, Bob" <bob@example.net>, carol@example.net\r\n'
        "Cc: =?utf-8?B?5byg5LiJ?= <zhang@example.cn>\r\n"
        "Subject: =?utf-8?Q?=C3=9Cbersicht_f=C3=BCr_das_n=C3=A4chste?=\r\n =?utf-8?Q?_Quartal?=\r\n"
        "Date: Mon, 6 May 2024 10:00:00 +0200\r\n"
        "Message-ID: <20240506080000.1234@example.org>\r\n"
        "MIME-Version: 1.0\r\n"
        'Content-Type: multipart/mixed; boundary="=_outer"\r\n\r\n'
        '--=_outer\r\nContent-Type: multipart/alternative; boundary="=_inner"\r\n\r\n'
        "--=_inner\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n"
        f"{text}\r\n--=_inner\r\nContent-Type: text/html; charset=utf-8\r\n\r\n{page}\r\n--=_inner--\r\n"
        '--=_outer\r\nContent-Type: application/pdf; name="a.pdf"\r\n'
        "Content-Disposition: attachment; filename*=utf-8''%C3%9Cbersicht.pdf\r\n"
        f"Content-Transfer-Encoding: base64\r\n\r\n{attachment}--=_outer--\r\n"
    ).encode()


def standard(raw: bytes) -> object:
    """The same reading by the standard library's modern policy."""
    message = email.message_from_bytes(raw, policy=email.policy.default)
    found: list[object] = []
    try:
        found += [str(value) for value in message.values()]
        for name in ("from", "to", "cc"):
            if (field := message[name]) is not None:
                found.append([str(address) for address in field.addresses])
        found.append(message["date"] and message["date"].datetime)
        for part in message.walk():
            if not part.is_multipart():
                found += [part.get_filename(), part.get_content()]
    except Exception as error:  # noqa: BLE001 - it raises many kinds on the corpus; that it does is part of the comparison
        found.append(error)
    return found


def rate(parse: Callable[[bytes], object], mails: Sequence[bytes], seconds: float) -> tuple[float, float]:
    """(mails, megabytes) a second of processor time, over whole rounds."""
    count = size = 0
    begin = time.process_time()
    while (taken := time.process_time() - begin) < seconds or not count:
        for raw in mails:
            parse(raw)
        count, size = count + len(mails), size + sum(map(len, mails))
    return count / taken, size / taken / 1e6


def main() -> int:
    """Print a line for each set of mails; 1 when ours is not three times as fast on small mails."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=3.0)
    seconds = options.parse_args().seconds
    small = small_mail()
    ratio = 0.0
    for name, mails in (("corpus", corpus()), (f"mails of {len(small) / 1024:.1f} KB", [small] * 100)):
        ours, ours_mb = rate(parse_mail, mails, seconds)
        theirs, theirs_mb = rate(standard, mails, seconds)
        ratio = ours / theirs
        sys.stdout.write(
            f"{name}: ours {ours:.0f} mails/s {ours_mb:.1f} MB/s, email.policy.default {theirs:.0f} mails/s "
            f"{theirs_mb:.1f} MB/s, {ratio:.1f} times\n"
        )
    return 0 if ratio >= 3 else 1


if __name__ == "__main__":
    raise SystemExit(main())
