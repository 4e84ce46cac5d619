"""The manifests are valid, complete, belong together, and hold what the program accepts."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from ops_mail.settings import Role, load_settings
from tests.integration.deploy.files import DEPLOY, RULES
from tests.integration.deploy.kustomize import Manifest, build

K8S = DEPLOY / "k8s"
EXAMPLE = build(K8S / "example")
PODS = dict(EXAMPLE.pods())
VERSIONS = ("1.29", kubernetes_validate.latest_version())
OF_THE_OPERATOR = ("ServiceMonitor", "PrometheusRule")  # no schema of Kubernetes' own
SECRETS = "/run/secrets/ops-mail"


def identity(manifest: Manifest) -> str:
    return f"{manifest['kind']}/{manifest['metadata']['name']}"


def test_every_file_is_part_of_the_example() -> None:
    assert {*K8S.glob("*/*.yaml")} == {file.resolve() for file in EXAMPLE.files}


def test_no_two_manifests_are_the_same_thing() -> None:
    names = [identity(manifest) for manifest in EXAMPLE.manifests]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "manifest", [each for each in EXAMPLE.manifests if each["kind"] not in OF_THE_OPERATOR], ids=identity
)
def test_the_schema_of_kubernetes_accepts(manifest: Manifest, version: str) -> None:
    kubernetes_validate.validate(manifest, version, strict=True)


def test_a_misspelt_field_is_noticed() -> None:
    manifest = build(K8S / "base").named("Deployment", "ops-mail")
    manifest["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(manifest, VERSIONS[-1], strict=True)


@pytest.mark.parametrize("name", PODS)
def test_each_pod_meets_the_restricted_profile_and_more(name: str) -> None:
    pod = PODS[name]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"].keys() == {"requests", "limits"}
        assert "memory" in container["resources"]["limits"]
        mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        assert mounts.keys() == volumes.keys()
        assert mounts["tmp"]["mountPath"] == "/tmp"
        assert volumes["tmp"]["emptyDir"].keys() == {"sizeLimit"}, "on disk, with a limit"
        assert "subPath" not in mounts["secrets"], "a changed secret would never arrive"


@pytest.mark.parametrize("name", PODS)
def test_what_a_pod_refers_to_is_there(name: str) -> None:
    pod = PODS[name]["spec"]
    EXAMPLE.named("ServiceAccount", pod["serviceAccountName"])
    for volume in pod["volumes"]:
        if "secret" in volume:
            EXAMPLE.named("Secret", volume["secret"]["secretName"])
    for container in pod["containers"]:
        for source in container.get("envFrom", ()):
            EXAMPLE.named("ConfigMap", source["configMapRef"]["name"])
        ports = {port["name"]: port["containerPort"] for port in container.get("ports", ())}
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            if probe in container:
                expected = "/readyz" if probe == "readinessProbe" else "/healthz"
                assert container[probe]["httpGet"]["path"] == expected
                assert ports[container[probe]["httpGet"]["port"]] == 8080


@pytest.mark.parametrize("name", ["ops-mail", "ops-mail-consumer"])
def test_the_deployments_have_all_three_probes_and_time_to_stop(name: str) -> None:
    pod = PODS[name]["spec"]
    (container,) = pod["containers"]
    assert {"startupProbe", "livenessProbe", "readinessProbe"} <= container.keys()
    grace = float(EXAMPLE.named("ConfigMap", "ops-mail-settings")["data"]["OPS_MAIL_SHUTDOWN_GRACE_SECONDS"])
    assert pod["terminationGracePeriodSeconds"] >= grace + 5


def chosen(selector: Manifest) -> set[str]:
    """The pods that a selector's matchLabels choose."""
    wanted = selector.get("matchLabels", selector).items()
    return {name for name, pod in PODS.items() if wanted <= pod["metadata"]["labels"].items()}


def test_selectors_choose_what_they_are_meant_for() -> None:
    named = EXAMPLE.named
    for name in ("ops-mail", "ops-mail-consumer"):
        assert chosen(named("Deployment", name)["spec"]["selector"]) == {name}
        assert chosen(named("Service", name)["spec"]["selector"]) == {name}
        assert chosen(named("PodDisruptionBudget", name)["spec"]["selector"]) == {name}
        (spread,) = PODS[name]["spec"]["topologySpreadConstraints"]
        assert chosen(spread["labelSelector"]) == {name}
    assert chosen(named("NetworkPolicy", "ops-mail")["spec"]["podSelector"]) == PODS.keys()
    assert chosen(named("NetworkPolicy", "ops-mail-imap")["spec"]["podSelector"]) == {"ops-mail"}
    target = named("HorizontalPodAutoscaler", "ops-mail-consumer")["spec"]["scaleTargetRef"]
    assert "replicas" not in named(target["kind"], target["name"])["spec"], "the autoscaler's number would be undone"
    assert named("Deployment", "ops-mail")["spec"]["replicas"] == 2


def test_prometheus_finds_both_services() -> None:
    monitor = EXAMPLE.named("ServiceMonitor", "ops-mail")["spec"]
    wanted = monitor["selector"]["matchLabels"].items()
    services = [service for service in EXAMPLE.of_kind("Service") if wanted <= service["metadata"]["labels"].items()]
    assert [service["metadata"]["name"] for service in services] == ["ops-mail", "ops-mail-consumer"]
    for service in services:
        assert monitor["endpoints"][0]["port"] in {port["name"] for port in service["spec"]["ports"]}


def test_the_prometheus_rule_is_the_rule_file(tmp_path: Path) -> None:
    manifest = EXAMPLE.named("PrometheusRule", "ops-mail")
    assert manifest["spec"] == yaml.safe_load(RULES.read_text())
    generated = tmp_path / "prometheusrule.yaml"
    subprocess.run(["bash", K8S / "monitoring" / "generate.sh", generated], check=True)
    assert generated.read_text() == (K8S / "monitoring" / "prometheusrule.yaml").read_text(), "run generate.sh"


@pytest.mark.parametrize(("name", "role"), [("ops-mail", Role.ALL), ("ops-mail-consumer", Role.CONSUMER)])
def test_the_program_accepts_the_settings_and_reads_the_mounted_secrets(name: str, role: Role, tmp_path: Path) -> None:
    settings = load_settings(environment_of(name, tmp_path), env_file=None)
    assert settings.role is role
    assert settings.store.database_url.reveal().startswith("mysql+aiomysql://")
    assert [mailbox.host for mailbox in settings.mailboxes] == ["imap.example.org"]


def test_the_migration_runs_a_command_that_exists_with_a_secret_that_is_mounted(tmp_path: Path) -> None:
    settings = load_settings(environment_of("ops-mail-migrate", tmp_path), env_file=None, mailboxes_required=False)
    assert settings.store.database_url.reveal().startswith("mysql+aiomysql://")
    (container,) = PODS["ops-mail-migrate"]["spec"]["containers"]
    assert container["args"] == ["migrate"]


def environment_of(name: str, folder: Path) -> dict[str, str]:
    """A container's variables; the secret is mounted at `folder`."""
    for key, value in EXAMPLE.named("Secret", "ops-mail-secrets")["stringData"].items():
        (folder / key).write_text(value)
    (container,) = PODS[name]["spec"]["containers"]
    environment: dict[str, Any] = {}
    for source in container.get("envFrom", ()):
        environment |= EXAMPLE.named("ConfigMap", source["configMapRef"]["name"])["data"]
    for variable in container.get("env", ()):
        environment[variable["name"]] = variable.get("value", "from-the-pod")
    assert all(isinstance(value, str) for value in environment.values()), "a ConfigMap holds strings"
    return {key: re.sub(f"^{SECRETS}", str(folder), value) for key, value in environment.items()}
