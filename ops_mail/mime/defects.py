"""The documented list of shortfalls that a parsed mail may carry."""

from __future__ import annotations

from enum import StrEnum


class Defect(StrEnum):
    """Stable codes, stored as `code` or `code:detail`. Each says what was wrong and so which value is a guess."""

    # The header block
    NO_HEADER = "no_header"  # the first line is no header field; all of it is body
    HEADER_JUNK = "header_junk"  # lines among the header fields that are none; left out
    NO_HEADER_END = "no_header_end"  # the body begins without an empty line before it
    HEADER_LIMIT = "header_limit"  # more header fields or bytes than are kept
    BARE_CR = "bare_cr"  # line breaks of a single CR
    RAW_HEADER = "raw_header"  # 8-bit characters in a header that are not UTF-8; the charset is a guess
    BAD_ENCODED_WORD = "bad_encoded_word"  # an RFC 2047 word that is not closed or not valid; read as far as possible
    # Fields
    NO_FROM = "no_from"  # no address in From; that of Sender or Reply-To is used when there is one
    NO_DATE = "no_date"  # no Date
    BAD_DATE = "bad_date"  # a Date that names no moment; sent_at is null
    DATE_ZONE = "date_zone"  # a Date without a known zone; read as UTC
    BAD_ADDRESS = "bad_address"  # an address list with an entry that is no address
    REPEATED_FIELD = "repeated_field"  # a field that must be there once is there more often (detail: its name)
    # Charsets
    UNKNOWN_CHARSET = "unknown_charset"  # a label that names no charset (detail: the label); the charset is a guess
    WRONG_CHARSET = "wrong_charset"  # the label does not fit the bytes (detail: label); another charset was used
    UNDECODABLE = "undecodable"  # bytes without meaning in their charset; shown as U+FFFD
    NUL = "nul"  # NUL characters in a text; left out
    # Transfer encodings
    BAD_BASE64 = "bad_base64"  # characters or padding that base64 does not have
    UNKNOWN_ENCODING = "unknown_encoding"  # a Content-Transfer-Encoding of that name does not exist; read as it stands
    # Structure
    BAD_CONTENT_TYPE = "bad_content_type"  # a Content-Type that is none; read as text/plain
    NO_BOUNDARY = "no_boundary"  # a multipart whose boundary is not named or never comes; guessed, or shown as text
    NO_END_BOUNDARY = "no_end_boundary"  # a multipart that is not closed (cut off, or closed by its parent)
    NO_START_BOUNDARY = "no_start_boundary"  # a multipart whose first part has no boundary before it
    PART_AFTER_END = "part_after_end"  # a part behind the closing boundary; kept
    DEPTH_LIMIT = "depth_limit"  # nested deeper than is opened; the rest is kept as an attachment
    PART_LIMIT = "part_limit"  # more parts than are kept; the rest is left out
    PARTIAL_MESSAGE = "partial_message"  # message/partial: one piece of a mail that was cut up
    BAD_TNEF = "bad_tnef"  # a winmail.dat that cannot be read to its end; what was read is kept
    BAD_UUENCODE = "bad_uuencode"  # an unclosed or broken uuencoded or yEnc file in the text
    # Bounds
    ADDRESS_LIMIT = "address_limit"  # more addresses in a field than are kept
    TEXT_LIMIT = "text_limit"  # a text longer than is kept as text; the raw mail has all of it
    TIME_LIMIT = "time_limit"  # the time for one mail was up; what was known by then is kept
    PARSER_FAILED = "parser_failed"  # a fault of this program; what was known by then is kept
