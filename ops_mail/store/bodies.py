"""Long texts of mails on their way into a row of a server with a packet limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from ops_mail.store.inserts import HEX_TEXT, hex_text
from ops_mail.store.schema import message


async def write_bodies(connection: AsyncConnection, message_pk: int, pieces: Mapping[str, Sequence[str]]) -> None:
    """Makes each column named in `pieces` the text that its pieces are together; `MailRow.rest` holds such ones.

    They are put together in a variable of the session: appended to the row itself, each piece would write all those
    before it anew.
    """
    for column, texts in pieces.items():
        await connection.exec_driver_sql("SET @ops_body = ''")
        for text in texts:
            append = f"SET @ops_body = CONCAT(@ops_body, {HEX_TEXT})"
            await connection.exec_driver_sql(append, (hex_text(text),))
        whole = sa.update(message).where(message.c.id == message_pk).values({column: sa.text("@ops_body")})
        await connection.execute(whole)
    await connection.exec_driver_sql("SET @ops_body = NULL")
