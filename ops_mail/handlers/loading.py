"""From OPS_MAIL_HANDLER to something that can be run, or to one clear line about what is wrong with it."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass

from ops_mail.errors import ConfigError
from ops_mail.handlers.jobs import Executor, Handler
from ops_mail.handlers.second_loop import LoopExecutor
from ops_mail.handlers.threads import ThreadExecutor
from ops_mail.handlers.webhook import WebhookHandler
from ops_mail.settings import CallableTarget, HandlerSettings, WebhookTarget

_SETTING = "OPS_MAIL_HANDLER"


@dataclass(frozen=True, slots=True)
class LoadedHandler:
    """`name` is what attempts are recorded under. `executor` makes what runs it."""

    name: str
    in_threads: bool
    executor: Callable[[], Executor]


def load_handler(settings: HandlerSettings) -> LoadedHandler | None:
    """The handler; None without one. Raises ConfigError when it cannot be what it should be.

    Importing a module runs its code, so this is done once, at the start. The current folder is looked in last.
    """
    target = settings.target
    if target is None:
        return None
    if isinstance(target, WebhookTarget):
        webhook = WebhookHandler(target, settings.timeout_seconds)
        return LoadedHandler("webhook", in_threads=False, executor=lambda: LoopExecutor(webhook, webhook.close))
    return loaded_callable(str(target), _find(target))


def loaded_callable(name: str, handler: Handler) -> LoadedHandler:
    """A function as a handler: async ones for the handlers' loop, others for threads. Raises ConfigError."""
    problem = problem_of(handler)
    if problem is not None:
        raise ConfigError([f"{_SETTING}: {name} {problem}"])
    if is_async(handler):
        return LoadedHandler(name, in_threads=False, executor=lambda: LoopExecutor(handler))
    return LoadedHandler(name, in_threads=True, executor=lambda: ThreadExecutor(handler))


def _find(target: CallableTarget) -> Handler:
    here = os.getcwd()  # noqa: PTH109 - sys.path holds text
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
    try:
        found: object = importlib.import_module(target.module)
    # Importing runs somebody else's code; whatever comes out of it, SystemExit included, is told as a wrong setting.
    except (Exception, SystemExit) as error:
        raise ConfigError([f"{_SETTING}: {_import_problem(target, error)}"]) from error
    for name in target.attribute.split("."):
        if not hasattr(found, name):
            raise ConfigError([f"{_SETTING}: {target.module} has no {target.attribute!r}"])
        found = getattr(found, name)
    if not callable(found):
        raise ConfigError([f"{_SETTING}: {target} is not callable, it is of type {type(found).__name__}"])
    return found


def _import_problem(target: CallableTarget, error: BaseException) -> str:
    missing = getattr(error, "name", None)
    if isinstance(error, ModuleNotFoundError) and missing and (target.module + ".").startswith(f"{missing}."):
        return f"there is no module {missing!r}; is its folder on PYTHONPATH, or the current one?"
    text = str(error).strip().splitlines()
    detail = f": {text[0][:200]}" if text else ""
    return f"importing {target.module!r} failed with {type(error).__name__}{detail}"


def is_async(handler: object) -> bool:
    """Whether it is run on the handlers' event loop."""
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(getattr(handler, "__call__", None))  # noqa: B004 - asks about the method itself


def problem_of(handler: object) -> str | None:
    """What keeps `handler` from being called with one mail; None if nothing does."""
    if inspect.isclass(handler):
        return "is a class: name a function, or an instance with __call__"
    if inspect.isasyncgenfunction(handler) or inspect.isgeneratorfunction(handler):
        return "is a generator: it must return, not yield"
    try:
        signature = inspect.signature(handler)  # type: ignore[arg-type] # it is callable, which `object` does not say
    except (TypeError, ValueError):
        return None  # written in C, without a signature
    try:
        signature.bind(object())
    except TypeError as error:
        return f"cannot be called with one mail: {error} (its signature is {signature})"
    return None
