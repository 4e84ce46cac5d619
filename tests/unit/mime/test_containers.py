"""Files inside of something else: uuencode and yEnc in a text, winmail.dat."""

from __future__ import annotations

import struct

from ops_mail.mime import ParseLimits, parse_mail

UU = b"begin 644 cat.txt\n#0V%T\n`\nend\n"


def plain(body: bytes) -> bytes:
    return b"Subject: x\n\n" + body


def test_uuencoded_file_in_the_text_is_an_attachment() -> None:
    mail = parse_mail(plain(b"before\n" + UU + b"after\n"))
    assert [(item.filename, item.content, item.content_type) for item in mail.attachments] == [
        ("cat.txt", b"Cat", "text/plain")
    ]
    assert mail.text_body == "before\n" + UU.decode() + "after\n"  # a short one stays in the text


def test_long_uuencoded_file_is_taken_out_of_the_text() -> None:
    line = b"M" + b"86%A" * 15 + b"\n"
    mail = parse_mail(plain(b"before\nbegin 644 a.bin\n" + line * 300 + b"`\nend\nafter\n"))
    assert mail.text_body == "before\nafter\n"
    assert mail.attachments[0].content == b"aaa" * 15 * 300


def test_several_uuencoded_files() -> None:
    mail = parse_mail(plain(UU + b"and\n" + UU.replace(b"cat", b"dog")))
    assert [item.filename for item in mail.attachments] == ["cat.txt", "dog.txt"]


def test_text_about_uuencode_is_no_file() -> None:
    text = "Each one starts with\nbegin 644 name\nand so on until the\nend\n"
    mail = parse_mail(plain(text.encode()))
    assert (mail.text_body, mail.attachments) == (text, ())


def test_uuencoded_file_that_never_ends_stays_text() -> None:
    mail = parse_mail(plain(b"begin 644 a\n#0V%T\n"))
    assert (mail.text_body, mail.attachments) == ("begin 644 a\n#0V%T\n", ())
    assert "bad_uuencode" in mail.defects


def test_yenc_file_in_the_text() -> None:
    content = bytes(range(256))
    escaped = b"".join(
        b"=" + bytes(((byte + 42 + 64) & 0xFF,))
        if (byte + 42) & 0xFF in (0, 10, 13, 61)
        else bytes(((byte + 42) & 0xFF,))
        for byte in content
    )
    mail = parse_mail(plain(b"=ybegin line=128 size=256 name=all.bin\r\n" + escaped + b"\r\n=yend size=256\r\n"))
    assert [(item.filename, item.content) for item in mail.attachments] == [("all.bin", content)]


def attribute(level: int, key: int, content: bytes) -> bytes:
    return struct.pack("<BII", level, key, len(content)) + content + struct.pack("<H", sum(content) & 0xFFFF)


def text_property(key: int, text: str) -> bytes:
    value = text.encode("utf_16_le") + b"\0\0"
    return struct.pack("<III", key << 16 | 0x1F, 1, len(value)) + value + b"\0" * (-len(value) % 4)


def binary_property(key: int, value: bytes) -> bytes:
    return struct.pack("<III", key << 16 | 0x102, 1, len(value)) + value + b"\0" * (-len(value) % 4)


def tnef(*attributes: bytes) -> bytes:
    return b"\x78\x9f\x3e\x22\x01\x00" + b"".join(attributes)


def winmail(content: bytes) -> bytes:
    return b"Content-Type: application/ms-tnef; name=winmail.dat\nContent-Transfer-Encoding: binary\n\n" + content


RENDER = attribute(2, 0x00069002, b"\0" * 14)


def test_winmail_dat_is_opened_into_its_attachments() -> None:
    properties = struct.pack("<I", 3) + text_property(0x3707, "测试.pdf") + text_property(0x370E, "application/pdf")
    properties += text_property(0x3712, "id@x")
    mail = parse_mail(
        winmail(
            tnef(
                attribute(1, 0x0002800C, b"the text\0"),
                RENDER,
                attribute(2, 0x00018010, b"TEST~1.PDF\0"),
                attribute(2, 0x0006800F, b"first"),
                attribute(2, 0x00069005, properties),
                RENDER,
                attribute(2, 0x00018010, b"b.txt\0"),
                attribute(2, 0x0006800F, b"second"),
            )
        )
    )
    assert [(item.filename, item.content_type, item.content_id, item.content) for item in mail.attachments] == [
        ("测试.pdf", "application/pdf", "id@x", b"first"),
        ("b.txt", "text/plain", None, b"second"),
    ]
    assert mail.text_body == "the text\n"
    assert mail.defects == ("no_from", "no_date")


def test_html_of_a_winmail_dat_is_the_body() -> None:
    html = b"<meta charset=gb2312><p>" + "测试".encode("gbk") + b"</p>"
    mail = parse_mail(winmail(tnef(attribute(1, 0x00069003, struct.pack("<I", 1) + binary_property(0x1013, html)))))
    assert (mail.text_body, mail.html_body) == ("测试\n", "<meta charset=gb2312><p>测试</p>")


def test_message_inside_of_a_winmail_dat_gives_its_attachments_too() -> None:
    inner = tnef(RENDER, attribute(2, 0x00018010, b"inner.txt\0"), attribute(2, 0x0006800F, b"deep"))
    properties = struct.pack("<I", 1) + binary_property(0x3701, b"\0" * 16 + inner)
    mail = parse_mail(winmail(tnef(RENDER, attribute(2, 0x00018010, b"fwd\0"), attribute(2, 0x00069005, properties))))
    assert [(item.filename, item.content) for item in mail.attachments] == [("fwd", inner), ("inner.txt", b"deep")]


def test_broken_winmail_dat_is_kept_with_what_could_be_read() -> None:
    whole = tnef(RENDER, attribute(2, 0x00018010, b"a.txt\0"), attribute(2, 0x0006800F, b"content"), RENDER)
    for end in range(len(whole)):
        mail = parse_mail(winmail(whole[:end]))
        assert "parser_failed" not in mail.defects
        assert any(item.content == whole[:end] or item.filename == "a.txt" for item in mail.attachments)
    cut = parse_mail(winmail(whole[:-5]))
    assert [item.filename for item in cut.attachments] == ["a.txt", "winmail.dat"]
    assert "bad_tnef" in cut.defects


def test_files_inside_of_a_winmail_dat_count_as_parts() -> None:
    mail = parse_mail(winmail(tnef(*[RENDER, attribute(2, 0x0006800F, b"x")] * 50)), ParseLimits(max_parts=10))
    assert len(mail.attachments) <= 11
    assert "part_limit" in mail.defects
