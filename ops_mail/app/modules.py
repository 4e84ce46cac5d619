"""Which parts run under which role, as the first log line and the page tell it."""

from __future__ import annotations

from dataclasses import dataclass

from ops_mail.settings import CallableTarget, Role, Settings


@dataclass(frozen=True, slots=True)
class Modules:
    """True = this process runs it."""

    listener: bool
    handlers: bool
    maintenance: bool

    def words(self) -> dict[str, str]:
        """`on` or `off` by the part's name."""
        parts = {"listener": self.listener, "handlers": self.handlers, "maintenance": self.maintenance}
        return {name: "on" if on else "off" for name, on in parts.items()}


def modules_for(settings: Settings) -> Modules:
    """A consumer never opens IMAP and never takes the guard; without a handler nothing is handled."""
    listens = settings.enabled and settings.role is not Role.CONSUMER
    handles = settings.enabled and settings.handler.target is not None
    return Modules(listener=listens, handlers=handles, maintenance=settings.enabled)


def what_is_used(settings: Settings) -> dict[str, str]:
    """The handler's name and the kind of place for contents, for the first log line: no address, and so no secret."""
    target = settings.handler.target
    named = str(target) if isinstance(target, CallableTarget) else "none" if target is None else "webhook"
    return {"handler": named, "store": settings.store.store_url.partition(":")[0]}
