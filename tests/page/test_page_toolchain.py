"""The front end's own checks, and that the shipped bundle is what its sources give."""

from __future__ import annotations

import base64
import gzip
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from specmap.report.page.reference import vectors
from tests.page.environment import BUNDLE
from tests.page.pages import Page

pytestmark = pytest.mark.page

Npm = Callable[..., subprocess.CompletedProcess[str]]
SETTINGS, SEED = 200, 7


def test_the_types_hold(npm: Npm) -> None:
    done = npm("npm", "run", "--silent", "types")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_logic_holds(npm: Npm) -> None:
    done = npm("npm", "test", "--silent")
    assert done.returncode == 0, done.stdout[-4000:]
    counts = dict(re.findall(r"# (pass|fail|skipped|todo) (\d+)", done.stdout))
    assert int(counts["pass"]) > 20
    assert {counts[name] for name in ("fail", "skipped", "todo")} == {"0"}


def unzipped(script: str) -> tuple[str, bytes]:
    """Return a script without the packed one inside it, and that one: gzip differs by zlib."""
    found = re.search(r'"(H4sI[A-Za-z0-9+/=]+)"', script)
    assert found is not None
    return script.replace(found[1], ""), gzip.decompress(base64.b64decode(found[1]))


def test_the_bundle_is_what_the_sources_give(npm: Npm, tmp_path: Path) -> None:
    done = npm("node", "build.mjs", str(tmp_path))
    assert done.returncode == 0, done.stderr
    for name in ("page.css", "SOURCES.json"):
        assert (tmp_path / name).read_bytes() == (BUNDLE / name).read_bytes(), name
    fresh, shipped = ((folder / "page.js").read_text("utf-8") for folder in (tmp_path, BUNDLE))
    assert unzipped(fresh) == unzipped(shipped)


def test_the_lockfile_names_no_registry() -> None:
    lock = (BUNDLE.parent / "app" / "package-lock.json").read_text("utf-8")
    packages = json.loads(lock)["packages"]
    assert len(packages) > 5
    assert all("resolved" not in package for package in packages.values())
    assert all("integrity" in package for name, package in packages.items() if name)


def test_verdicts_equal_python_s_on_random_settings(
    npm: Npm, release_page: Page, tmp_path: Path
) -> None:
    side = release_page.side
    name = side["release"]
    (tmp_path / f"{name}.json").write_text(json.dumps(release_page.data), "utf-8")
    made = json.dumps(list(vectors(side, SEED, SETTINGS)))
    (tmp_path / f"{name}.vectors.json").write_text(made, "utf-8")
    done = npm("node", "test.mjs", str(tmp_path))
    assert done.returncode == 0, done.stdout[-4000:]
    assert "# pass 1" in done.stdout
