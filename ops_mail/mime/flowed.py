"""format=flowed (RFC 3676): paragraphs that were cut into lines, put together again."""

from __future__ import annotations


def unflow(text: str, *, del_sp: bool) -> str:
    """Text with LF line ends, its soft line breaks removed and its space stuffing undone. Linear."""
    lines: list[str] = []
    paragraph: list[str] = []
    paragraph_depth = 0
    for line in text.split("\n"):
        content = line.lstrip(">")
        depth = len(line) - len(content)
        content = content.removeprefix(" ")
        if paragraph and depth != paragraph_depth:  # a soft break at a change of depth is a fixed one
            lines.append(_quoted(paragraph, paragraph_depth))
            paragraph = []
        paragraph_depth = depth
        is_signature = content == "-- "
        if is_signature and paragraph:
            lines.append(_quoted(paragraph, depth))
            paragraph = []
        if content.endswith(" ") and not is_signature:
            paragraph.append(content[:-1] if del_sp else content)
            continue
        paragraph.append(content)
        lines.append(_quoted(paragraph, depth))
        paragraph = []
    if paragraph:
        lines.append(_quoted(paragraph, paragraph_depth))
    return "\n".join(lines)


def _quoted(paragraph: list[str], depth: int) -> str:
    content = "".join(paragraph)
    return f"{'>' * depth} {content}" if depth else content
