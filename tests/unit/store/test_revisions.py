from __future__ import annotations

from alembic.script import ScriptDirectory

from ops_mail.store.migrate import REVISIONS
from ops_mail.store.migrations.apply import configuration


def test_the_revisions_are_those_of_the_folder_in_one_line() -> None:
    scripts = ScriptDirectory.from_config(configuration())
    assert scripts.get_heads() == [REVISIONS[-1]]
    assert tuple(script.revision for script in scripts.walk_revisions())[::-1] == REVISIONS
