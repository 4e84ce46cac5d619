"""Which metrics an expression of PromQL names, and which the program has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import Metric

from ops_mail.core.mail import MessageStatus
from ops_mail.core.states import State
from ops_mail.errors import Failure
from ops_mail.metrics import Metrics
from ops_mail.settings import Role

_NAME = re.compile(r"\b(?:ops_mail|process|python)_[a-z0-9_]+\b")
_SELECTOR = re.compile(r"(\b(?:ops_mail|process|python)_[a-z0-9_]+)\s*\{([^}]*)\}")
_MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
_ADDED = {"job", "instance", "namespace", "le"}  # by Prometheus itself, by the scrape's settings, by histograms

KNOWN_VALUES: Mapping[str, frozenset[str]] = {
    "state": frozenset(State),
    "status": frozenset(MessageStatus),
    "reason": frozenset(Failure),
    "role": frozenset(role.value for role in Role),
}
_SUFFIXES = {
    "counter": ("_total",),
    "histogram": ("_bucket", "_sum", "_count"),
}


@dataclass(frozen=True)
class Matcher:
    """`label=~"a|b"` of one metric."""

    metric: str
    label: str
    values: tuple[str, ...]


def metrics_named(expression: str) -> set[str]:
    """Every sample name of the program's own metrics in `expression`."""
    return set(_NAME.findall(expression))


def matchers(expression: str) -> Iterator[Matcher]:
    """The label matchers in `expression`, those with a dashboard's variable left out."""
    for metric, inside in _SELECTOR.findall(expression):
        for label, _, value in _MATCHER.findall(inside):
            if "$" not in value:
                yield Matcher(metric, label, tuple(value.split("|")))


def sample_names(family: Metric) -> set[str]:
    """The names under which a family's samples are scraped."""
    return {family.name + suffix for suffix in _SUFFIXES.get(family.type, ("",))}


def program_metrics() -> dict[str, set[str]]:
    """Sample name → label names of everything the program may export."""
    metrics = Metrics()
    labels = {
        family.name: set(getattr(collector, "_labelnames", ()))
        for collector in vars(metrics).values()
        if hasattr(collector, "describe")
        for family in collector.describe()
    }
    return {
        name: labels.get(family.name, set()) | _ADDED
        for family in metrics.registry.collect()
        for name in sample_names(family)
    }
