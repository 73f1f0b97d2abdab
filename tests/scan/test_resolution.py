"""What a test in the source comes to: Python's own meaning decides, and doubt stays doubt."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmap.codemap.condition import render, simplify
from specmap.scan.index import Tree
from specmap.scan.resolver import Resolver
from specmap.scan.vocabulary import load_vocabulary
from tests.scan.trees import plant

FILE = "sglang/srt/speculative/thing.py"
LEAVES = ["    if b.z:", "        x = True", "        break"]


def truth(folder: Path, source: str, test: str, cls: str = "Thing") -> str:
    """The condition of ``test``, as the scanner sees it in ``cls.run``."""
    plant(folder, {"sglang/__init__.py": "", FILE: source})
    resolver = Resolver(Tree(folder, "sglang"), load_vocabulary(None), "cuda")
    module = resolver.tree.module_at(FILE)
    assert module is not None
    found = module.classes[cls]
    frame = resolver.attributes.frame(resolver.any_instance(found), found.methods["run"])
    for node, scope, _ in resolver.attributes.execution(frame).expressions:
        if module.text(node) == test:
            return render(simplify(resolver.truth(node, scope)))
    raise AssertionError(f"{test} is not in the source")


def method(test: str, *lines: str) -> str:
    body = "".join(f"        {line}\n" for line in (*lines, f"if {test}:", "    pass"))
    return f"class Thing:\n    def run(self, given):\n{body}"


def attribute(test: str, *members: str) -> str:
    return (
        "class Thing:\n" + "".join(f"    {m}\n" for m in members) + method(test).partition("\n")[2]
    )


OPEN = {
    "set by another method": (
        "self.x",
        ["def __init__(self): self.x = False", "def on(self): self.x = True"],
    ),
    "a default that a method replaces": (
        "self.x is None",
        ["x = None", "def on(self): self.x = Thing()"],
    ),
    "a flag that a method sets": ("self.x", ["x: bool = False", "def on(self): self.x = True"]),
    "None until an object is made": (
        "self.x is None",
        ["def __init__(self): self.x = None", "def on(self): self.x = Thing()"],
    ),
    "a counter": ("self.n == 0", ["def __init__(self): self.n = 0", "def step(self): self.n += 1"]),
    "setattr": (
        "self.x is None",
        ["def __init__(self): self.x = None", "def on(self): setattr(self, 'x', 3)"],
    ),
    "a dict that is filled": (
        "self.d",
        ["def __init__(self): self.d = {}", "def put(self, k): self.d[k] = 1"],
    ),
    "a list that grows": (
        "self.d",
        ["def __init__(self): self.d = []", "def put(self, k): self.d.append(k)"],
    ),
    "a list that is extended": (
        "self.d",
        ["def __init__(self): self.d = []", "def put(self, k): self.d.extend(k)"],
    ),
}


@pytest.mark.parametrize("case", OPEN)
def test_an_attribute_that_other_code_may_change_stays_open(tmp_path: Path, case: str) -> None:
    test, members = OPEN[case]
    assert truth(tmp_path, attribute(test, *members), test) == test


def test_an_attribute_that_only_the_constructor_sets_is_known(tmp_path: Path) -> None:
    source = attribute("self.x", "def __init__(self): self.x = True")
    assert truth(tmp_path, source, "self.x") == "always"


def test_a_later_store_of_one_method_wins(tmp_path: Path) -> None:
    source = (
        "class Thing:\n    def __init__(self, given):\n        self.x = True\n"
        "        if given.y > 1:\n            self.x = False\n"
    )
    assert (
        truth(tmp_path, source + method("self.x").partition("\n")[2], "self.x")
        == "not (given.y > 1)"
    )


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["x = True", "if given.y > 1: x = False"], "not (given.y > 1)"),
        (["x = False", "for b in given:", "    if b.y: x = True"], "given and b.y"),
        (
            ["x = True", "try: given()", "except Exception: x = False"],
            "not (an exception is caught)",
        ),
        (["x = False", "while not x:", "    x = given()"], "not x and given()"),
        (
            ["x = False", "for b in given:", "    if b.y: break", *LEAVES],
            "not b.y and b.z and given",
        ),
        (
            ["x = False", "for b in given:", *LEAVES, "    if b.y: break"],
            "b.z and given",
        ),
    ],
)
def test_a_local_name_keeps_every_way_it_can_be_bound(
    tmp_path: Path, lines: list[str], expected: str
) -> None:
    assert truth(tmp_path, method("x", *lines), "x") == expected


def test_a_local_list_that_grows_may_be_filled(tmp_path: Path) -> None:
    source = method("d", "d = []", "for b in given:", "    d.append(b)")
    assert truth(tmp_path, source, "d") == "d"


def test_a_global_that_a_function_sets_stays_open(tmp_path: Path) -> None:
    source = "flag = False\ndef on():\n    global flag\n    flag = True\n" + method("flag")
    assert truth(tmp_path, source, "flag") == "flag"


def test_a_global_that_is_filled_on_first_use_is_there_after(tmp_path: Path) -> None:
    fills = ("global kinds", "if kinds is None:", "    kinds = (Thing, None)", "kind, _ = kinds")
    source = "kinds = None\n" + method("kind", *fills)
    assert truth(tmp_path, source, "kind") == "always"


def test_a_store_from_outside_counts(tmp_path: Path) -> None:
    source = attribute("self.x", "def __init__(self): self.x = False")
    owner = (
        "class Owner:\n    def __init__(self):\n        self.t = Thing()\n        self.t.x = True\n"
    )
    assert truth(tmp_path, source + owner, "self.x") == "self.x"


def test_a_subclass_may_set_it_anew(tmp_path: Path) -> None:
    source = attribute("self.x", "x = False")
    child = "class Child(Thing):\n    def __init__(self):\n        self.x = True\n"
    assert truth(tmp_path, source + child, "self.x") == "self.x"


def test_an_enum_member_that_a_method_replaces_stays_open(tmp_path: Path) -> None:
    enum = "from enum import Enum\nclass Mode(Enum):\n    A = 1\n    B = 2\n"
    source = enum + attribute(
        "self.mode == Mode.A", "mode = Mode.A", "def on(self): self.mode = Mode.B"
    )
    assert truth(tmp_path, source, "self.mode == Mode.A") == "self.mode == Mode.A"


def test_a_result_does_not_depend_on_how_deep_it_was_asked_for(tmp_path: Path) -> None:
    steps = "".join(f"    def s{i}(self): return self.s{i + 1}()\n" for i in range(120))
    last = "    def s120(self): return self.x\n"
    source = "class Thing:\n    def __init__(self): self.x = True\n" + steps + last
    source += method("self.s0()").partition("\n")[2]
    assert truth(tmp_path, source, "self.s0()") == "always"


def test_a_swap_of_an_object_does_not_change_when_there_is_one(tmp_path: Path) -> None:
    """Adaptive speculation takes the runner of another state, and puts its own back later."""
    source = (
        "class Runner: pass\n"
        "class Thing:\n"
        "    def __init__(self, on):\n        self.runner = None\n"
        "        if on:\n            self.runner = Runner()\n"
        "    def swap(self, state):\n        self.runner = state.runner\n"
        "    def put_back(self):\n        kept = (self.size, self.runner)\n"
        "        (self.size, self.runner) = kept\n"
    )
    source += method("self.runner").partition("\n")[2]
    assert truth(tmp_path, source, "self.runner") == "on"


def test_a_field_that_workers_overwrite_stays_as_it_is_written(tmp_path: Path) -> None:
    source = (
        "class Batch:\n    def __init__(self): self.capture_hidden_mode = 1\n"
        "class Thing:\n    def __init__(self): self.batch = Batch()\n"
    )
    test = "self.batch.capture_hidden_mode == 1"
    source += method(test).partition("\n")[2]
    assert truth(tmp_path, source, test) == test


def test_a_decision_that_outgrows_every_use_keeps_its_call_and_place(tmp_path: Path) -> None:
    terms = " or ".join(f"(given.a{i} and given.b{i})" for i in range(450))
    source = (
        f"class Runner:\n    def can_run_graph(self, given):\n        if {terms}:\n"
        "            return True\n        return False\n"
        "class Thing:\n    def __init__(self): self.runner = Runner()\n"
    )
    source += method("self.runner.can_run_graph(given)").partition("\n")[2]
    assert truth(tmp_path, source, "self.runner.can_run_graph(given)") == (
        "self.runner.can_run_graph(given)"
    )


def test_a_value_from_outside_is_printed_as_the_source_writes_it(tmp_path: Path) -> None:
    source = "import torch\n" + method(
        "getattr(model, 'fast', False)",
        "model = torch.load()",
        "if given: model = torch.other()",
    )
    printed = truth(tmp_path, source, "getattr(model, 'fast', False)")
    assert "getattr(model, 'fast', False)" in printed
    assert "torch" not in printed


@pytest.mark.parametrize(
    ("asked", "printed"),
    [
        ("made(None)", "always"),
        ("made(Runner())", "never"),
    ],
)
def test_what_a_function_gives_back_on_no_way_but_none(
    tmp_path: Path, asked: str, printed: str
) -> None:
    source = (
        "class Runner:\n    pass\n\n"
        "def made(runner) -> Runner | None:\n    if runner is None:\n        return None\n"
        "    return Runner()\n\n" + method(f"{asked} is None")
    )
    assert truth(tmp_path, source, f"{asked} is None") == printed


BACKENDS = """\
from abc import ABC, abstractmethod

class Backend(ABC):
    @abstractmethod
    def plan(self): ...

class Plain(Backend):
    def plan(self): ...

class Careful(Backend):
    def plan(self): ...

    def allows(self, batch) -> bool:
        return batch.small

class Other:
    def __init__(self, on):
        self.helper = None
        if on:
            self.helper = Careful()

class Thing:
    def __init__(self, name, on):
        self.other = Other(on)
        self.asks = (
            self.other.helper.allows
            if self.other.helper is not None
            else getattr(made(name), "allows", None)
        )

    def run(self, name, batch):
        allows = getattr(made(name), "allows", None)
        if allows is not None:
            pass
        if allows(batch):
            pass
        if self.asks is not None:
            pass
        if self.asks(batch):
            pass
        if getattr(made(name), "eager", False):
            pass

def made(name) -> Backend:
    return TABLE[name]()

TABLE = {}
"""


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("allows is not None", "allows is not None"),
        ("allows(batch)", "allows(batch)"),
        ("self.asks is not None", "on or (self.asks is not None)"),
        ("self.asks(batch)", "self.asks(batch)"),
    ],
)
def test_a_member_that_some_of_the_declared_classes_have_is_not_told(
    tmp_path: Path, test: str, expected: str
) -> None:
    """None where the class lacks it, a method where it has it: either may be in the table."""
    assert truth(tmp_path, BACKENDS, test) == expected


def test_a_flag_that_some_of_the_declared_classes_have_is_not_told(tmp_path: Path) -> None:
    asked = 'getattr(made(name), "eager", False)'
    source = BACKENDS.replace(
        "class Careful(Backend):", "class Careful(Backend):\n    eager = True"
    )
    assert truth(tmp_path, source, asked) == asked
    assert truth(tmp_path, BACKENDS, asked) == "never"


def test_a_member_that_all_of_them_have_is(tmp_path: Path) -> None:
    source = BACKENDS.replace("class Plain(Backend)", "class Plain")
    assert truth(tmp_path, source, "allows is not None") == "always"


@pytest.mark.parametrize("test", ["given == 4", "given != 4", "4 == given", "given == other"])
def test_what_may_be_absent_is_compared_by_the_test_alone(tmp_path: Path, test: str) -> None:
    source = "from typing import Optional\n" + method(test).replace(
        "given)", "given: Optional[int], other: Optional[int])"
    )
    expected = "not (given == 4)" if "!=" in test else test
    assert truth(tmp_path, source, test) in (test, expected)


def test_a_callee_that_nobody_knows_does_not_answer_no(tmp_path: Path) -> None:
    source = "def one(x) -> bool: return x.y > 1\n" + method(
        "ask(given)", "ask = one if given.a else given.table[0]"
    )
    assert truth(tmp_path, source, "ask(given)") == "ask(given)"


HAS = """\
import torch

class Plain:
    size = 4

    def __init__(self):
        self.made = 1

    def run(self): ...

class Handing:
    def __getattr__(self, name): return getattr(torch, name)

class Module(torch.nn.Module): ...

class Open:
    def __init__(self, **given):
        for name, value in given.items():
            setattr(self, name, value)

def declared(thing: Plain):
    return thing

"""


@pytest.mark.parametrize(
    ("made", "name", "expected"),
    [
        ("Plain()", "run", "always"),
        ("Plain()", "size", "always"),
        ("Plain()", "other", "never"),
        ("None", "run", "never"),
        ("Plain() if given else None", "run", "given"),
        ("Plain()", "made", "open"),
        ("Plain()", "seen", "open"),
        ("Handing()", "other", "open"),
        ("Module()", "other", "open"),
        ("Open()", "other", "open"),
        ("given.thing", "run", "open"),
    ],
)
def test_whether_an_object_has_an_attribute(
    tmp_path: Path, made: str, name: str, expected: str
) -> None:
    test = f"hasattr(thing, '{name}')"
    source = f"{HAS}def on(thing):\n    thing.seen = 1\n\n{method(test, f'thing = {made}')}"
    assert truth(tmp_path, source, test) == (test if expected == "open" else expected)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["x = True", "try: import given", "except Exception: x = False"], "not an import fails"),
        (["x = True", "try: given()", "except ImportError: x = False"], "not an import fails"),
    ],
)
def test_whether_a_package_is_there_is_no_exception_like_others(
    tmp_path: Path, lines: list[str], expected: str
) -> None:
    assert truth(tmp_path, method("x", *lines), "x") == expected


@pytest.mark.parametrize("test", ["given.size() % 2", "-torch.ones(2)", "torch.ones(2) * 2"])
def test_arithmetic_is_asked_for_as_it_is_written(tmp_path: Path, test: str) -> None:
    source = "import torch\n" + method(test, "given = torch.load()")
    assert truth(tmp_path, source, test) == test


CHOICES = """
class Runner:
    pass

class Maker:
    def one(self):
        return Runner()

    def none(self):
        print("not supported")
        return None

    def made(self, table, key):
        return table[key]()

class Holder:
    def __init__(self, key):
        maker = Maker()
        self.some = maker.made({"a": maker.one, "b": maker.none}, key)
        self.always = maker.made({"a": maker.one, "b": Runner}, key)

def yes(): return True
def no(): return False
"""


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("Holder(given).some", ""),
        ("Holder(given).some is None", ""),
        ("Holder(given).always", "always"),
        ("Holder(given).always is None", "never"),
        ('{"a": Runner(), "b": None}[given]', ""),
        ('{"a": Runner(), "b": None}[given] is not None', ""),
        ('{"a": Runner(), "b": None}["b"]', "never"),
        ('{"a": None, "b": None}[given]', "never"),
        ('{"a": True, "b": False}[given]', ""),
        ('{"a": yes, "b": no}[given]()', ""),
        ('{"a": 1, "b": 2}[given] == 1', ""),
        ('{"a": 1, "b": 2}[given] == 3', "never"),
        ("[Runner(), None][given]", ""),
        ("[Runner(), None][0]", "always"),
        ("[True, False][given]", ""),
    ],
)
def test_of_several_values_the_test_tells_which_it_is(
    tmp_path: Path, test: str, expected: str
) -> None:
    """A table asked for a key that nobody knows may give any of what it holds."""
    found = truth(tmp_path, CHOICES + method(test), test)
    opposite = test.replace("is not None", "is None")
    assert found in (expected or test, f"not ({opposite})")


def test_objects_of_two_classes_keep_both_ways(tmp_path: Path) -> None:
    """One class has one page always, the other as many as it is told."""
    source = (
        "class Plain:\n    def __init__(self): self.page_size = 1\n"
        "class Paged:\n    def __init__(self, size): self.page_size = size\n"
        "class Owner:\n    def __init__(self, size):\n"
        "        if size == 1:\n            self.pool = Plain()\n"
        "        else:\n            self.pool = Paged(size)\n"
        "class Batch:\n    pool: Plain | Paged\n"
        "class Thing:\n    def run(self, batch: Batch):\n"
        "        page_size = batch.pool.page_size\n"
        "        if page_size == 1:\n            pass\n"
    )
    assert truth(tmp_path, source, "page_size == 1") == "page_size == 1"
