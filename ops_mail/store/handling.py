"""The store as handlers see it: claim, load, keep, write down. Works on the same database as `Store`."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlalchemy.ext.asyncio import AsyncConnection

from ops_mail.core.outcome import Verdict
from ops_mail.errors import StoreError, StoreUnavailable
from ops_mail.store import attempts, claims
from ops_mail.store.attempts import Ended, NotOursError
from ops_mail.store.claims import Claim, ClaimWish
from ops_mail.store.store import Store
from ops_mail.store.stored_mail import StoredMail, load_mails

HEARTBEAT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Unwritten:
    """An end that is not in the tables. `error` None: the claim is no longer ours, the mail is in other hands.

    `alone`: the database did not answer, but something else could be written right after: it may be this end's fault.
    """

    end: Ended
    error: StoreError | None
    alone: bool = False


class HandlingStore:
    """Each call is bounded in time and raises a StoreError, as those of `Store`."""

    def __init__(self, store: Store, *, in_order: bool, max_attempts: int) -> None:
        self._database = store.database
        self._blobs = store.blobs
        self._claim = claims.claim_in_order if in_order else claims.claim
        self._max_attempts = max_attempts
        self.lease_seconds = store.database.lease_seconds

    async def anything_due(self) -> bool:
        """Whether a claim could find something; takes no lock."""
        async with self._database.reading("looking for mails to handle") as connection:
            return await claims.anything_due(connection)

    async def claim(self, wish: ClaimWish) -> list[Claim]:
        """Takes mails; the wish's lease_id is replaced by a fresh one."""
        fresh = replace(wish, lease_id=uuid.uuid4().hex)

        async def work(connection: AsyncConnection) -> list[Claim]:
            return await self._claim(connection, fresh, self.lease_seconds)

        return await self._database.writing("claiming mails", work)

    async def load(self, ids: Sequence[int]) -> dict[int, StoredMail]:
        """The mails by id."""
        async with self._database.reading("reading mails") as connection:
            return await load_mails(connection, ids)

    def content(self, sha256: str) -> AsyncIterator[bytes]:
        """As BlobStore.open."""
        return self._blobs.open(sha256)

    async def renew(self, held: Sequence[Claim]) -> set[str]:
        """Prolongs leases; the `lost_key`s of those that are somebody else's by now."""
        work = partial(claims.renew, held=held, lease_seconds=self.lease_seconds)
        return await self._database.writing("renewing handler leases", work, HEARTBEAT_SECONDS)

    async def give_back(self, unstarted: Sequence[Claim]) -> None:
        """Undoes claims whose handler was never started."""
        await self._database.writing("giving mails back", partial(claims.give_back, claims=unstarted))

    async def write(self, ends: Sequence[Ended]) -> list[Unwritten]:
        """Writes down how attempts ended, and returns those that could not be written."""
        left = [end for end in ends if end.writes]
        group = [end for end in ends if not end.writes]
        if group:
            try:
                await self._database.writing("writing outcomes", partial(attempts.write_group, ends=group))
            except StoreUnavailable as error:
                if len(ends) == 1 or not await self._can_write():
                    return [Unwritten(end, error) for end in ends]
                left = [*group, *left]
            except (NotOursError, StoreError):  # one by one: the others must not pay for it
                left = [*group, *left]
        unwritten: list[Unwritten] = []
        for index, end in enumerate(left):
            try:
                if not await self._database.writing("writing an outcome", partial(attempts.write_one, end=end)):
                    unwritten.append(Unwritten(end, None))
            except StoreUnavailable as error:
                # What is behind it has to wait either way, but not for one like it once more: that is for another call.
                alone, behind = await self._can_write(), left[index + 1 :]
                return [*unwritten, Unwritten(end, error, alone), *(Unwritten(late, error) for late in behind)]
            except StoreError as error:
                unwritten.append(Unwritten(end, error))
        return unwritten

    async def _can_write(self) -> bool:
        try:
            await self._database.writing("asking whether it can be written to", attempts.write_nothing)
        except StoreError:
            return False
        return True

    async def recover_stale(self) -> list[Verdict]:
        """Ends attempts whose leases ran out, at most 100."""
        work = partial(attempts.recover_stale, max_attempts=self._max_attempts)
        return await self._database.writing("recovering stale mails", work)
