"""The Grafana dashboard is one that Grafana can lay out."""

from __future__ import annotations

import json
from itertools import pairwise

from ops_mail.core.states import State
from tests.integration.deploy.files import DASHBOARD, dashboard_expressions

BOARD = json.loads(DASHBOARD.read_text())


def test_every_panel_has_a_title_a_place_of_its_own_and_the_chosen_data_source() -> None:
    panels = BOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        assert panel["title"]
        assert place["x"] + place["w"] <= 24
        mine = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not mine & cells, panel["title"]
        cells |= mine
        for target in panel.get("targets", ()):
            assert target["datasource"]["uid"] == "${datasource}"


def test_the_variables_are_used() -> None:
    names = [variable["name"] for variable in BOARD["templating"]["list"]]
    assert names == ["datasource", "job", "mailbox"]
    queries = " ".join(dashboard_expressions().values())
    assert "$job" in queries
    assert "$mailbox" in queries


def test_the_timeline_shows_each_state_by_its_name() -> None:
    (timeline,) = [panel for panel in BOARD["panels"] if panel["type"] == "state-timeline"]
    options = timeline["fieldConfig"]["defaults"]["mappings"][0]["options"]
    assert [options[str(index)]["text"] for index in range(len(options))] == list(State)
    (expression,) = [target["expr"] for target in timeline["targets"]]
    places = [expression.index(f'state="{state}"}} == 1) * {index}') for index, state in enumerate(State)]
    assert all(before < after for before, after in pairwise(places))
