"""How the agent gets into a process, and that it stays out of others."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

from tests.trace.agent.toy import AGENT, ENTER, Toy

SOURCES = sorted(AGENT.rglob("*.py"))
ONE_CYCLE = "from toy.worker import Batch, Worker\nprint(Worker().cycle(Batch(1)))"


def test_a_sitecustomize_further_down_the_path_still_runs(plain_toy: Toy) -> None:
    plain_toy.write("sitecustomize.py", "import builtins\nbuiltins.site_ran = __name__\n")
    done = plain_toy.trace(f"print(site_ran)\n{ONE_CYCLE}")
    assert done.stdout == "sitecustomize\n1\n"
    assert plain_toy.counts()[1, ENTER] == 1


def test_the_entry_point_of_the_plugins_starts_the_agent_once(plain_toy: Toy) -> None:
    """A process whose site did not load it: the folder is on the path later only."""
    done = plain_toy.trace(
        f"""
import sys
sys.path.insert(0, {str(AGENT / "inject")!r})
from importlib.metadata import entry_points
(point,) = [one for one in entry_points(group="sglang.srt.plugins") if one.name == "specmap"]
import toy.worker
point.load()()
point.load()()
{ONE_CYCLE}
""",
        PYTHONPATH=str(plain_toy.folder / "src"),
    )
    assert done.stdout == "1\n"
    assert plain_toy.counts()[1, ENTER] == 1


def test_the_folder_is_one_distribution() -> None:
    (found,) = distributions(path=[str(AGENT / "inject")])
    assert found.metadata["Name"] == "specmap-inject"
    (point,) = found.entry_points
    assert (point.group, point.value) == ("sglang.srt.plugins", "specmap_inject:install")


def test_ranks_that_are_spawned_are_traced_each(plain_toy: Toy) -> None:
    plain_toy.write(
        "toy/ranks.py",
        """
        from toy.worker import Batch, Worker
        def rank(number):
            worker = Worker(tp_rank=number)
            for _ in range(number + 1):
                worker.cycle(Batch(1))
        """,
    )
    plain_toy.trace("""
        import multiprocessing as mp
        from toy.ranks import rank
        if __name__ == "__main__":
            context = mp.get_context("spawn")
            ranks = [context.Process(target=rank, args=(number,)) for number in (0, 1)]
            [one.start() for one in ranks]
            [one.join() for one in ranks]
            assert [one.exitcode for one in ranks] == [0, 0]
    """)
    assert [path.name[:11] for path in plain_toy.spools()] == ["rank-0-0-0-", "rank-1-0-0-"]


def test_nothing_but_the_door_is_loaded_before_the_package() -> None:
    """Modules that Python does not load by itself cost every process of the server."""
    report = "import sys; print(*sorted(sys.modules))"
    plan = str(Path(__file__).parent / "plan.txt")
    loaded = []
    for path in ("", str(AGENT / "inject")):
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "SPECMAP_TRACE": "1",
                       "SPECMAP_PLAN": plan}  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-s", "-c", report], env=environment, capture_output=True,
            text=True, check=True,
        )  # fmt: skip
        loaded.append(set(done.stdout.split()))
    assert loaded[1] - loaded[0] - {"__future__"} == {
        "sitecustomize", "specmap_inject", "specmap_agent", "specmap_agent.door",
    }  # fmt: skip


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_the_agent_is_python_3_10_and_stands_alone(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"), feature_version=(3, 10))
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            imported.add((node.module or "").partition(".")[0])
    foreign = imported - sys.stdlib_module_names - {"specmap_inject"}
    assert foreign == ({"hatchling"} if path.name == "build_ring.py" else set())
