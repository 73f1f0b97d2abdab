from __future__ import annotations

import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Build the sdist, and the wheel from that sdist, as an installer would."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)],
        check=True, capture_output=True,
    )  # fmt: skip
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return {"sdist": sdist, "wheel": wheel}


def rule_files() -> set[str]:
    """Return the files of rules/ that git does not ignore, or all of them without git."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "rules"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    tracked = set(listed.stdout.split()) if listed.returncode == 0 else set()
    on_disk = {str(p.relative_to(ROOT)) for p in (ROOT / "rules").rglob("*") if p.is_file()}
    return tracked or {name for name in on_disk if "__pycache__" not in name}


def test_the_wheel_carries_every_rule(built: dict[str, Path]) -> None:
    with zipfile.ZipFile(built["wheel"]) as archive:
        packed = {name for name in archive.namelist() if name.startswith("specmap/_rules/")}
    assert packed == {name.replace("rules/", "specmap/_rules/", 1) for name in rule_files()}
    assert "specmap/_rules/vocabulary.toml" in packed


def test_the_wheel_holds_one_package_and_its_licence(built: dict[str, Path]) -> None:
    with zipfile.ZipFile(built["wheel"]) as archive:
        names = archive.namelist()
        metadata = archive.read("specmap-0.1.0.dist-info/METADATA").decode()
    assert {name.partition("/")[0] for name in names} == {"specmap", "specmap-0.1.0.dist-info"}
    assert "specmap/py.typed" in names
    assert "specmap-0.1.0.dist-info/licenses/LICENSE" in names
    assert "Requires-Python: >=3.11" in metadata


def test_the_wheel_carries_the_agent_and_its_ring(built: dict[str, Path]) -> None:
    with zipfile.ZipFile(built["wheel"]) as archive:
        names = set(archive.namelist())
    agent = "specmap/trace/agent"
    assert {
        *(f"{agent}/{source}" for source in ("ring.h", "ring.c", "wrapper.c", "carried.c")),
        f"{agent}/_ring{sysconfig.get_config_var('EXT_SUFFIX')}",
        f"{agent}/inject/sitecustomize.py",
        f"{agent}/inject/specmap_inject-1.dist-info/entry_points.txt",
    } <= names
    assert "-none-any" not in built["wheel"].name


def test_the_wheel_carries_the_front_end_as_it_was_built(built: dict[str, Path]) -> None:
    with zipfile.ZipFile(built["wheel"]) as archive:
        names = {n for n in archive.namelist() if n.startswith("specmap/report/page/")}
        script = archive.read("specmap/report/page/bundle/page.js")
    assert script == (ROOT / "specmap/report/page/bundle/page.js").read_bytes()
    assert "specmap/report/page/bundle/page.css" in names
    assert not [name for name in names if name.startswith("specmap/report/page/app/")]
    with tarfile.open(built["sdist"]) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert "specmap/report/page/app/src/data.ts" in packed
    assert not [name for name in packed if "node_modules" in name]


def test_a_machine_without_a_compiler_builds_a_pure_wheel(tmp_path: Path) -> None:
    """The Python of this test with nothing else on its path stands in for such a machine."""
    environment = {"PATH": str(tmp_path), "CC": "", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "without its C ring: no C compiler" in done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == "specmap-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if name.endswith(".so")]


def test_the_sdist_holds_what_the_wheel_and_the_tests_need(built: dict[str, Path]) -> None:
    with tarfile.open(built["sdist"]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "pyproject.toml",
        "LICENSE",
        "rules/vocabulary.toml",
        "tests/test_packaging.py",
    } <= names
    assert not [name for name in names if name.startswith("output/")]


def test_the_installed_wheel_finds_its_rules(built: dict[str, Path], tmp_path: Path) -> None:
    """Unpacked away from the checkout, with the dependencies of this environment."""
    with zipfile.ZipFile(built["wheel"]) as archive:
        archive.extractall(tmp_path)
    code = "from specmap.scan.vocabulary import rules_folder; print(rules_folder())"
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert result.stdout.strip() == str(tmp_path / "specmap/_rules")
