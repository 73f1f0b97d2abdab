"""A registry of workers: module code registers them, the scheduler asks for one by name."""

from __future__ import annotations

from pathlib import Path

from specmap.codemap.condition import render
from tests.review_tree import edit, plant, scan

SPEC_INFO = "sglang/srt/speculative/spec_info.py"
SCHEDULER = "sglang/srt/managers/scheduler.py"
CHOICE = """        if self.is_ngram():
            from sglang.srt.speculative.ngram_worker import NGRAMWorker

            return NGRAMWorker
        from sglang.srt.speculative.eagle_worker import EAGLEWorker

        return EAGLEWorker
"""
REGISTRY = """        return _FACTORIES[self.name](**keywords)


_FACTORIES = {}


def register(name, *, make, flags=()):
    _FACTORIES[name] = make


def _make_eagle(**keywords):
    from sglang.srt.speculative.eagle_worker import EAGLEWorker

    return EAGLEWorker(**keywords)


def _make_ngram(**keywords):
    from sglang.srt.speculative.ngram_worker import NGRAMWorker

    return NGRAMWorker(**keywords)


register("EAGLE", make=_make_eagle, flags=("EAGLE",))
register("EAGLE3", make=_make_eagle, flags=("EAGLE", "EAGLE3"))
register("NGRAM", make=_make_ngram, flags=("NGRAM",))
"""
MADE = """            worker_class = self.spec_algorithm.create_worker(server_args)
            self.draft_worker = worker_class(server_args, target_worker=self.tp_worker)
"""
ASKED = """            self.draft_worker = self.spec_algorithm.create_worker(
                server_args=server_args, target_worker=self.tp_worker
            )
"""


def test_a_worker_is_selected_by_the_names_that_it_is_registered_under(tmp_path: Path) -> None:
    folder = plant(tmp_path / "tree")
    head = "def create_worker(self, server_args):\n"
    edit(folder, SPEC_INFO, (CHOICE, REGISTRY), (head, "def create_worker(self, **keywords):\n"))
    edit(folder, SCHEDULER, (MADE, ASKED))
    found = {w.name: render(w.selected_when) for w in scan(folder).workers}
    name = "server_args.speculative_algorithm"
    speculative = "not spec_algorithm.is_none()"
    assert found == {
        "EAGLEWorker": f"{speculative} and (({name} == 'EAGLE') or ({name} == 'EAGLE3'))",
        "NGRAMWorker": f"({name} == 'NGRAM') and {speculative}",
    }


def test_a_worker_that_the_scheduler_makes_itself_stands_beside_the_registered(
    tmp_path: Path,
) -> None:
    folder = plant(tmp_path / "tree")
    head = "def create_worker(self, server_args):\n"
    edit(folder, SPEC_INFO, (CHOICE, REGISTRY), (head, "def create_worker(self, **keywords):\n"))
    own = """            if server_args.two_layers:
                self.draft_worker = TwoLayerWorker(server_args, target_worker=self.tp_worker)
            else:
    """
    asked = own + ASKED.replace("\n", "\n    ").rstrip(" ")
    imported = "from sglang.srt.speculative.two_layer_worker import TwoLayerWorker\n"
    file = folder / SCHEDULER
    edit(folder, SCHEDULER, (MADE, asked))
    file.write_text(imported + file.read_text("utf-8"), "utf-8")
    worker = "from sglang.srt.speculative.eagle_worker import EAGLEWorker\n\n\n"
    worker += "class TwoLayerWorker(EAGLEWorker):\n    pass\n"
    (folder / "sglang/srt/speculative/two_layer_worker.py").write_text(worker, "utf-8")
    found = {w.name: render(w.selected_when) for w in scan(folder).workers}
    assert sorted(found) == ["EAGLEWorker", "NGRAMWorker", "TwoLayerWorker"]
    other = "not server_args.two_layers"
    assert {name: other in text for name, text in found.items()} == {
        "EAGLEWorker": True,
        "NGRAMWorker": True,
        "TwoLayerWorker": False,
    }
