"""A real Prometheus scrapes a real run, with the alerts and the dashboard that are shipped."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.deploy.files import DEPLOY, RULES, alerts, dashboard_expressions, with_variables
from tests.integration.deploy.promql import metrics_named
from tests.servers.dovecot import Dovecot
from tests.servers.process import free_port
from tests.servers.product import OpsMail, wait_for

MAILS = 3
_KINDS = {"_total": "counter", "_bucket": "histogram"}


class Prometheus:
    """Prometheus itself in a temporary folder, scraping one target every second."""

    def __init__(self, folder: Path, target: str) -> None:
        self.port = free_port()
        self._log = folder / "prometheus.log"
        config = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yaml").read_text())
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config["scrape_configs"][0]["static_configs"] = [{"targets": [target]}]
        shutil.copy(RULES, folder)
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={folder / 'prometheus.yaml'}",
                    f"--storage.tsdb.path={folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self.port}",
                ],
                stdout=log,
                stderr=log,
            )

    def ask(self, path: str, **query: str) -> Any:
        """The `data` of an API call; an AssertionError with Prometheus's own words when it refuses."""
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                body = json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(f"{query}: {error.read().decode()}") from error
        assert body["status"] == "success", body
        return body["data"]

    def value(self, expression: str) -> float | None:
        """The only sample of a query, None without one."""
        result = self.ask("query", query=expression)["result"]
        return float(result[0]["value"][1]) if result else None

    def is_up(self) -> bool:
        """Whether it serves and has scraped its target."""
        try:
            return self.value("up") == 1
        except (AssertionError, OSError):
            return False

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(20)


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[OpsMail, Prometheus]]:
    """ops-mail over TLS on Dovecot and SQLite with some mails landed, and Prometheus that has seen it so."""
    folder = tmp_path_factory.mktemp("scrape")
    with Dovecot() as dovecot:
        dovecot.append("ops", "INBOX", b"Subject: a first one\r\n\r\nbefore the start\r\n")
        settings = {
            "IMAP_HOST": "localhost",
            "IMAP_PORT": dovecot.tls_port,
            "IMAP_USERNAME": "ops",
            "IMAP_PASSWORD": dovecot.password,
            "IMAP_CA_FILE": dovecot.ca_file,
            "DATABASE_URL": f"sqlite+aiosqlite:///{folder}/ops-mail.db",
        }
        with OpsMail(folder, settings) as process:
            process.wait_state("idling")
            for number in range(1, MAILS):
                dovecot.append("ops", "INBOX", f"Subject: {number}\r\n\r\n{number}\r\n".encode())
            landed = 'ops_mail_messages_landed_total{mailbox="ops",status="landed"}'
            process.wait_until(lambda: process.metric(landed) == MAILS, "all mails")
            prometheus = Prometheus(folder, f"127.0.0.1:{process.port}")
            try:
                wait_for(prometheus.is_up, "first scrape", 60, prometheus.log)
                wait_for(lambda: prometheus.value(landed) == MAILS, "mails in Prometheus", 30, prometheus.log)
                yield process, prometheus
            finally:
                prometheus.stop()


def test_the_target_is_up_and_tells_what_has_happened(scraped: tuple[OpsMail, Prometheus]) -> None:
    _, prometheus = scraped
    assert prometheus.value('ops_mail_guard_held{mailbox="ops"}') == 1
    assert prometheus.value('ops_mail_epoch{mailbox="ops"}') == 1
    assert prometheus.value('ops_mail_build_info{role="all", job="ops-mail"}') == 1
    assert prometheus.value("time() - ops_mail_last_sync_timestamp_seconds < 300") is not None
    days_left = prometheus.value('(ops_mail_certificate_expiry_timestamp_seconds{mailbox="ops"} - time()) / 86400')
    assert days_left is not None
    assert 0 < days_left < 4000


def test_every_metric_named_by_an_alert_or_the_dashboard_was_scraped(scraped: tuple[OpsMail, Prometheus]) -> None:
    _, prometheus = scraped
    families = prometheus.ask("targets/metadata", match_target='{job="ops-mail"}')
    types = {family["metric"]: family["type"] for family in families}
    # Without any event yet a counter with labels has no sample, but its family is announced all the same.
    expressions = [alert["expr"] for alert in alerts()] + list(dashboard_expressions().values())
    for name in set().union(*map(metrics_named, expressions)):
        kind = next((kind for suffix, kind in _KINDS.items() if name.endswith(suffix)), "gauge")
        plain = name.removesuffix("_total").removesuffix("_bucket")
        # In OpenMetrics a counter's family goes without _total, in the older format with it.
        assert types.get(name, types.get(plain)) == kind, name


def test_prometheus_evaluates_every_alert_and_all_is_well_but_for_a_short_certificate(
    scraped: tuple[OpsMail, Prometheus],
) -> None:
    _, prometheus = scraped

    def rules() -> list[dict[str, Any]]:
        return [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]

    def not_at_rest() -> dict[str, str]:
        return {rule["name"]: rule["state"] for rule in rules() if rule["state"] != "inactive"}

    wait_for(lambda: all(rule["health"] == "ok" for rule in rules()), "evaluation of every rule", 30, prometheus.log)
    assert len(rules()) == len(alerts())
    # The test server's certificate ends within days, and that is noticed; an hour later it would be told. Before the
    # first scrape nothing was there: that alert goes away by itself.
    expected = {"OpsMailCertificateExpiring": "pending"}
    wait_for(lambda: not_at_rest() == expected, "peace", 30, lambda: str(not_at_rest()))


@pytest.mark.parametrize("where", dashboard_expressions())
def test_prometheus_understands_every_query_of_the_dashboard(scraped: tuple[OpsMail, Prometheus], where: str) -> None:
    _, prometheus = scraped
    prometheus.ask("query", query=with_variables(dashboard_expressions()[where]))


def test_the_dashboards_first_rows_show_values(scraped: tuple[OpsMail, Prometheus]) -> None:
    _, prometheus = scraped
    expressions = dashboard_expressions()
    shown = ("Last sync", "Guard", "Last mail", "Instances", "State of each mailbox", "Backlog", "Rows by status")
    empty = [
        name for name in shown if not prometheus.ask("query", query=with_variables(expressions[f"{name} A"]))["result"]
    ]
    assert empty == []
