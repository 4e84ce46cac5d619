"""Charset labels as mail writes them → the Python codec that reads them best.

Follows the WHATWG Encoding Standard where browsers and mail clients read a label as a larger charset
(iso-8859-1 as windows-1252, gb2312 as gb18030, ks_c_5601-1987 as cp949), and adds the labels of mail alone.
Only codecs of this table are ever asked for: a label of the sender must not reach `codecs.lookup`,
which knows `zip` and `unicode_escape` too and remembers each name that it was asked for.
"""

from __future__ import annotations

import re

ASCII = "ascii"
ISO_2022_JP = "iso2022_jp"
UTF_16 = "utf_16"
UTF_32 = "utf_32"

_TABLE = {
    "utf_8": (
        "utf8 unicode11utf8 utf8mb4 utf xunicode20utf8 unicode20utf8 xutf8 65001 cp65001 utf8mac cesu8 uft8 uff8 "
        "utf08 utf8n al32utf8"
    ),
    "utf_7": "utf7 unicode11utf7 unicode20utf7 xunicode20utf7 65000 cp65000 csunicode11utf7 xutf7",
    UTF_16: "utf16 unicode ucs2 iso10646ucs2 csunicode",
    "utf_16_le": "utf16le unicodefeff unicodelittle ucs2le 1200",
    "utf_16_be": "utf16be unicodefffe unicodebig ucs2be 1201",
    UTF_32: "utf32 ucs4 iso10646ucs4",
    "utf_32_le": "utf32le ucs4le",
    "utf_32_be": "utf32be ucs4be",
    ASCII: (
        "ascii usascii ansix341968 ansix341986 iso646us iso646 us cp367 ibm367 isoir6 csascii usacsii asciius "
        "usasci 20127 7bit iso646irv1991"
    ),
    "cp1252": (
        "iso88591 latin1 l1 iso885911987 isoir100 csisolatin1 cp819 ibm819 windows1252 cp1252 xcp1252 1252 "
        "iso8859 8859 88591 ansi windowslatin1 iso1 westerneuropean isolatin1 win1252 window1252 windowsansi"
    ),
    "iso8859_2": "iso88592 latin2 l2 iso885921987 isoir101 csisolatin2 88592",
    "iso8859_3": "iso88593 latin3 l3 iso885931988 isoir109 csisolatin3",
    "iso8859_4": "iso88594 latin4 l4 iso885941988 isoir110 csisolatin4",
    "iso8859_5": "iso88595 cyrillic iso885951988 isoir144 csisolatincyrillic",
    "iso8859_6": "iso88596 arabic iso885961987 isoir127 ecma114 asmo708 csisolatinarabic iso88596i iso88596e",
    "iso8859_7": "iso88597 greek greek8 iso885971987 isoir126 ecma118 elot928 csisolatingreek suneugreek",
    "iso8859_8": "iso88598 hebrew visual iso885981988 isoir138 csisolatinhebrew iso88598i iso88598e logical",
    "cp1254": "iso88599 latin5 l5 iso885991989 isoir148 csisolatin5 windows1254 cp1254 xcp1254 1254",
    "iso8859_10": "iso885910 latin6 l6 iso8859101992 isoir157 csisolatin6",
    "cp874": "iso885911 tis620 tis6200 tis62025330 windows874 cp874 dos874 xwindows874 874",
    "iso8859_13": "iso885913 latin7 l7",
    "iso8859_14": "iso885914 latin8 l8",
    "iso8859_15": "iso885915 latin9 l9 latin0 csisolatin9",
    "iso8859_16": "iso885916 latin10 l10",
    "koi8_r": "koi8r koi8 koi cskoi8r 20866",
    "koi8_u": "koi8u koi8ru 21866",
    "cp1250": "windows1250 cp1250 xcp1250 1250 win1250",
    "cp1251": "windows1251 cp1251 xcp1251 1251 win1251 window1251 windowscyrillic win",
    "cp1253": "windows1253 cp1253 xcp1253 1253 win1253",
    "cp1255": "windows1255 cp1255 xcp1255 1255 win1255",
    "cp1256": "windows1256 cp1256 xcp1256 1256 win1256",
    "cp1257": "windows1257 cp1257 xcp1257 1257 win1257 baltic",
    "cp1258": "windows1258 cp1258 xcp1258 1258 win1258",
    "mac_roman": "macintosh mac macroman xmacroman csmacintosh xmacwestern applemacintosh 10000",
    "mac_cyrillic": "xmaccyrillic maccyrillic xmacukrainian 10007",
    "mac_latin2": "xmacce macce maccentraleurope xmaccentraleurroman 10029",
    "mac_greek": "xmacgreek macgreek 10006",
    "mac_turkish": "xmacturkish macturkish 10081",
    "mac_iceland": "xmacicelandic maciceland",
    "cp437": "437 cp437 ibm437 cspc8codepage437",
    "cp737": "737 cp737 ibm737",
    "cp775": "775 cp775 ibm775",
    "cp850": "850 cp850 ibm850 cspc850multilingual",
    "cp852": "852 cp852 ibm852 cspcp852",
    "cp855": "855 cp855 ibm855",
    "cp857": "857 cp857 ibm857",
    "cp858": "858 cp858 ibm858 ibm00858 pcmultilingual850euro",
    "cp860": "860 cp860 ibm860",
    "cp861": "861 cp861 ibm861",
    "cp862": "862 cp862 ibm862 dos862",
    "cp863": "863 cp863 ibm863",
    "cp864": "864 cp864 ibm864",
    "cp865": "865 cp865 ibm865",
    "cp866": "866 cp866 ibm866 csibm866 dos866",
    "cp869": "869 cp869 ibm869",
    "cp037": "ibm037 cp037 ebcdiccpus",
    "cp500": "ibm500 cp500",
    "cp1140": "ibm1140 cp1140",
    "hp_roman8": "hproman8 roman8 r8",
    "ptcp154": "ptcp154 pt154 csptcp154 cyrillicasian",
    "kz1048": "kz1048 rk1048 strk10482002",
    "gb18030": (
        "gb18030 gb2312 gbk xgbk cp936 936 ms936 windows936 gb csgb2312 csiso58gb231280 isoir58 gb231280 chinese "
        "euccn xeuccn gb180302000 gb180302005 gb2312gbk simplifiedchinese cngb xgb csgb18030 gb180302022 54936"
    ),
    "hz": "hz hzgb2312 hzgb xhz 52936",
    "big5hkscs": (
        "big5 big5hkscs cnbig5 xxbig5 csbig5 big5tw cp950 950 ms950 windows950 big5eten big5et xbig5 bigfive "
        "cp951 traditionalchinese eten"
    ),
    "euc_jp": "eucjp xeucjp cseucpkdfmtjapanese ujis eucjpms cp51932 xeuc eucjis 51932",
    "cp932": (
        "shiftjis sjis xsjis mskanji ms932 windows31j csshiftjis cswindows31j cp932 932 windows932 shiftjiscp932 "
        "xmscp932 cp943 ibm943"
    ),
    ISO_2022_JP: (
        "iso2022jp csiso2022jp iso2022jp1 iso2022jp2 iso2022jp3 iso2022jpms iso2022jpext iso2022jp2004 jis "
        "cp50220 cp50221 cp50222 50220 50221 50222 csiso2022jp2 junet"
    ),
    "iso2022_kr": "iso2022kr csiso2022kr",
    "cp949": (
        "euckr ksc56011987 ksc5601 ksc56011989 ksc56011992 korean csksc56011987 cseuckr isoir149 windows949 cp949 "
        "ms949 949 uhc xwindows949 ks ksc56011986 xksc5601 51949"
    ),
    "johab": "johab cp1361 ms1361 1361",
}
_CODECS = {label: codec for codec, labels in _TABLE.items() for label in labels.split()}
_NOT_A_LABEL = frozenset(
    ("unknown", "unknown8bit", "xunknown", "default", "xuserdefined", "8bit", "binary", "none", "null")
)
_SQUEEZE = re.compile(r"[^a-z0-9]+")
_PREFIXES = (
    "utf8",
    "usascii",
    "iso2022jp",
    "iso88591",
    "gb2312",
    "gb18030",
    "gbk",
    "big5",
    "windows1252",
    "windows1251",
)


def codec_for(label: str) -> str | None:
    """The codec for a label as written, however sloppily; None when it names no charset."""
    # RFC 2231 section 5: an encoded word may add *language to its charset.
    squeezed = _SQUEEZE.sub("", label[:80].split("*", 1)[0].lower())
    codec = _CODECS.get(squeezed)
    if codec is not None or squeezed in _NOT_A_LABEL:
        return codec
    if squeezed.startswith("charset"):
        squeezed = squeezed.removeprefix("charset")
        codec = _CODECS.get(squeezed)
    if codec is None and squeezed.startswith("cs"):
        codec = _CODECS.get(squeezed[2:])
    if codec is None:
        # The next header runs into the label ("utf-8Content-Transfer-Encoding"), or a suffix was made up ("utf-8-sig").
        codec = next((_CODECS[prefix] for prefix in _PREFIXES if squeezed.startswith(prefix)), None)
    return codec
