"""The `ops_mail_*` tables as SQLAlchemy Core sees them. The migrations create them; a test holds both equal.

There are no foreign keys on purpose: InnoDB would take a shared lock on the mail's row for every attempt and
attachment, which turns independent work into deadlocks. The store writes parent and child in one transaction.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from ops_mail.store.columns import UtcDateTime, ascii_text, big_id, json_column, key_text, long_bytes, long_text

VERSION_TABLE = "ops_mail_alembic_version"
KEY_LENGTH = 255  # two of these and two numbers stay far below InnoDB's 3072 bytes an index

TABLE_OPTIONS: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_row_format": "DYNAMIC",
    "mariadb_engine": "InnoDB",
    "mariadb_charset": "utf8mb4",
    "mariadb_row_format": "DYNAMIC",
}

metadata = sa.MetaData()

cursor = sa.Table(
    "ops_mail_cursor",
    metadata,
    sa.Column("id", big_id(), primary_key=True, autoincrement=True),
    sa.Column("mailbox", key_text(KEY_LENGTH), nullable=False),
    sa.Column("folder", key_text(KEY_LENGTH), nullable=False),
    sa.Column("uid_validity", sa.BigInteger()),
    sa.Column("last_uid", sa.BigInteger(), nullable=False, server_default="0"),
    sa.Column("start_uid", sa.BigInteger(), nullable=False, server_default="0"),
    sa.Column("epoch", sa.BigInteger(), nullable=False, server_default="0"),
    sa.Column("holder", key_text(255)),
    sa.Column("lease_until", UtcDateTime()),
    sa.Column("state", ascii_text(32), nullable=False, server_default=""),
    sa.Column("failures", sa.Integer(), nullable=False, server_default="0"),
    sa.Column("last_error", sa.Text()),
    sa.Column("next_retry_at", UtcDateTime()),
    sa.Column("last_push_at", UtcDateTime()),
    sa.Column("last_sync_at", UtcDateTime()),
    sa.Column("created_at", UtcDateTime(), nullable=False),
    sa.Column("updated_at", UtcDateTime(), nullable=False),
    sa.UniqueConstraint("mailbox", "folder", name="uq_ops_mail_cursor_folder"),
    **TABLE_OPTIONS,
)

message = sa.Table(
    "ops_mail_message",
    metadata,
    sa.Column("id", big_id(), primary_key=True, autoincrement=True),
    sa.Column("mailbox", key_text(KEY_LENGTH), nullable=False),
    sa.Column("folder", key_text(KEY_LENGTH), nullable=False),
    sa.Column("uid_validity", sa.BigInteger(), nullable=False),
    sa.Column("uid", sa.BigInteger(), nullable=False),
    sa.Column("message_id", key_text(998)),
    sa.Column("subject", sa.Text()),
    sa.Column("from_name", sa.String(512)),
    sa.Column("from_addr", sa.String(512)),
    sa.Column("to_addrs", json_column()),
    sa.Column("cc_addrs", json_column()),
    sa.Column("reply_to", sa.String(998)),
    sa.Column("return_path", sa.String(512)),
    sa.Column("auth_results", sa.Text()),
    sa.Column("sent_at", UtcDateTime()),
    sa.Column("received_at", UtcDateTime()),
    sa.Column("size_bytes", sa.BigInteger(), nullable=False),
    sa.Column("raw_sha256", ascii_text(64)),
    sa.Column("text_body", long_text()),
    sa.Column("html_body", long_text()),
    sa.Column("headers", json_column()),
    sa.Column("flags", json_column()),
    sa.Column("defects", json_column()),
    sa.Column("status", ascii_text(16), nullable=False),
    sa.Column("attempts", sa.Integer(), nullable=False, server_default="0"),
    sa.Column("next_attempt_at", UtcDateTime()),
    sa.Column("lease_id", ascii_text(64)),
    sa.Column("lease_until", UtcDateTime()),
    sa.Column("last_error", sa.Text()),
    sa.Column("after_action_at", UtcDateTime()),
    sa.Column("landed_at", UtcDateTime(), nullable=False),
    sa.Column("updated_at", UtcDateTime(), nullable=False),
    # attempts - attempts_forgiven is what counts towards the maximum: a stop and an operator's retry forgive.
    sa.Column("attempts_forgiven", sa.Integer(), nullable=False, server_default="0"),
    sa.Column(
        "crashes", sa.Integer(), nullable=False, server_default="0"
    ),  # attempts in a row nobody reported back from
    sa.Column("content_removed_at", UtcDateTime()),
    sa.UniqueConstraint("mailbox", "folder", "uid_validity", "uid", name="uq_ops_mail_message_uid"),
    sa.Index("ops_mail_message_by_due", "status", "next_attempt_at"),
    sa.Index("ops_mail_message_by_order", "mailbox", "folder", "status", "uid_validity", "uid"),
    sa.Index("ops_mail_message_by_raw", "raw_sha256"),
    sa.Index("ops_mail_message_by_landed", "landed_at"),
    sa.Index("ops_mail_message_by_action", "after_action_at", "id"),
    sa.Index(
        "ops_mail_message_by_message_id",
        "message_id",
        mysql_length={"message_id": 191},
        mariadb_length={"message_id": 191},
    ),
    **TABLE_OPTIONS,
)

attachment = sa.Table(
    "ops_mail_attachment",
    metadata,
    sa.Column("id", big_id(), primary_key=True, autoincrement=True),
    sa.Column("message_pk", sa.BigInteger(), nullable=False),
    sa.Column("position", sa.Integer(), nullable=False),
    sa.Column("filename", sa.String(255)),
    sa.Column("original_filename", sa.String(1000)),
    sa.Column("content_type", sa.String(255), nullable=False),
    sa.Column("disposition", sa.String(64)),
    sa.Column("content_id", sa.String(998)),
    sa.Column("size_bytes", sa.BigInteger(), nullable=False),
    sa.Column("sha256", ascii_text(64), nullable=False),
    sa.UniqueConstraint("message_pk", "position", name="uq_ops_mail_attachment_position"),
    sa.Index("ops_mail_attachment_by_sha256", "sha256"),
    **TABLE_OPTIONS,
)

blob = sa.Table(
    "ops_mail_blob",
    metadata,
    sa.Column("sha256", ascii_text(64), primary_key=True),
    sa.Column("size_bytes", sa.BigInteger(), nullable=False),
    sa.Column("encoding", ascii_text(16), nullable=False),
    sa.Column("created_at", UtcDateTime(), nullable=False),
    sa.Column("place", key_text(512)),  # the directory or bucket that holds it (too); None: the database, or unknown
    **TABLE_OPTIONS,
)

blob_chunk = sa.Table(
    "ops_mail_blob_chunk",
    metadata,
    sa.Column("sha256", ascii_text(64), primary_key=True),
    sa.Column("seq", sa.Integer(), primary_key=True, autoincrement=False),
    sa.Column("data", long_bytes(), nullable=False),
    **TABLE_OPTIONS,
)

attempt = sa.Table(
    "ops_mail_attempt",
    metadata,
    sa.Column("id", big_id(), primary_key=True, autoincrement=True),
    sa.Column("message_pk", sa.BigInteger(), nullable=False),
    sa.Column("attempt_no", sa.Integer(), nullable=False),
    sa.Column("handler", sa.String(255), nullable=False),
    sa.Column("instance", sa.String(255), nullable=False),
    sa.Column("started_at", UtcDateTime(), nullable=False),
    sa.Column("finished_at", UtcDateTime()),
    sa.Column("outcome", ascii_text(16)),
    sa.Column("result", json_column()),
    sa.Column("error", sa.Text()),
    sa.Index("ops_mail_attempt_by_message", "message_pk", "attempt_no"),
    sa.Index("ops_mail_attempt_by_started", "started_at"),
    **TABLE_OPTIONS,
)

audit = sa.Table(
    "ops_mail_audit",
    metadata,
    sa.Column("id", big_id(), primary_key=True, autoincrement=True),
    sa.Column("at", UtcDateTime(), nullable=False),
    sa.Column("actor", sa.String(64), nullable=False),
    sa.Column("action", ascii_text(64), nullable=False),
    sa.Column("mailbox", key_text(KEY_LENGTH)),
    sa.Column("message_pk", sa.BigInteger()),
    sa.Column("detail", json_column()),
    sa.Index("ops_mail_audit_by_action", "action", "mailbox"),
    sa.Index("ops_mail_audit_by_at", "at"),
    **TABLE_OPTIONS,
)

instance = sa.Table(
    "ops_mail_instance",
    metadata,
    sa.Column("instance", key_text(KEY_LENGTH), primary_key=True),
    sa.Column("role", ascii_text(32), nullable=False),
    sa.Column("started_at", UtcDateTime(), nullable=False),
    sa.Column("heartbeat_at", UtcDateTime(), nullable=False),
    sa.Column("detail", json_column()),
    **TABLE_OPTIONS,
)
