from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

from specmap.trace.interpreter import Installed
from specmap.trace.ringbuild import built_ring

SUFFIX = str(sysconfig.get_config_var("EXT_SUFFIX"))


def test_what_was_built_is_taken_again(tmp_path: Path) -> None:
    """A Python that fails stands for one without a compiler."""
    broken = Installed("/bin/false", (3, 11), tmp_path, SUFFIX)
    assert built_ring(broken, tmp_path / "cache") is None
    (folder,) = (tmp_path / "cache").iterdir()
    (folder / f"_ring{SUFFIX}").touch()
    assert built_ring(broken, tmp_path / "cache") == folder


def test_two_pythons_have_two_rings(tmp_path: Path) -> None:
    for suffix in (".cpython-312-x86_64-linux-gnu.so", ".cpython-313-x86_64-linux-gnu.so"):
        built_ring(Installed("/bin/false", (3, 12), tmp_path, suffix), tmp_path / "cache")
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_a_cache_that_cannot_be_written_costs_the_c_ring_only(tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    server = Installed(sys.executable, (3, 11), tmp_path, SUFFIX)
    assert built_ring(server, tmp_path / "cache") is None
