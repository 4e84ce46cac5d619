"""The parts that are kept as files: decoded, named, and containers opened."""

from __future__ import annotations

from ops_mail.core.mail import Attachment
from ops_mail.mime.bodies import disposition_of
from ops_mail.mime.embedded import EmbeddedFile, guess_type
from ops_mail.mime.filenames import safe_name
from ops_mail.mime.notes import Notes
from ops_mail.mime.parameters import Parameters
from ops_mail.mime.tnef import Tnef, read_tnef
from ops_mail.mime.tree import Part, is_media_type
from ops_mail.mime.words import decode_value

_MAX_DISPOSITION = 40  # longer than any that is defined
_TNEF_TYPES = frozenset(("application/ms-tnef", "application/vnd.ms-tnef"))


def read_attachments(parts: list[Part], found: list[Attachment], notes: Notes) -> Tnef | None:
    """Append the attachments to `found`, one by one, so that those before a time limit are kept.

    The files in a winmail.dat stand in its place, and the text that it holds is returned. One that could not be read
    to its end, or that holds nothing, is kept itself.
    """
    wrapped: Tnef | None = None
    for part in parts:
        notes.check_time()
        attachment = _attachment(part, notes)
        if part.content_type in _TNEF_TYPES or (attachment.filename or "").lower() == "winmail.dat":
            opened = read_tnef(attachment.content, notes)
            if opened is not None:
                found.extend(_from_tnef(opened))
                wrapped = wrapped or opened
                if opened.complete:
                    continue
        found.append(attachment)
    return wrapped


def embedded_attachment(file: EmbeddedFile, notes: Notes) -> Attachment:
    """A file that stood in the text."""
    name = decode_value(file.name, notes)
    return Attachment(safe_name(name), name, guess_type(name), None, None, file.content)


def _attachment(part: Part, notes: Notes) -> Attachment:
    disposition = disposition_of(part)
    name = file_name(part, disposition, notes)
    content_id = part.header.first("content-id")
    return Attachment(
        filename=safe_name(name),
        original_filename=name,
        content_type=part.content_type,
        disposition=(disposition.value[:_MAX_DISPOSITION] or None) if disposition is not None else None,
        content_id=None if content_id is None else decode_value(content_id, notes).strip().strip("<>") or None,
        content=part.content(notes),
    )


def file_name(part: Part, disposition: Parameters | None, notes: Notes) -> str | None:
    """The name as sent, decoded: `filename` of the disposition, else `name` (or `file`, as some write) of the type."""
    name = None if disposition is None else disposition.text("filename", notes)
    return name or part.parameters.text("name", notes) or part.parameters.text("file", notes) or None


def _from_tnef(opened: Tnef) -> list[Attachment]:
    return [
        Attachment(
            filename=safe_name(file.name),
            original_filename=file.name,
            content_type=file.content_type
            if file.content_type is not None and is_media_type(file.content_type)
            else guess_type(file.name),
            disposition="attachment",
            content_id=file.content_id,
            content=file.content,
        )
        for file in opened.files
    ]
