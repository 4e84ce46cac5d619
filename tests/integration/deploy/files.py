"""The files under deploy/, read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "deploy"
RULES = DEPLOY / "prometheus" / "ops-mail.rules.yaml"
RULE_TESTS = sorted(DEPLOY.glob("prometheus/*.test.yaml"))
DASHBOARD = DEPLOY / "grafana" / "ops-mail.json"
RUNBOOKS = (DEPLOY / "RUNBOOK.md", DEPLOY / "RUNBOOK.zh-CN.md")


def alerts() -> list[dict[str, Any]]:
    """Every alert of the rule file, as it stands there."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def dashboard_expressions() -> dict[str, str]:
    """Where it stands → PromQL, from panels, annotations and variables of the dashboard."""
    dashboard = json.loads(DASHBOARD.read_text())
    found = {
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in dashboard["panels"]
        for target in panel.get("targets", ())
    }
    found |= {note["name"]: note["expr"] for note in dashboard["annotations"]["list"]}
    for variable in dashboard["templating"]["list"]:
        inside = re.fullmatch(r"label_values\((.*), (\w+)\)", variable.get("definition", ""))
        if inside is not None:
            found[f"variable {variable['name']}"] = f"count by ({inside[2]}) ({inside[1]})"
    return found


def with_variables(expression: str) -> str:
    """A dashboard's expression with Grafana's variables filled in."""
    for name, value in {"$__rate_interval": "5m", "$job": ".*", "$mailbox": ".*"}.items():
        expression = expression.replace(name, value)
    return expression
