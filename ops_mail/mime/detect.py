"""Guessing the charset of bytes that say nothing, or nothing true, about theirs.

UTF-8 proves itself. The double-byte charsets of East Asia are told apart by how common the characters are that each
reading gives, since their byte ranges overlap nearly wholly: GB18030 "decodes" most Big5, EUC-KR and even Latin-1 text.
What is left is a single-byte charset, told by its letters.
"""

from __future__ import annotations

import re

_SAMPLE = 6000
_HIGH = re.compile(rb"[\x80-\xff]")
_NON_ASCII_RUN = re.compile(rb"[^\x00-\x7f](?:[^\x00-\x7f]|[\x40-\x7e](?=[^\x00-\x7f]))*.?", re.DOTALL)
_ALONE_IN_A_WORD = re.compile(r"(?<![^\x00-\x7f])[^\x00-\x7f](?=[A-Za-z])|(?<=[A-Za-z])[^\x00-\x7f](?![^\x00-\x7f])")
_ISO_2022 = re.compile(rb"\x1b(?:\$[@B]|\$\([@BD]|\([IJ]|\$\)C)")
# Evidence that a valid UTF-8 reading is no accident: about 1 in 8 pairs of another charset looks like one by chance.
_UTF_8_WIDE = re.compile(rb"[\xe0-\xf4][\x80-\xbf]{2,3}")

_SINGLE_BYTE: tuple[tuple[str, frozenset[str]], ...] = (
    ("cp1251", frozenset("оеаинтсрвлкмдпуяыьгзбчйхжшюіїєОЕАИНТСРВЛКМДПУЯГЗБЧЙХЖШЮ")),
    ("koi8_r", frozenset("оеаинтсрвлкмдпуяыьгзбчйхжшюОЕАИНТСРВЛКМДПУЯГЗБЧЙХЖШЮ")),
    ("iso8859_5", frozenset("оеаинтсрвлкмдпуяыьгзбчйхжшюОЕАИНТСРВЛКМДПУЯГЗБЧЙХЖШЮ")),
    ("cp866", frozenset("оеаинтсрвлкмдпуяыьгзбчйхжшюОЕАИНТСРВЛКМДПУЯГЗБЧЙХЖШЮ")),
    ("cp1253", frozenset("αοιετνσηρπκλυμςωγδχθφβξζάέήίόύώΑΟΙΕΤΝΣΗΡΠΚΛΥΜ")),
    ("cp1255", frozenset("אבגדהוזחטיךכלםמןנסעףפץצקרשת")),
    ("cp1256", frozenset("ابتثجحخدذرزسشصضطظعغفقكلمنهويةىأإ")),
    ("cp874", frozenset("กขคงจฉชซญฎฐณดตถทธนบปผฝพฟภมยรลวศษสหอะัาำิีึืุูเแโใไ็่้๊๋์ๆฯ")),
)
_LATIN_COMMON = frozenset("äöüßÄÖÜéèêëàâáãåæçíìîïñóòôõøúùûýÿÅÆÇÉÈÊØÓÑÍÁÀ€„“”’‘–—…•«»°©®´¿¡£§ ")
_CENTRAL_COMMON = frozenset("ąćęłńóśźżĄĆĘŁŚŹŻáčďéěíňřšťúůýžČŘŠŽőűŐŰăâîșțşţđ„”–")


def is_utf8(data: bytes) -> bool:
    """Valid UTF-8, but for a last character that was cut off."""
    try:
        data.decode("utf_8")
    except UnicodeDecodeError as error:
        return (
            error.end >= len(data)
            and error.reason == "unexpected end of data"
            and error.start > 0
            and _any_high(data, error.start)
        )
    return True


def _any_high(data: bytes, end: int) -> bool:
    return _HIGH.search(data, 0, end) is not None


def utf8_is_certain(data: bytes) -> bool:
    """Valid UTF-8 with so many multi-byte characters that no other charset reads like that by chance."""
    sample = data[:65536]
    wide = len(_UTF_8_WIDE.findall(sample))
    if wide < 2 and len(_HIGH.findall(sample)) < 8:
        return False
    return is_utf8(data)


def detect(data: bytes, hint: str | None = None) -> str:
    """The Python codec that reads `data` best; `hint` is what the mail names elsewhere. Always names one."""
    if data.isascii():
        return "iso2022_jp" if b"\x1b$" in data and _ISO_2022.search(data) else "ascii"
    if is_utf8(data):
        return "utf_8"
    sample = _sample(data)
    east_asian, certainty = _east_asian(sample)
    if hint is not None and hint not in ("ascii", "utf_8") and _fits(sample, hint, east_asian, certainty):
        return hint
    if east_asian is not None and certainty > 0.95:
        return east_asian
    codec, score = _single_byte(sample)
    return codec if east_asian is None or (score > 0.9 and _mostly_high(sample)) else east_asian


def _sample(data: bytes) -> bytes:
    """The non-ASCII runs, each with the byte after it that may be its second half."""
    if len(data) <= _SAMPLE:
        return data
    pieces: list[bytes] = []
    size = 0
    for match in _NON_ASCII_RUN.finditer(data, 0, 40 * _SAMPLE):
        pieces.append(match[0])
        size += len(match[0]) + 1
        if size > _SAMPLE:
            break
    return b" ".join(pieces)[: 2 * _SAMPLE]


def _fits(sample: bytes, codec: str, east_asian: str | None, certainty: float) -> bool:
    """What the mail names elsewhere is believed unless the bytes speak clearly against it."""
    if codec in _RANGES:
        return codec == east_asian or _common_share(sample, codec) > 0.5
    if east_asian is not None and certainty > 0.8:
        return False
    try:
        sample.decode(codec)
    except UnicodeDecodeError:
        return codec.startswith("cp125")
    return True


def _east_asian(sample: bytes) -> tuple[str | None, float]:
    best, best_score = None, 0.55
    for codec in _RANGES:
        score = _common_share(sample, codec)
        if score > best_score:
            best, best_score = codec, score
    return best, best_score


def _common_share(sample: bytes, codec: str) -> float:
    """How many of the non-ASCII characters are common ones in this reading, 0 to 1; 0 when it is impossible."""
    try:
        text = sample.decode(codec)
    except UnicodeDecodeError as error:
        # The end of a long text may be a character cut in two.
        if error.start < len(sample) - 4 or len(sample) < 40:
            return 0.0
        text = sample[: error.start].decode(codec)
    wide = [char for char in text if char > "\x7f"]
    # One accented capital before a letter ("Änderung") is a good character of Big5: look at what stands around it.
    if not wide or len(_ALONE_IN_A_WORD.findall(text)) >= 0.5 * len(wide):
        return 0.0
    return _RANGES[codec](wide, text) / len(wide)


def _gb_common(chars: list[str], text: str) -> float:
    del text
    score = 0.0
    for char in chars:
        try:
            lead = char.encode("gb2312")[0]
        except UnicodeEncodeError:
            score += 0.35 if "\u4e00" <= char <= "\u9fff" else 0.0  # traditional characters, in GBK alone
            continue
        # Level 1 (B0 to D7) holds the 3,755 common characters; A1 and A3 punctuation and full-width forms.
        score += 1.0 if 0xB0 <= lead <= 0xD7 or lead in (0xA1, 0xA3) else 0.3
    return score


def _big5_common(chars: list[str], text: str) -> float:
    del text
    score = 0.0
    for char in chars:
        try:
            lead = char.encode("big5")[0]
        except UnicodeEncodeError:
            continue
        score += 1.0 if 0xA4 <= lead <= 0xC6 or lead in (0xA1, 0xA2) else 0.3
    return score


def _hangul(chars: list[str], text: str) -> float:
    score = sum(1.0 for char in chars if "\uac00" <= char <= "\ud7a3" and _in_ksx1001(char))
    # Chinese text reads as Hangul in part (lead bytes B0 to C8): only nearly pure Hangul of some length is Korean,
    # or a little less of it when it has spaces between words.
    enough = 4 if " " in text.strip() else 5
    return score * 1.01 if len(chars) >= enough and score >= 0.92 * len(chars) else score * 0.5


def _in_ksx1001(char: str) -> bool:
    try:
        return len(char.encode("euc_kr")) == 2  # others are spelled out in 8 bytes
    except UnicodeEncodeError:
        return False


def _japanese(chars: list[str], text: str) -> float:
    del text
    kana = sum(1 for char in chars if "\u3041" <= char <= "\u30fc")
    half_width = sum(1 for char in chars if "\uff61" <= char <= "\uff9f")
    if kana < 0.2 * len(chars) or half_width > 0.2 * len(chars):
        return 0.0
    han = sum(1 for char in chars if "\u4e00" <= char <= "\u9fff")
    forms = sum(1 for char in chars if "\u3000" <= char <= "\u3020" or "\uff01" <= char <= "\uff5e")
    return 1.02 * (kana + han + forms)


_RANGES = {"gb18030": _gb_common, "big5hkscs": _big5_common, "cp949": _hangul, "euc_jp": _japanese, "cp932": _japanese}


def _single_byte(sample: bytes) -> tuple[str, float]:
    mostly_high = _mostly_high(sample)
    best, best_score = "cp1252", _letter_score(sample, "cp1252", _LATIN_COMMON)
    central = _letter_score(sample, "cp1250", _CENTRAL_COMMON)
    if central > best_score:
        best, best_score = "cp1250", central
    if mostly_high:
        best_score -= 0.5
        for codec, letters in _SINGLE_BYTE:
            score = _letter_score(sample, codec, letters)
            if score > best_score:
                best, best_score = codec, score
    return best, best_score


def _letter_score(sample: bytes, codec: str, letters: frozenset[str]) -> float:
    text = sample.decode(codec, "replace")
    wide = [char for char in text if char > "\x7f"]
    if not wide:
        return 0.0
    score = 0.0
    before = " "
    is_latin = codec in ("cp1252", "cp1250")
    for char in text:
        if not is_latin and char.isalpha() and before.isalpha() and (char > "\x7f") != (before > "\x7f"):
            score -= 0.5  # two scripts in one word
        if char > "\x7f":
            if char in letters:
                # A capital after a small letter is the mark of Cyrillic read in the wrong one of its charsets.
                score += (
                    -0.5
                    if char.isupper() and before.islower()
                    else 1.0
                    if char.islower() or not char.isupper()
                    else 0.7
                )
            elif char == "\ufffd" or not char.isalpha():
                score -= 0.5
        before = char
    return score / len(wide)


def _mostly_high(sample: bytes) -> bool:
    """Text of a non-Latin script: the letters that touch a high byte are high bytes themselves."""
    high = len(_HIGH.findall(sample))
    latin = sum(1 for byte in sample if 0x41 <= byte <= 0x5A or 0x61 <= byte <= 0x7A)
    runs = len(re.findall(rb"[\x80-\xff]{3,}", sample))
    return high > 3 and (high > latin or 15 * runs > high)
