"""Charsets under the labels that mail gives them, right and wrong, and bytes that carry no label at all."""

from __future__ import annotations

import pytest

from ops_mail.mime import parse_mail


def text(content: bytes, charset: str | None, kind: str = "plain") -> str | None:
    label = "" if charset is None else f"; charset={charset}"
    head = f"Content-Type: text/{kind}{label}\r\nContent-Transfer-Encoding: 8bit\r\n\r\n".encode()
    mail = parse_mail(head + content)
    return mail.text_body if kind == "plain" else mail.html_body


@pytest.mark.parametrize(
    ("label", "codec", "content"),
    [
        ("gb2312", "gbk", "朱镕基在喆"),  # characters that GB2312 itself lacks
        ("GB2312", "gb18030", "𠮷野家"),
        ("gb_2312-80", "gbk", "测试"),
        ("x-gbk", "gbk", "测试"),
        ("cp936", "gbk", "测试"),
        ("big5", "big5hkscs", "嘅喺啲"),  # Hong Kong characters
        ("Big5-HKSCS", "big5hkscs", "香港"),
        ("hz-gb-2312", "hz", "测试 mail"),
        ("ks_c_5601-1987", "cp949", "뷁 한국어"),  # outside of EUC-KR proper
        ("euc-kr", "cp949", "똠방각하"),
        ("iso-2022-jp", "iso2022_jp", "日本語のテスト"),
        ("iso-2022-kr", "iso2022_kr", "한국어"),
        ("shift_jis", "cp932", "①㈱高橋"),
        ("x-sjis", "cp932", "表示ソ能"),
        ("euc-jp", "euc_jp", "日本語"),
        ("utf-7", "utf_7", "Grüße für 测试"),
        ("unicode-1-1-utf-7", "utf_7", "Grüße"),
        ("iso-8859-1", "cp1252", "“quotes” – 5 €"),  # WHATWG: a Windows code page in truth
        ("latin1", "cp1252", "café…"),
        ("iso-8859-9", "cp1254", "İstanbul’da"),
        ("iso-8859-11", "cp874", "ภาษาไทย…"),
        ("tis-620", "cp874", "ภาษาไทย"),
        ("iso-8859-2", "iso8859_2", "Příliš žluťoučký"),
        ("iso-8859-15", "iso8859_15", "5 €"),
        ("windows-1251", "cp1251", "Привет"),
        ("koi8-r", "koi8_r", "Привет"),
        ("koi8-u", "koi8_u", "Київ ґ"),
        ("iso-8859-8-i", "iso8859_8", "שלום"),
        ("x-mac-cyrillic", "mac_cyrillic", "Привет"),
        ("macintosh", "mac_roman", "Größe"),
        ("ibm850", "cp850", "Größe"),
        ("437", "cp437", "Größe"),
        ("utf-16le", "utf_16_le", "测试"),
        ("utf-16be", "utf_16_be", "测试"),
        ("utf-16", "utf_16", "测试"),
        ("utf8", "utf_8", "测试"),
        ("UTF_8", "utf_8", "测试"),
        ('"utf-8"', "utf_8", "测试"),
        ("'utf-8'", "utf_8", "测试"),
        ("utf-8 (plain)", "utf_8", "测试"),
        ("charset=utf-8", "utf_8", "测试"),
    ],
)
def test_label_is_read_as_mail_clients_read_it(label: str, codec: str, content: str) -> None:
    assert text(content.encode(codec), label) == content + "\n"


@pytest.mark.parametrize(
    ("jis", "content"),
    [
        (b"\x1b$B-!-j\x1b(B", "①㈱"),  # NEC row 13
        (b"\x1b(I1\x1b(B", "ｱ"),  # half-width katakana
        (b"\x1b$B$3$s\nplain", "こん\nplain"),  # not switched back before the line break
        (b"\x1b$@4A;z\x1b(J!", "漢字!"),  # the 1978 set and JIS X 0201
        ("日本".encode("cp932"), "日本"),  # not ISO-2022-JP at all
    ],
)
def test_iso_2022_jp_as_it_is_really_sent(jis: bytes, content: str) -> None:
    assert text(jis, "iso-2022-jp") == content + "\n"


def test_iso_2022_jp_without_a_label_shows_itself() -> None:
    assert text("日本語".encode("iso2022_jp"), None) == "日本語\n"
    assert text("日本語".encode("iso2022_jp"), "us-ascii") == "日本語\n"


def test_undefined_bytes_of_a_windows_code_page_are_controls() -> None:
    assert text(b"a\x81b", "windows-1252") == "a\x81b\n"


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf"])
def test_byte_order_mark_counts_more_than_the_label(mark: bytes) -> None:
    assert text(mark + "测试".encode(), "iso-8859-1") == "测试\n"
    assert text("\ufeff测试".encode("utf_16_le"), None) == "测试\n"


@pytest.mark.parametrize("label", ["iso-8859-1", "windows-1252", "us-ascii", "gb2312", "koi8-r"])
def test_utf8_under_another_name(label: str) -> None:
    content = "关于预算会议的通知，请查收"
    mail = parse_mail(f"Content-Type: text/plain; charset={label}\r\n\r\n".encode() + content.encode())
    assert mail.text_body == content + "\n"
    assert f"wrong_charset:{label}" in mail.defects


def test_gbk_under_the_name_of_utf8() -> None:
    content = "关于预算会议的通知，请查收附件中的合同"
    assert text(content.encode("gbk"), "utf-8") == content + "\n"


def test_damaged_utf8_stays_utf8() -> None:
    mail = parse_mail("Content-Type: text/plain; charset=utf-8\r\n\r\n预算会议".encode() + b"\xff" + "通知".encode())
    assert mail.text_body == "预算会议\ufffd通知\n"
    assert "undecodable" in mail.defects


@pytest.mark.parametrize("name", ["zip", "hex", "rot13", "unicode_escape", "idna", "undefined", "base64"])
def test_label_never_reaches_a_codec_that_is_no_charset(name: str) -> None:
    mail = parse_mail(f"Content-Type: text/plain; charset={name}\r\n\r\n".encode() + "测试邮件的内容".encode())
    assert mail.text_body == "测试邮件的内容\n"
    assert f"unknown_charset:{name}" in mail.defects


def test_charset_that_html_itself_names_when_the_header_names_none() -> None:
    for meta in ('<meta charset="gb2312">', '<META http-equiv=Content-Type content="text/html; charset=gb2312">'):
        page = f"<html><head>{meta}</head><body>测试</body></html>"
        assert text(page.encode("gbk"), None, "html") == page


def test_charset_that_html_names_counts_more_than_us_ascii() -> None:
    page = '<meta charset="koi8-r"><p>Привет</p>'
    assert text(page.encode("koi8-r"), "us-ascii", "html") == page


@pytest.mark.parametrize(
    ("codec", "content"),
    [
        ("utf_8", "测试 ä"),
        ("gbk", "关于2024年度预算的通知"),
        ("gbk", "您的订单已发货"),
        ("big5", "關於二零二四年度預算的通知"),
        ("cp949", "주문이 발송되었습니다"),
        ("euc_jp", "ご注文ありがとうございます"),
        ("cp932", "ご注文ありがとうございます"),
        ("cp1251", "Здравствуйте, Иван"),
        ("koi8_r", "Здравствуйте, Иван"),
        ("cp1252", "Überprüfung der Änderungen größer"),
        ("cp1252", "Müller"),
        ("cp1252", "Änderung der Bestellung"),
        ("cp1252", "Ärger"),
        ("cp1252", "São Paulo"),
        ("cp1252", "Angebot für Köln"),
        ("big5", "滿樂多線上"),
        ("cp1252", "“quoted” – résumé"),
    ],
)
def test_raw_header_without_any_label(codec: str, content: str) -> None:
    mail = parse_mail(b"Subject: " + content.encode(codec) + b"\r\n\r\n")
    assert mail.subject == content
    assert ("raw_header" in mail.defects) == (codec != "utf_8")


def test_raw_header_in_the_charset_that_the_body_declares() -> None:
    mail = parse_mail(
        b"Subject: " + "Dobrý večer".encode("cp1250") + b"\r\nContent-Type: text/plain; charset=windows-1250\r\n\r\nx"
    )
    assert mail.subject == "Dobrý večer"


def test_raw_header_in_a_charset_of_east_asia_that_the_body_declares() -> None:
    mail = parse_mail(b"Subject: " + "滿樂".encode("big5") + b"\r\nContent-Type: text/html; charset=big5\r\n\r\nx")
    assert mail.subject == "滿樂"


def test_utf7_cannot_smuggle_lone_surrogates() -> None:
    mail = parse_mail(b"Subject: =?utf-7?Q?+2AA-?=\r\nContent-Type: text/plain; charset=utf-7\r\n\r\n+2AA- x +3AA-")
    assert mail.subject == "\ufffd"
    assert mail.text_body == "\ufffd x \ufffd\n"
    assert "undecodable" in mail.defects


def test_nul_characters_are_left_out() -> None:
    mail = parse_mail(b"Subject: =?utf-8?Q?a=00b?=\r\n\r\nc\0d\n")
    assert (mail.subject, mail.text_body) == ("ab", "cd\n")
    assert "nul" in mail.defects
