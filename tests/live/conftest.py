"""The environments, checkpoints and runs that the live tests share."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.environment import python_of
from tests.live.jobs import GREEDY, Job
from tests.live.observing import mapped
from tests.live.serving import HARNESS, Runs, plain_environment
from tests.live.trees import tree


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the tiny checkpoints, freshly written."""
    folder = tmp_path_factory.mktemp("checkpoints")
    command = [str(python_of("0.5.9")), str(HARNESS / "checkpoints.py"), str(folder)]
    subprocess.run(command, env=plain_environment(), check=True)
    return folder


@pytest.fixture(scope="session")
def runs(
    request: pytest.FixtureRequest, checkpoints: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runs]:
    """Return the runs of this session; those that the chosen tests name start at once."""
    jobs = named_jobs(request.session.items)
    kinds = {(job.release, job.tree): None for job in jobs if job.tree}
    trees = {kind: tree(*kind, tmp_path_factory.mktemp("-".join(kind))) for kind in kinds}
    for release in {job.release for job in jobs if job.traced}:
        mapped(release)  # here, once: not in the threads that start the jobs
    runs = Runs(checkpoints, lambda job: tmp_path_factory.mktemp(str(job)), trees)
    for job in jobs:
        runs.start(job)
    yield runs
    runs.close()


def named_jobs(items: list[pytest.Item]) -> list[Job]:
    """Return the jobs in the parameters of tests, and the plain decoding they compare with."""
    calls = [getattr(item, "callspec", None) for item in items]
    values = [value for call in calls if call is not None for value in call.params.values()]
    jobs = [value for value in values if isinstance(value, Job)]
    return [*(GREEDY[release] for release in {job.release: None for job in jobs}), *jobs]
