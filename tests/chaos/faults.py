"""Each kind of fault, from its beginning to its end."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Awaitable, Callable

from tests.chaos.plan import Fault, Kind
from tests.chaos.world import Instance, World
from tests.faults.proxy import TO_CLIENT, TO_SERVER, Connection, FaultProxy, Rule, cutting
from tests.integration.faults.databases import at_landing_commit

Break = Callable[[World, Fault], Awaitable[None]]


async def inflict(world: World, fault: Fault) -> None:
    """Begin it, let it last, end it. Whatever was switched off is on again afterwards."""
    await _BREAKS[fault.kind](world, fault)


async def _leader(world: World) -> Instance:
    return await asyncio.to_thread(world.leader)


# --- on the way


def _on_the_way(
    proxy_of: Callable[[Instance], FaultProxy], do: Callable[[FaultProxy, Fault], Awaitable[None]]
) -> Break:
    async def on_leader(world: World, fault: Fault) -> None:
        await do(proxy_of(await _leader(world)), fault)

    return on_leader


def _imap(do: Callable[[FaultProxy, Fault], Awaitable[None]]) -> Break:
    return _on_the_way(lambda instance: instance.imap, do)


def _database(do: Callable[[FaultProxy, Fault], Awaitable[None]]) -> Break:
    return _on_the_way(lambda instance: instance.database, do)


async def _reset(proxy: FaultProxy, _: Fault) -> None:
    proxy.reset()


async def _refuse(proxy: FaultProxy, fault: Fault) -> None:
    await proxy.refuse()
    proxy.reset()
    try:
        await asyncio.sleep(fault.seconds)
    finally:
        await proxy.accept()


async def _freeze(proxy: FaultProxy, fault: Fault) -> None:
    proxy.freeze()
    try:
        await asyncio.sleep(fault.seconds)
    finally:
        proxy.thaw()


async def _forget(proxy: FaultProxy, _: Fault) -> None:
    proxy.freeze()  # for good: new connections work


async def _cut(proxy: FaultProxy, fault: Fault) -> None:
    way = (TO_CLIENT, TO_SERVER)[fault.number % 2]
    for connection in proxy.connections:
        connection.cut(way, fault.amount)
    await asyncio.sleep(fault.seconds)


async def _delay(proxy: FaultProxy, fault: Fault) -> None:
    proxy.delay = 0.005 * fault.amount
    try:
        await asyncio.sleep(fault.seconds)
    finally:
        proxy.delay = 0.0


async def _bye(proxy: FaultProxy, _: Fault) -> None:
    for connection in proxy.connections:
        connection.inject(TO_CLIENT, b"* BYE Server shutting down.\r\n")
        connection.close()


async def _cut_in_a_body(proxy: FaultProxy, fault: Fault) -> None:
    await _during(proxy, fault, Rule(TO_SERVER, rb"BODY\.PEEK", then=cutting(TO_CLIENT, fault.amount)))


async def _during(proxy: FaultProxy, fault: Fault, rule: Rule) -> None:
    """Have a rule in place until it has fired, but no longer than the fault lasts."""
    proxy.rules.append(rule)
    try:
        async with asyncio.timeout(fault.seconds):
            await rule.fired.wait()
    except TimeoutError:
        pass
    finally:
        proxy.rules.remove(rule)


def _at_commit(moment: str) -> Callable[[FaultProxy, Fault], Awaitable[None]]:
    async def lose(proxy: FaultProxy, fault: Fault) -> None:
        await _at_next_commit(proxy, fault, moment, Connection.reset)

    return lose


async def _at_next_commit(
    proxy: FaultProxy, fault: Fault, moment: str, hook: Callable[[Connection], Awaitable[None] | None]
) -> None:
    before = list(proxy.rules)
    if moment == "before":
        came = at_landing_commit(proxy, before=hook)
    else:
        came = at_landing_commit(proxy, answer=hook)
    try:
        async with asyncio.timeout(fault.seconds + 1):
            await came.wait()
    except TimeoutError:
        pass
    finally:
        proxy.rules[:] = [rule for rule in proxy.rules if rule in before]


# --- processes


async def _killed(instance: Instance, fault: Fault) -> None:
    await asyncio.to_thread(instance.alive.kill)
    await asyncio.sleep(fault.seconds)
    instance.start()


async def _leader_killed(world: World, fault: Fault) -> None:
    await _killed(await _leader(world), fault)


async def _standby_killed(world: World, fault: Fault) -> None:
    await _killed(await asyncio.to_thread(world.standby), fault)


async def _leader_killed_landing(world: World, fault: Fault) -> None:
    instance = await _leader(world)
    moment = ("before", "answer")[fault.number % 2]

    def kill(connection: Connection) -> None:
        instance.alive.kill()
        connection.reset()

    await _at_next_commit(instance.database, fault, moment, kill)
    if instance.alive.process.poll() is None:  # no landing came
        await asyncio.to_thread(instance.alive.kill)
    instance.start()


async def _leader_stopped(world: World, fault: Fault) -> None:
    instance = await _leader(world)
    await asyncio.to_thread(instance.terminate)
    await asyncio.sleep(fault.seconds)
    instance.start()


async def _leader_frozen(world: World, fault: Fault) -> None:
    instance = await _leader(world)
    process = instance.alive
    process.signal(signal.SIGSTOP)
    try:
        await asyncio.sleep(fault.seconds)
    finally:
        process.signal(signal.SIGCONT)


# --- servers


async def _database_killed(world: World, fault: Fault) -> None:
    await asyncio.to_thread(world.server.kill)
    await asyncio.sleep(fault.seconds)
    await asyncio.to_thread(world.server.restart)


async def _database_frozen(world: World, fault: Fault) -> None:
    world.server.freeze()
    try:
        await asyncio.sleep(fault.seconds)
    finally:
        world.server.thaw()


async def _dovecot_restarted(world: World, fault: Fault) -> None:
    await asyncio.to_thread(world.dovecot.kill)
    await asyncio.sleep(fault.seconds)
    await asyncio.to_thread(world.dovecot.restart)


async def _lock_killed(world: World, _: Fault) -> None:
    await asyncio.to_thread(world.kill_lock_connection)


# --- other clients


async def _expunged(world: World, fault: Fault) -> None:
    landed = await asyncio.to_thread(world.landed, 300)
    draw = random.Random(fault.number)
    await asyncio.to_thread(world.expunge, draw.sample(landed, min(fault.amount, len(landed))))


async def _flags(world: World, fault: Fault) -> None:
    landed = await asyncio.to_thread(world.landed, 300)
    await asyncio.to_thread(world.set_flags, landed[: fault.amount])


_BREAKS: dict[Kind, Break] = {
    Kind.IMAP_RESET: _imap(_reset),
    Kind.IMAP_REFUSE: _imap(_refuse),
    Kind.IMAP_FREEZE: _imap(_freeze),
    Kind.IMAP_FORGET: _imap(_forget),
    Kind.IMAP_CUT: _imap(_cut_in_a_body),
    Kind.IMAP_DELAY: _imap(_delay),
    Kind.IMAP_BYE: _imap(_bye),
    Kind.DB_RESET: _database(_reset),
    Kind.DB_REFUSE: _database(_refuse),
    Kind.DB_FREEZE: _database(_freeze),
    Kind.DB_CUT: _database(_cut),
    Kind.DB_DELAY: _database(_delay),
    Kind.COMMIT_UNANSWERED: _database(_at_commit("answer")),
    Kind.COMMIT_UNSENT: _database(_at_commit("before")),
    Kind.LOCK_KILLED: _lock_killed,
    Kind.LEADER_KILLED: _leader_killed,
    Kind.LEADER_KILLED_LANDING: _leader_killed_landing,
    Kind.STANDBY_KILLED: _standby_killed,
    Kind.LEADER_STOPPED: _leader_stopped,
    Kind.LEADER_FROZEN: _leader_frozen,
    Kind.DB_KILLED: _database_killed,
    Kind.DB_FROZEN: _database_frozen,
    Kind.DOVECOT_RESTARTED: _dovecot_restarted,
    Kind.EXPUNGED: _expunged,
    Kind.FLAGS: _flags,
}
