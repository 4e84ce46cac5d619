"""`ops-mail status --watch`: one look after the other, until Ctrl-C; a database that is away is told and tried anew."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.rule import Rule
from rich.text import Text

from ops_mail.cli.quiet import quiet_logs
from ops_mail.cli.status import Overview, look, overview_json
from ops_mail.cli.status_tables import picture
from ops_mail.cli.terminal import printable, write_json
from ops_mail.errors import StoreError
from ops_mail.settings import Settings

_LOOK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Seen:
    """What one look found, and when. With an `error` the `overview` is the last one before it, if there was any."""

    at: datetime
    overview: Overview | None
    error: str | None = None


def watch_command(settings: Settings, interval_seconds: float, *, as_json: bool) -> int:
    """Shows a look at the database every `interval_seconds` until Ctrl-C; 0 then, whatever was seen."""
    quiet_logs()
    try:
        if as_json:
            asyncio.run(_watch(settings, interval_seconds, lambda seen: write_json(_as_json(seen))))
        else:
            _draw(settings, interval_seconds, Console())
    except KeyboardInterrupt:
        pass  # how a watch is meant to end
    return 0


def _draw(settings: Settings, interval_seconds: float, console: Console) -> None:
    if not console.is_terminal or console.is_dumb_terminal:
        asyncio.run(_watch(settings, interval_seconds, lambda seen: console.print(_picture(seen, interval_seconds))))
        return
    with Live(console=console, auto_refresh=False) as live:
        asyncio.run(
            _watch(settings, interval_seconds, lambda seen: live.update(_picture(seen, interval_seconds), refresh=True))
        )


async def _watch(settings: Settings, interval_seconds: float, show: Callable[[Seen], None]) -> None:
    """Never returns. Each look opens the database anew: whatever has happened to it, the next one can succeed."""
    last: Overview | None = None
    while True:
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                last = await look(settings)
            seen = Seen(last.at, last)
        except TimeoutError:
            seen = Seen(datetime.now(UTC), last, f"no answer within {_LOOK_SECONDS:g} s")
        except StoreError as error:
            seen = Seen(datetime.now(UTC), last, str(error))
        show(seen)
        await asyncio.sleep(interval_seconds)


def _as_json(seen: Seen) -> dict[str, object]:
    if seen.error is not None or seen.overview is None:
        return {"at": seen.at.isoformat(), "ready": False, "error": seen.error}
    return overview_json(seen.overview) | {"error": None}


def _picture(seen: Seen, interval_seconds: float) -> RenderableType:
    lines: list[RenderableType] = [Rule(_time(seen.at), style="dim", align="left")]
    if seen.error is not None:
        lines.append(Text(f"The database cannot be read: {printable(seen.error)}", style="bold red"))
        lines.append(Text(f"It is tried again every {interval_seconds:g} s.", style="red"))
        if seen.overview is not None:
            lines += [Text(), Text(f"This is how it was at {_time(seen.overview.at)}:", style="dim")]
    if seen.overview is not None:
        lines.append(picture(seen.overview))
    return Group(*lines)


def _time(at: datetime) -> str:
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S}"
