"""IDLE (RFC 2177): waiting for the server to speak."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import StrEnum

import structlog

from ops_mail.imap.channel import Channel
from ops_mail.imap.protocol import ConnectionFailed, SessionCommand

log = structlog.get_logger("ops_mail.imap")

BEAT_SECONDS = 5.0
WOKEN_SECONDS = 2.0
"""How long the server's answer is awaited once the caller's event is set."""


class IdleOutcome(StrEnum):
    """Why IDLE came to its end."""

    PUSH = "push"  # the server hinted at new mail
    TIMEOUT = "timeout"  # the time is over, or the server ended IDLE by itself without a hint
    WOKEN = "woken"  # the caller's event was set


class IdleRefused(Exception):
    """The server answered NO or BAD to IDLE; `text` is its own."""


async def idle(
    channel: Channel, seconds: float, wake: asyncio.Event, beat: Callable[[], None], begun: Callable[[], None]
) -> IdleOutcome:
    """See `ImapSession.idle`. Raises IdleRefused when the server will not idle at all."""
    async with channel.lock:
        channel.raise_if_failed()
        if channel.protocol.view.hint_at is not None:
            return IdleOutcome.PUSH
        if wake.is_set():
            return IdleOutcome.WOKEN
        command, error = await _run(channel, seconds, wake, beat, begun)
    return _outcome(channel, command, error, wake)


async def _run(
    channel: Channel, seconds: float, wake: asyncio.Event, beat: Callable[[], None], begun: Callable[[], None]
) -> tuple[SessionCommand, BaseException | None]:
    """IDLE from its first to its last byte; the finished command, and the error that ended it."""
    protocol = channel.protocol
    command = protocol.command("IDLE", collect=False)
    protocol.view.idling = True  # before the `+`: an EXISTS may come in the same segment, or ahead of it
    running = protocol.loop.create_task(protocol.execute(command), name="imap-idle")
    waking = protocol.loop.create_task(wake.wait(), name="imap-idle-wake")
    try:
        await _answer(channel, beat, waking, running, command.continued)
        if not running.done() and not command.continued.is_set():
            raise channel.timed_out("IDLE")
        if command.continued.is_set():
            begun()
        await _wait(channel, beat, seconds, running, protocol.hinted, waking)
        if not running.done():
            protocol.send("DONE")
            await _answer(channel, beat, waking, running)
            if not running.done():
                raise channel.timed_out("DONE")
        return command, running.exception()
    except BaseException:  # cancellation above all: an IDLE without its DONE makes the stream useless
        channel.abort()
        raise
    finally:
        protocol.view.idling = False
        for task in (running, waking):
            task.cancel()
        await asyncio.gather(running, waking, return_exceptions=True)


def _outcome(
    channel: Channel, command: SessionCommand, error: BaseException | None, wake: asyncio.Event
) -> IdleOutcome:
    if isinstance(error, ConnectionFailed):
        raise channel.translated(error)
    if error is not None:
        raise error
    if command.result != "OK":
        text = channel.shown(command.text)
        if command.result == "BAD" and "not connected" in text:  # Exchange: the mailbox behind the login is gone
            raise channel.broken(f"{channel.address} answered BAD to IDLE: {text}")
        raise IdleRefused(text)
    if channel.protocol.view.hint_at is not None:
        return IdleOutcome.PUSH
    return IdleOutcome.WOKEN if wake.is_set() else IdleOutcome.TIMEOUT


async def _answer(
    channel: Channel,
    beat: Callable[[], None],
    waking: asyncio.Task[object],
    running: asyncio.Task[object],
    *others: asyncio.Event,
) -> None:
    """Waits for the server's answer, but not for long once the caller is to be woken: it may be about to stop."""
    await _wait(channel, beat, channel.timeout_seconds, running, waking, *others)
    if waking.done():
        await _wait(channel, beat, min(WOKEN_SECONDS, channel.timeout_seconds), running, *others)


async def _wait(
    channel: Channel, beat: Callable[[], None], seconds: float, running: asyncio.Task[object],
    *others: asyncio.Event | asyncio.Task[object],
) -> None:  # fmt: skip
    """Until the command or one of the others is done, or the time is over; `beat` meanwhile."""
    loop = channel.protocol.loop
    end = loop.time() + seconds
    own = [loop.create_task(other.wait()) for other in others if isinstance(other, asyncio.Event)]
    waiting = {running, *own, *(other for other in others if isinstance(other, asyncio.Task))}
    try:
        while (left := end - loop.time()) > 0:
            beat()
            done, _ = await asyncio.wait(waiting, timeout=min(left, BEAT_SECONDS), return_when=asyncio.FIRST_COMPLETED)
            if done:
                return
    finally:
        for task in own:
            task.cancel()
        await asyncio.gather(*own, return_exceptions=True)
