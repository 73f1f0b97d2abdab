"""Whether a part of a draft model has an attribute, from the source of its class."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmap.scan.launch.library import Library
from specmap.scan.launch.modelclasses import ModelClasses
from tests.scan.trees import plant

PLAIN = """
class Stack(nn.Module):
    def __init__(self, config):
        self.layers, self.start, self.end = make_layers(config)

class Plain(nn.Module):
    def __init__(self, config):
        self.model = self._init_model(config)

    def _init_model(self, config):
        return Stack(config)
"""
HEADS = """
from sglang.srt.models.plain import Plain, Stack
from elsewhere import Foreign

class One(nn.Module):
    def __init__(self, config):
        self.midlayer = Layer(config)

class OneHead(Plain):
    def __init__(self, config):
        self.model = One(config)

class SameHead(Plain):
    pass

class OwnHead(Plain):
    def _init_model(self, config):
        return One(config)

class More(Stack):
    pass

class MoreHead(Plain):
    def __init__(self, config):
        self.model = More(config)

class Other(Foreign):
    pass

class OtherHead(Plain):
    def __init__(self, config):
        self.model = Other(config)

class ListedHead(Plain):
    pass

class ChosenHead(Plain):
    def __init__(self, config):
        self.model = One(config) if config.small else Stack(config)
"""
NAMES = (
    'if is_draft_model and architectures[0] == "ListedHead":\n    architectures[0] = "Renamed"\n'
)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Plain", True),
        ("OneHead", False),
        ("SameHead", True),
        ("OwnHead", False),
        ("MoreHead", True),
        ("OtherHead", None),
        ("ListedHead", None),
        ("ChosenHead", None),
        ("Nowhere", None),
    ],
)
def test_the_layers_of_a_draft(tmp_path: Path, name: str, found: bool | None) -> None:
    files = {
        "sglang/srt/models/plain.py": PLAIN,
        "sglang/srt/models/heads.py": HEADS,
        "sglang/srt/configs/model_config.py": NAMES,
    }
    library = Library(plant(tmp_path, files), "sglang")
    models = ModelClasses(library, "sglang.srt.models", "sglang.srt.configs.model_config")
    assert models.draft_keeps(name, "model", "layers") is found
