"""Work on many files comes back in order, whatever happens to the processes."""

from __future__ import annotations

import json
import os
import signal
import time

from ops_mail.cli.many_files import Outcome, in_order


def _work(name: str) -> Outcome:
    if name == "killer":
        os.kill(os.getpid(), signal.SIGKILL)
    if name.endswith("7"):
        time.sleep(0.01)  # a slow one must not be overtaken
    return Outcome(f"{name}\n".encode(), failed=name.endswith("3"))


def test_the_order_is_that_of_the_names() -> None:
    names = [str(number) for number in range(300)]
    outcomes = list(in_order(_work, names))
    assert [outcome.line.decode().strip() for outcome in outcomes] == names
    assert sum(outcome.failed for outcome in outcomes) == 30


def test_few_names_need_no_other_process() -> None:
    pids: list[int] = []

    def note(name: str) -> Outcome:
        pids.append(os.getpid())
        return Outcome(b"", failed=False)

    assert len(list(in_order(note, ["a", "b"]))) == 2
    assert set(pids) == {os.getpid()}


def test_a_name_that_kills_its_process_is_reported_alone() -> None:
    names = [str(number) for number in range(100)]
    names[50] = "killer"
    outcomes = list(in_order(_work, names))
    assert len(outcomes) == 100
    killed = json.loads(outcomes[50].line)
    assert killed == {"file": "killer", "error": "the parser was killed, probably for want of memory"}
    assert [outcome.line.decode().strip() for outcome in outcomes[51:]] == names[51:]
    assert outcomes[49].line == b"49\n"


def test_giving_up_early_leaves_no_process_behind() -> None:
    stream = in_order(_work, [str(number) for number in range(500)])
    assert next(stream).line == b"0\n"
    stream.close()  # type: ignore[attr-defined] # in_order is a generator
