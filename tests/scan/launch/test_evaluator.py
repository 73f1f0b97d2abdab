from __future__ import annotations

from pathlib import Path

import pytest

from specmap.codemap.launch import OriginKind
from specmap.errors import TargetError
from specmap.scan.launch.evaluator import Evaluator
from specmap.scan.launch.tables import Inputs
from specmap.scan.vocabulary import load_vocabulary
from tests.scan.launch.programs import GPU, launch


def test_a_known_test_takes_one_arm(tmp_path: Path) -> None:
    facts = launch(tmp_path, "if self.b == 2:\n    self.a = 1\nelse:\n    self.a = 9").facts()
    assert facts.value("a") == 1
    [origin] = facts.facts["a"].origins
    assert origin.kind is OriginKind.ASSIGNED
    assert origin.span is not None
    source = (tmp_path / origin.span.file).read_text().splitlines()
    assert source[origin.span.line - 1].strip() == "self.a = 1"
    assert [(t.text, t.outcome) for t in origin.tests] == [("self.b == 2", "true")]


def test_an_unknown_test_joins_both_arms(tmp_path: Path) -> None:
    facts = launch(tmp_path, GPU + "if gpu:\n    self.a = 1\n    self.b = 5\n").facts()
    assert not facts.facts["a"].known
    assert facts.facts["a"].alternatives == (None, 1)
    assert facts.facts["a"].reasons == ("GPU memory",)
    assert facts.facts["b"].alternatives == (2, 5)
    assert facts.value("c") is False


def test_the_missing_fact_settles_it(tmp_path: Path) -> None:
    body = GPU + "if gpu:\n    self.a = 1\n"
    inputs = Inputs(gpu_memory_mib=2000)
    assert launch(tmp_path, body, inputs=inputs).facts().value("a") == 1


def test_an_early_return_under_an_unknown_test(tmp_path: Path) -> None:
    facts = launch(
        tmp_path, GPU + "self.b = 3\nif gpu:\n    return\nself.a = 7\nself.b = 4"
    ).facts()
    assert facts.facts["a"].alternatives == (None, 7)
    assert facts.facts["b"].alternatives == (3, 4)


def test_a_raise_under_an_unknown_test_may_refuse(tmp_path: Path) -> None:
    facts = launch(tmp_path, GPU + "if gpu:\n    raise ValueError('too big')\nself.a = 7").facts()
    [refusal] = facts.refusals
    assert (refusal.certain, refusal.error, refusal.message) == (False, "ValueError", "too big")
    assert refusal.reasons == ("GPU memory",)
    assert [t.text for t in refusal.tests] == ["gpu"]
    assert facts.refused is None
    assert facts.value("a") == 7


BOTH_RAISE = GPU + "if gpu:\n    raise ValueError('x')\nelse:\n    raise TypeError('y')"


@pytest.mark.parametrize(
    ("body", "error", "says"),
    [
        ("if self.b > 1:\n    raise ValueError(f'b is {self.b}')", "ValueError", "b is 2"),
        ("raise ValueError('{0} is {value}'.format('b', value=self.b))", "ValueError", "b is 2"),
        ("assert self.a is not None, 'a is missing'", "AssertionError", "a is missing"),
        ("if self.a > 1:\n    self.b = 1", "TypeError", "NoneType"),
        ("x = {}\nself.a = x['k']", "KeyError", "k"),
        (
            GPU + "if gpu:\n    raise ValueError('x')\nelse:\n    raise TypeError('y')",
            "ValueError",
            "x",
        ),
    ],
    ids=[
        "raise",
        "raise with a format",
        "assert",
        "an error of Python",
        "a missing key",
        "both arms raise",
    ],
)
def test_a_raise_on_every_way_refuses(tmp_path: Path, body: str, error: str, says: str) -> None:
    facts = launch(tmp_path, body).facts()
    assert facts.refused is not None
    assert facts.refused.error == error
    assert says in facts.refused.message
    assert not any(fact.known for fact in facts.facts.values())


def test_a_raise_that_is_caught(tmp_path: Path) -> None:
    body = "try:\n    self.a = int('x')\nexcept ValueError as e:\n    self.a = 5"
    facts = launch(tmp_path, body).facts()
    assert facts.value("a") == 5
    assert not facts.refusals


def test_a_call_that_may_raise_runs_the_handler_too(tmp_path: Path) -> None:
    body = """
try:
    self.b = 3
    torch.load('x')
    self.a = 1
except Exception:
    self.a = 2
"""
    facts = launch(tmp_path, body).facts()
    assert facts.facts["a"].alternatives == (1, 2)
    assert facts.facts["b"].alternatives == (2, 3)


def test_what_the_user_gave_and_the_code_overwrote(tmp_path: Path) -> None:
    body = "if self.c:\n    self.b = 1"
    inputs = Inputs(values={"b": 8, "c": True})
    [change] = launch(tmp_path, body, inputs=inputs).facts().changes
    assert (change.name, change.given, change.fact.value) == ("b", 8, 1)
    assert change.fact.origins[0].span is not None


def test_a_field_given_with_an_unknown_value(tmp_path: Path) -> None:
    inputs = Inputs(unknown_values={"b": "$B"})
    facts = launch(tmp_path, "self.a = self.b * 2\nself.c = True", inputs=inputs).facts()
    assert facts.facts["a"].reasons == ("b = $B",)
    assert facts.value("c") is True


def test_an_open_command_leaves_the_other_fields_unknown(tmp_path: Path) -> None:
    inputs = Inputs(values={"b": 4}, open=("$EXTRA",))
    facts = launch(tmp_path, "self.sizes = [self.b]", inputs=inputs).facts()
    assert facts.value("sizes") == (4,)
    assert facts.facts["a"].reasons == ("$EXTRA",)


CONVERTER = """

def to_sizes(text):
    if not text:
        raise ValueError("no sizes")
    return [int(part) for part in text.split(",")]
"""


def test_given_text_is_converted_by_the_release(tmp_path: Path) -> None:
    inputs = Inputs(values={"sizes": "1,3"}, converters={"sizes": "to_sizes"})
    facts = launch(tmp_path, "self.a = self.sizes[1]", after=CONVERTER, inputs=inputs).facts()
    assert facts.value("sizes") == (1, 3)
    assert facts.value("a") == 3


def test_text_that_the_converter_refuses(tmp_path: Path) -> None:
    inputs = Inputs(values={"sizes": ""}, converters={"sizes": "to_sizes"})
    refused = launch(tmp_path, "pass", after=CONVERTER, inputs=inputs).facts().refused
    assert refused is not None
    assert refused.message == "no sizes"


def test_an_unknown_field_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="no field nope"):
        launch(tmp_path, "pass", inputs=Inputs(values={"nope": 1}))


def test_a_tree_without_the_class(tmp_path: Path) -> None:
    (tmp_path / "sglang").mkdir()
    with pytest.raises(TargetError, match="no class ServerArgs"):
        Evaluator(tmp_path, load_vocabulary(), Inputs())


LEAVE = """
    if n == {}:
        {}
    x.append(n)
self.sizes = x
"""


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("self.sizes = [n for n in range(1, 9) if n % 3 == 0]", (3, 6)),
        ("self.sizes = sorted(set([1]).union({4}, range(2, 3)))", (1, 2, 4)),
        ("x = [1]\nx += [2]\nx.append(3)\nself.sizes = x[1:]", (2, 3)),
        ("x, (y, z) = 1, (2, 3)\nself.sizes = [z, y, x]", (3, 2, 1)),
        (f"x = []\nfor n in (1, 2, 3, 4):{LEAVE.format(3, 'break')}", (1, 2)),
        (f"x = []\nfor n in (1, 2, 3):{LEAVE.format(2, 'continue')}", (1, 3)),
        ("def f(n, *, k=1):\n    return n + k\nself.sizes = [f(1), f(1, k=5)]", (2, 6)),
        ("x = 0\ndef f():\n    nonlocal x\n    x += 2\nf()\nf()\nself.sizes = [x]", (4,)),
        ("r = [(5, lambda: self.c), (6, lambda: 1)]\nself.sizes = [n for n, p in r if p()]", (6,)),
        ("if (n := len('abc')) > 2:\n    self.sizes = [n]", (3,)),
        ("n = 0\nwhile n < 5:\n    n += 2\nself.sizes = [n]", (6,)),
        ("d = {'a': 1, **{'b': 2}}\nself.sizes = [d.get('z', 7), *d.values()]", (7, 1, 2)),
        ("self.sizes = [max(1, 3), min([4, 2]), round(2.4), int('3')]", (3, 2, 2, 3)),
        ("self.sizes = ['a,b'.split(',').index('b'), len('x'.upper() * 3)]", (1, 3)),
        ("self.sizes = [getattr(self, 'b'), getattr(self, 'zz', 9)]", (2, 9)),
    ],
)  # fmt: skip
def test_plain_python(tmp_path: Path, body: str, value: tuple[int, ...]) -> None:
    assert launch(tmp_path, body).facts().value("sizes") == value


def test_classes_enumerations_and_records(tmp_path: Path) -> None:
    after = """
import enum

class Kind(enum.Enum):
    FAST = enum.auto()
    SLOW = enum.auto()

    def is_fast(self):
        return self == Kind.FAST

    @classmethod
    def of(cls, name):
        try:
            return cls[name.upper()]
        except KeyError:
            raise ValueError(f"unknown kind {name}")

@dataclasses.dataclass
class Phase:
    backend: str = "full"
    bs: list = dataclasses.field(default_factory=lambda: [1])

class Base:
    factor = 3

    def __init__(self, n):
        self.n = n

    @property
    def double(self):
        return self.n * 2

class Child(Base):
    def __init__(self, n):
        super().__init__(n + 1)
"""
    body = """
self.c = Kind.of('fast').is_fast() and not Kind.of('SLOW').is_fast()
p = Phase()
q = dataclasses.replace(p, backend='off')
self.name = p.backend + q.backend
child = Child(1)
self.sizes = [*p.bs, child.double, child.factor]
"""
    facts = launch(tmp_path, body, after=after).facts()
    assert facts.value("c") is True
    assert facts.value("name") == "fulloff"
    assert facts.value("sizes") == (1, 4, 3)
    refused = launch(tmp_path, "Kind.of('odd')", after=after).facts().refused
    assert refused is not None
    assert (refused.error, refused.message) == ("ValueError", "unknown kind odd")


def test_code_that_is_not_evaluated_spoils_what_it_can_write(tmp_path: Path) -> None:
    body = "self.b = 3\ntorch.adjust(self)"
    facts = launch(tmp_path, body).facts()
    assert not facts.facts["b"].known
    assert facts.facts["b"].reasons == ("torch.adjust()",)
    assert not facts.facts["c"].known


def test_a_statement_that_is_not_evaluated_spoils_the_settings(tmp_path: Path) -> None:
    body = "match self.b:\n    case 2:\n        self.a = 1"
    facts = launch(tmp_path, body).facts()
    assert not any(fact.known for fact in facts.facts.values())
    assert "Match at sglang/srt/server_args.py" in facts.facts["a"].reasons[0]


def test_a_loop_of_unknown_length(tmp_path: Path) -> None:
    body = "self.a = 0\nfor x in torch.things():\n    self.a += 1\nself.c = True"
    facts = launch(tmp_path, body).facts()
    assert not facts.facts["a"].known
    assert facts.value("c") is True


def test_endless_recursion_is_cut_off(tmp_path: Path) -> None:
    after = "\n\ndef f(n):\n    return f(n + 1)\n"
    facts = launch(tmp_path, "self.a = f(1)\nself.c = True", after=after).facts()
    assert not facts.facts["a"].known
    assert facts.value("c") is True


def test_an_endless_loop_is_cut_off(tmp_path: Path) -> None:
    facts = launch(tmp_path, "self.a = 1\nwhile True:\n    self.a = self.a").facts()
    assert not facts.facts["a"].known


def test_an_unknown_test_narrows_what_it_tests(tmp_path: Path) -> None:
    body = GPU + "if gpu:\n    self.a = 1\nif self.a is None:\n    self.a = 5"
    facts = launch(tmp_path, body).facts()
    assert facts.facts["a"].alternatives == (1, 5)


def test_a_possible_append(tmp_path: Path) -> None:
    body = GPU + "x = [('a', 1)]\nif gpu:\n    x.append(('b', 2))\nfor n, v in x:\n    self.a = v"
    assert launch(tmp_path, body).facts().facts["a"].alternatives == (1, 2)


def test_a_list_that_may_be_longer_has_no_length(tmp_path: Path) -> None:
    body = GPU + "x = [[1]]\nif gpu:\n    x.append([2])\nself.a = len(x)\nself.b = len([*x, 1])"
    facts = launch(tmp_path, body).facts()
    assert not facts.facts["a"].known
    assert not facts.facts["b"].known


def test_nothing_is_taken_for_equal_that_is_only_unknown_alike(tmp_path: Path) -> None:
    body = "x = torch.one()\ny = torch.one()\nself.c = x == y\nself.a = 1 if x == x else 2"
    facts = launch(tmp_path, body).facts()
    assert not facts.facts["c"].known
    assert facts.value("a") == 1


def test_same_input_same_facts(tmp_path: Path) -> None:
    body = GPU + "if gpu:\n    self.a = 1\n    self.name = 'x'\n"
    first, second = (launch(tmp_path, body).facts() for _ in range(2))
    assert first == second
