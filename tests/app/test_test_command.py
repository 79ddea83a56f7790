from __future__ import annotations

from pathlib import Path

import pytest

from app.cli.commands.test import run_all

# Passes from its second run on, as a test does that fails only while the machine is busy.
UNSTEADY = """
from pathlib import Path
def test_unsteady():
    seen = Path(__file__).with_name("seen")
    seen.touch() or seen.write_text(seen.read_text() + "x")
    assert seen.read_text() != "x"
"""
# What this project's own pytest needs starts in seconds, and nothing of it is needed here.
SETTINGS = "[pytest]\nmarkers = slow\naddopts = -p no:pytest-qt -p no:hypothesispytest -p no:anyio\n"
SLOW = UNSTEADY.replace("def ", "import pytest\n@pytest.mark.slow\ndef ") + "def test_quick():\n    pass\n"
BROKEN = "def test_broken():\n    assert False\n"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose tests run in pytest's own process: a worker beside it would cost a second start."""
    monkeypatch.setenv("PYTEST_XDIST_AUTO_NUM_WORKERS", "0")
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    return tmp_path


@pytest.mark.parametrize(("broken", "code", "runs"), [(1, 1, 2), (5, 1, 1)])
def test_a_few_that_failed_run_once_more_alone(
    broken: int, code: int, runs: int, project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (project / "test_unsteady.py").write_text(UNSTEADY)
    for n in range(broken):
        (project / f"test_broken_{n}.py").write_text(BROKEN)
    assert run_all(project, with_slow=False) == code
    named = (
        "UNSTEADY test_unsteady.py::test_unsteady: it failed beside others and passed alone." in capfd.readouterr()[0]
    )
    assert named is (runs == 2)
    assert (project / "seen").read_text() == "x" * runs


@pytest.mark.parametrize("with_slow", [False, True])
def test_slow_tests_run_where_they_are_asked_for_and_what_passes_again_is_no_failure(
    with_slow: bool, project: Path
) -> None:
    (project / "test_slow.py").write_text(SLOW)
    assert run_all(project, with_slow=with_slow) == 0
    assert (project / "seen").exists() is with_slow


def test_a_failure_that_is_gone_runs_nothing_again(project: Path) -> None:
    (project / "test_gone.py").write_text(
        "from pathlib import Path\ndef test_gone():\n    Path(__file__).unlink()\n    assert False\n"
    )
    (project / "test_counted.py").write_text(
        'from pathlib import Path\ndef test_counted():\n    Path(__file__).with_name("runs").open("a").write("x")\n'
    )
    assert run_all(project, with_slow=False) != 0
    assert (project / "runs").read_text() == "x"
