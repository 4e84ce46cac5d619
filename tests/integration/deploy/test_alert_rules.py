"""The alerts are sound, fire when they should, and name only what exists."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.integration.deploy.files import DEPLOY, RULE_TESTS, RULES, RUNBOOKS, alerts, dashboard_expressions
from tests.integration.deploy.promql import KNOWN_VALUES, matchers, metrics_named, program_metrics

ALERTS = {alert["alert"]: alert for alert in alerts()}
EXPRESSIONS = {name: alert["expr"] for name, alert in ALERTS.items()} | dashboard_expressions()


def promtool(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("file", RULE_TESTS, ids=lambda file: file.name)
def test_promtool_runs_the_rules_own_tests(file: Path) -> None:
    done = promtool("test", "rules", file)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_accepts_the_rules_and_the_example_configuration() -> None:
    done = promtool("check", "config", DEPLOY / "prometheus" / "prometheus.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(ALERTS)} rules found" in done.stdout


@pytest.mark.parametrize("name", ALERTS)
def test_each_alert_is_seen_firing_in_the_rules_own_tests(name: str) -> None:
    tests = "".join(file.read_text() for file in RULE_TESTS)
    fires_in_query = f'ALERTS{{alertname="{name}", alertstate="firing",' in tests
    fires_in_words = re.search(rf"alertname: {name}\n\s+eval_time: \w+\n\s+exp_alerts:\n\s+- exp_labels", tests)
    assert fires_in_query or fires_in_words


@pytest.mark.parametrize("alert", ALERTS.values(), ids=ALERTS.keys())
def test_each_alert_says_how_grave_it_is_in_words_and_where_to_read_on(alert: dict[str, Any]) -> None:
    assert alert["labels"]["severity"] in ("critical", "warning")
    assert set(alert["annotations"]) == {"summary", "description", "runbook_url"}
    path, _, anchor = alert["annotations"]["runbook_url"].partition("#")
    assert anchor == alert["alert"].lower()
    for book in (path, RUNBOOKS[1]):
        assert f"\n### {alert['alert']}\n" in (RULES.parents[2] / book).read_text(), book


@pytest.mark.parametrize("where", EXPRESSIONS)
def test_rules_and_dashboard_name_only_metrics_that_exist(where: str) -> None:
    known = program_metrics()
    named = metrics_named(EXPRESSIONS[where])
    assert named or EXPRESSIONS[where].startswith("up{")
    assert named <= known.keys()
    for matcher in matchers(EXPRESSIONS[where]):
        assert matcher.label in known[matcher.metric], matcher
        if matcher.label in KNOWN_VALUES:
            assert set(matcher.values) <= KNOWN_VALUES[matcher.label], matcher


def test_the_check_notices_a_metric_a_label_and_a_value_that_do_not_exist() -> None:
    known = program_metrics()
    assert metrics_named("rate(ops_mail_backlog_total[5m])") - known.keys() == {"ops_mail_backlog_total"}
    (matcher,) = matchers('ops_mail_messages{mailbox="ops"}')
    assert matcher.label not in known[matcher.metric]
    (matcher,) = matchers('ops_mail_messages{status=~"dead|gone"}')
    assert not set(matcher.values) <= KNOWN_VALUES["status"]


def test_every_metric_of_the_program_is_on_the_dashboard_or_in_an_alert() -> None:
    named = set().union(*(metrics_named(expression) for expression in EXPRESSIONS.values()))
    families = {re.sub(r"_(total|bucket|sum|count)$", "", name) for name in named}
    own = {
        re.sub(r"_(total|bucket|sum|count)$", "", name) for name in program_metrics() if name.startswith("ops_mail_")
    }
    assert own <= families
