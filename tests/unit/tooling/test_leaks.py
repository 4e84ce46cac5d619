"""A test that leaves something behind fails; one that cleans up does not."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[3]

CLEAN = """
import asyncio, socket, subprocess, sys, threading
import pytest

@pytest.fixture(scope="session")
def server():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.communicate(b"\\n")

def test_late_session_server(request):
    assert request.getfixturevalue("server").poll() is None

def test_all_closed():
    with socket.socket():
        thread = threading.Thread(target=print)
        thread.start()
        thread.join()

async def test_tasks_awaited(server):
    task = asyncio.create_task(asyncio.to_thread(sum, [1]))
    assert await task == 1
"""

LEAKING = """
import asyncio, socket, subprocess, sys, threading, time

kept = []

async def test_task():
    kept.append(asyncio.create_task(asyncio.sleep(60)))

def test_thread():
    threading.Thread(target=time.sleep, args=(6,), name="stray", daemon=True).start()

def test_process():
    kept.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))

def test_socket():
    kept.append(socket.socket())

def test_socket_that_only_the_garbage_collector_would_close():
    cycle = [socket.socket()]
    cycle.append(cycle)

def test_socket_without_a_reference():
    socket.socket()
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest('pytest_plugins = ["tests.leaks"]')
    pytester.makepyprojecttoml(f"""
        [tool.pytest.ini_options]
        asyncio_mode = "auto"
        asyncio_default_fixture_loop_scope = "function"
        filterwarnings = ["error"]
        leak_grace_seconds = "0.2"
        pythonpath = ["{ROOT}"]
    """)
    return pytester


def test_tests_that_clean_up_pass_and_a_session_server_belongs_to_the_session(suite: pytest.Pytester) -> None:
    suite.makepyfile(CLEAN)
    suite.runpytest_subprocess().assert_outcomes(passed=3)


def test_what_is_left_behind_fails_the_test_and_is_named(suite: pytest.Pytester) -> None:
    suite.makepyfile(LEAKING)
    result = suite.runpytest_subprocess("-rfE")
    # All but the last are found when the test itself is over: an error of its teardown.
    result.assert_outcomes(passed=5, failed=1, errors=5)
    result.stdout.fnmatch_lines_random(
        [
            "tasks left behind: *sleep*",
            "left behind: thread stray",
            "left behind: process *input()*",
            "left behind: socket socket:*",
            "ERROR *::test_socket_that_only_the_garbage_collector_would_close*",
            "*PytestUnraisableExceptionWarning: Exception ignored in: <socket.socket *",
        ]
    )
