"""The port of the endpoints: free, or held by an ops-mail that runs already."""

from __future__ import annotations

import asyncio
import errno
import json
import os

from ops_mail.cli.check.rows import Row, Verdict
from ops_mail.settings import HttpSettings

GROUP, PORT = "http", "port"
_ASK_SECONDS = 3.0
_ANSWER_BYTES = 65_536
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - compared with, not bound to


async def port_row(http: HttpSettings) -> Row:
    """The port is taken for a moment, and nothing is served meanwhile."""
    if http.port == 0:
        return Row(GROUP, PORT, Verdict.OK, "the system chooses a free one (OPS_MAIL_HTTP_PORT is 0)")
    where = f"{http.host} port {http.port}"
    try:
        server = await asyncio.get_running_loop().create_server(
            asyncio.Protocol, http.host, http.port, start_serving=False
        )
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return await _held(http, where)
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)
        advice = "set OPS_MAIL_HTTP_HOST and OPS_MAIL_HTTP_PORT to an address of this machine that its user may take"
        return Row(GROUP, PORT, Verdict.FAIL, f"{where} cannot be taken: {reason}", advice)
    server.close()
    await server.wait_closed()
    return Row(GROUP, PORT, Verdict.OK, f"{where} is free")


async def _held(http: HttpSettings, where: str) -> Row:
    health = await _health(f"http://{_EVERYWHERE.get(http.host, http.host)}:{http.port}/healthz")
    if health is None:
        advice = "set OPS_MAIL_HTTP_PORT to a free port, or end what holds this one"
        return Row(GROUP, PORT, Verdict.FAIL, f"{where} is held by another program", advice)
    detail = f"{where} is held by a running ops-mail ({health['instance']}, version {health['version']})"
    if health["status"] == "stuck":
        return Row(GROUP, PORT, Verdict.WARN, f"{detail}, which is stuck", "its log says in what; restart it")
    return Row(GROUP, PORT, Verdict.OK, detail)


async def _health(url: str) -> dict[str, str] | None:
    """What /healthz of an ops-mail answers; None when nobody does, or something else."""
    import aiohttp  # noqa: PLC0415 - a large library, and the port is mostly free

    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_ASK_SECONDS)) as client,
            client.get(url, allow_redirects=False) as answer,
        ):
            body = json.loads(await answer.content.read(_ANSWER_BYTES))
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
        return None
    if not isinstance(body, dict) or body.get("status") not in ("alive", "stuck", "disabled"):
        return None
    known = {key: str(body[key]) for key in ("status", "instance", "version") if key in body}
    return known if len(known) == 3 else None
