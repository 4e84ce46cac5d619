"""compose.yaml hangs together: files, secrets, names, and settings that the program accepts."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from ops_mail.settings import load_settings
from tests.integration.deploy.files import DASHBOARD, DEPLOY

COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = ("ops-mail", "ops-mail-standby")
TRIAL_PASSWORD = "only-for-trying-it-out"


@pytest.mark.parametrize("name", SERVICES)
def test_what_a_service_names_is_there(name: str) -> None:
    service = SERVICES[name]
    for secret in service.get("secrets", ()):
        assert secret in COMPOSE["secrets"]
    for network in service["networks"]:
        assert network in COMPOSE["networks"]
    for other in service.get("depends_on", {}):
        assert "healthcheck" in SERVICES[other]
    for volume in service.get("volumes", ()):
        source = volume.split(":")[0]
        assert (DEPLOY / source).exists() if source.startswith(".") else source in COMPOSE["volumes"], volume
    for variable, value in service.get("environment", {}).items():
        if "FILE" in variable:
            assert value.removeprefix("/run/secrets/") in service["secrets"], variable


@pytest.mark.parametrize("name", SERVICES)
def test_images_are_pinned_and_ports_are_this_machines_alone(name: str) -> None:
    assert re.search(r":v?\d+\.\d+\.\d+(\.\d+)?$", SERVICES[name]["image"])
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name].get("ports", ()))


def test_each_secret_is_a_file_and_each_file_a_secret() -> None:
    files = {DEPLOY / secret["file"] for secret in COMPOSE["secrets"].values()}
    assert files == {*(DEPLOY / "compose" / "secrets").iterdir()}


@pytest.mark.parametrize("name", OURS)
def test_ops_mail_is_locked_in_and_has_time_to_stop(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["stop_grace_period"] == "15s"
    assert [entry.split(":")[0] for entry in service["tmpfs"]] == ["/tmp"]


@pytest.mark.parametrize("name", OURS)
def test_the_program_accepts_the_settings_and_they_lead_to_the_other_services(name: str) -> None:
    secrets = str(DEPLOY / "compose" / "secrets")
    environment = {key: value.replace("/run/secrets", secrets) for key, value in SERVICES[name]["environment"].items()}
    settings = load_settings(environment, env_file=None)
    (mailbox,) = settings.mailboxes
    assert mailbox.host in SERVICES
    assert mailbox.password.reveal() == TRIAL_PASSWORD
    url = settings.store.database_url.reveal()
    assert url == f"mysql+aiomysql://ops_mail:{TRIAL_PASSWORD}@mariadb:3306/opsmail"
    assert "GRANT SELECT, INSERT, UPDATE, DELETE ON opsmail.*" in (DEPLOY / "mysql" / "grants.sql").read_text()


def test_prometheus_scrapes_both_and_accepts_its_configuration(tmp_path: Path) -> None:
    config = DEPLOY / "compose" / "prometheus.yaml"
    # In the container both files lie in one folder.
    for file in (config, DEPLOY / "prometheus" / "ops-mail.rules.yaml"):
        (tmp_path / file.name).write_text(file.read_text())
    subprocess.run(["promtool", "check", "config", tmp_path / config.name], check=True, capture_output=True)
    (scrape,) = yaml.safe_load(config.read_text())["scrape_configs"]
    assert scrape["static_configs"] == [{"targets": [f"{name}:8080" for name in OURS]}]


def test_grafana_finds_prometheus_and_the_dashboard() -> None:
    provisioning = DEPLOY / "grafana" / "provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources" / "prometheus.yaml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "ops-mail.yaml").read_text())["providers"]
    mounted = f"./grafana/{DASHBOARD.name}:{provider['options']['path']}/{DASHBOARD.name}:ro"
    assert mounted in SERVICES["grafana"]["volumes"]


def test_dovecot_understands_its_configuration_and_takes_the_password() -> None:
    config = DEPLOY / "compose" / "dovecot.conf"
    done = subprocess.run(["doveconf", "-n", "-c", config], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"args = password={TRIAL_PASSWORD}\n" in config.read_text()
