"""What a handler is given."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ops_mail.core.mail import Address
from ops_mail.handlers.content import Content, ContentSource
from ops_mail.store.stored_mail import StoredMail

__all__ = ["Address", "Mail", "MailAttachment", "mail_for_handler"]


@dataclass(frozen=True, slots=True)
class MailAttachment:
    """One file of a mail. `filename` is safe as a name in a folder, `original_filename` is as sent."""

    position: int
    filename: str | None
    original_filename: str | None
    content_type: str
    disposition: str | None
    content_id: str | None
    content: Content


@dataclass(frozen=True, slots=True)
class Mail:
    """One landed mail; the fields are named as the columns of `ops_mail_message`.

    `key` (`mailbox/folder/uidvalidity/uid`) is the same at every attempt: a handler may be run more than once for a
    mail, so effects outside of the database should be keyed by it. `attempt` counts from 1, over all processes.
    Times are UTC and aware. `raw` is the whole mail as it came; it and the attachments are read when asked for.
    """

    key: str
    attempt: int
    message_pk: int
    mailbox: str
    folder: str
    uid_validity: int
    uid: int
    message_id: str | None
    subject: str
    from_name: str
    from_addr: str
    to_addrs: tuple[Address, ...]
    cc_addrs: tuple[Address, ...]
    reply_to: str | None
    return_path: str | None
    auth_results: str | None
    sent_at: datetime | None
    received_at: datetime | None
    landed_at: datetime
    size_bytes: int
    text_body: str | None
    html_body: str | None
    headers: tuple[tuple[str, str], ...]
    flags: tuple[str, ...]
    defects: tuple[str, ...]
    attachments: tuple[MailAttachment, ...]
    raw: Content

    def header(self, name: str) -> str | None:
        """The first header of that name, in any case; None without one."""
        wanted = name.lower()
        return next((value for each, value in self.headers if each.lower() == wanted), None)


def mail_for_handler(stored: StoredMail, attempt: int, source: ContentSource) -> Mail:
    """The mail of one attempt."""
    return Mail(
        key=stored.key,
        attempt=attempt,
        message_pk=stored.message_pk,
        mailbox=stored.folder_key.mailbox,
        folder=stored.folder_key.folder,
        uid_validity=stored.uid_validity,
        uid=stored.uid,
        message_id=stored.message_id,
        subject=stored.subject,
        from_name=stored.sender.name,
        from_addr=stored.sender.addr,
        to_addrs=stored.to,
        cc_addrs=stored.cc,
        reply_to=stored.reply_to,
        return_path=stored.return_path,
        auth_results=stored.auth_results,
        sent_at=stored.sent_at,
        received_at=stored.received_at,
        landed_at=stored.landed_at,
        size_bytes=stored.size_bytes,
        text_body=stored.text,
        html_body=stored.html,
        headers=stored.headers,
        flags=stored.flags,
        defects=stored.defects,
        attachments=tuple(
            MailAttachment(
                position=one.position,
                filename=one.filename,
                original_filename=one.original_filename,
                content_type=one.content_type,
                disposition=one.disposition,
                content_id=one.content_id,
                content=Content(source, one.sha256, one.size_bytes),
            )
            for one in stored.attachments
        ),
        raw=Content(source, stored.raw_sha256, stored.size_bytes),
    )
