"""What a sweep varies: axes and their values, as they are written and as a release takes them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from specmap.codemap.sweep import BATCH_AXIS, Axis
from specmap.errors import SpecmapError
from specmap.nearest import nearest
from specmap.scan.launch.arguments import Argument, Declarations
from specmap.scan.launch.argv import parse
from specmap.scan.launch.tables import Inputs
from specmap.scan.launch.unknown import ArgumentError

UNSET = "unset"
"""The value that leaves an argument or a variable out."""

MOST_CELLS = 5000
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_RANGE = re.compile(r"(\d+)\.\.(\d+)")
_YES, _NO = "yes", "no"
_EXPECTED = "expected NAME=VALUE,VALUE or NAME=1..5"
_PAIRS = {"{": "}", "[": "]"}


@dataclass(frozen=True, slots=True)
class Setting:
    """One value of one axis, as the launch takes it.

    ``values`` are settings by field. ``removed`` are fields to be left out. ``environment``
    holds variables, None for one that is unset.
    """

    values: Mapping[str, object]
    removed: tuple[str, ...] = ()
    environment: Mapping[str, str | None] | None = None


@dataclass(frozen=True, slots=True)
class Grid:
    """The axes of a sweep without the batch size, and for each value what it sets."""

    axes: tuple[Axis, ...]
    settings: tuple[tuple[Setting, ...], ...]
    sizes: tuple[int, ...]
    notes: tuple[str, ...] = ()

    @property
    def launches(self) -> Iterable[tuple[tuple[str, ...], tuple[Setting, ...]]]:
        """Each launch: its values as written, and what they set."""
        pairs = [
            tuple(zip(axis.values, found, strict=True))
            for axis, found in zip(self.axes, self.settings, strict=True)
        ]
        for chosen in product(*pairs):
            yield tuple(text for text, _ in chosen), tuple(setting for _, setting in chosen)

    @property
    def count(self) -> int:
        """How many launches there are."""
        return prod(len(axis.values) for axis in self.axes)


def read_axes(texts: Sequence[str]) -> tuple[Axis, ...]:
    """Read ``NAME=V,V,...`` of ``--vary``; a value ``1..5`` is five values.

    Commas within brackets do not part values. The same name twice adds values.

    Raises:
        SpecmapError: no name, no value, or a range that runs backwards.
    """
    found: list[tuple[str, list[str]]] = []
    for text in texts:
        name, equals, rest = text.partition("=")
        values = [v for part in _parted(rest) for v in _values(part, f"--vary {text}")]
        if not equals:
            raise SpecmapError(f"--vary {text}: {_EXPECTED}")
        found.append((name, values))
    return _merged(found)


def axes_of(vary: Mapping[str, object]) -> tuple[Axis, ...]:
    """Take a script's own values: one, or several of which each is taken as it stands.

    A text is read as that of ``--vary`` is. True and False stand for a switch that is given
    or not, None for what is left out, a list within the values for one of several words.

    Raises:
        SpecmapError: see :func:`read_axes`.
    """
    if not isinstance(vary, Mapping):
        raise SpecmapError(f"what to vary is {vary!r}: expected a mapping of names to values")
    found: list[tuple[str, list[str]]] = []
    for name, values in vary.items():
        if isinstance(values, str):
            found += [(axis.name, list(axis.values)) for axis in read_axes([f"{name}={values}"])]
            continue
        if isinstance(values, Mapping) or not isinstance(values, Iterable):
            values = (values,)
        found.append((str(name), [_written(value) for value in values]))
    return _merged(found)


def _written(value: object) -> str:
    """Return a value as it is written on the command line."""
    words = {True: _YES, False: _NO, None: UNSET}
    if value is None or isinstance(value, bool):
        return words[value]
    if isinstance(value, list | tuple | Mapping):
        return json.dumps(value, separators=(",", ":"), default=str)
    return str(value)


def _merged(found: Iterable[tuple[str, Sequence[str]]]) -> tuple[Axis, ...]:
    """Return one axis a name, each value once."""
    merged: dict[str, dict[str, None]] = {}
    for text, values in found:
        name = text.strip()
        if not name.lstrip("-") or not values:
            raise SpecmapError(f"--vary {name}={','.join(values)}: {_EXPECTED}")
        if not _VARIABLE.fullmatch(name):
            name = name.lstrip("-").replace("_", "-")
        merged.setdefault(name, {}).update(dict.fromkeys(values))
    return tuple(Axis(name, tuple(values)) for name, values in merged.items())


def read_sizes(batch: str) -> tuple[tuple[int, ...], str]:
    """Take the batch sizes out of ``--batch``: ``bs=1,4,8..10,logprob=yes``.

    Return them ascending, a batch of one where none is named, and the rest of the text.

    Raises:
        SpecmapError: a size is no number, or below 1.
    """
    sizes: list[str] = []
    rest: list[str] = []
    inside = False
    for part in filter(None, (p.strip() for p in batch.split(","))):
        key, equals, value = part.partition("=")
        if equals:
            inside = key == BATCH_AXIS
        if inside:
            sizes += _values(value if equals else part, f"--batch {part}")
        else:
            rest.append(part)
    wrong = [size for size in sizes if not size.isdecimal() or int(size) < 1]
    if wrong:
        raise SpecmapError(f"--batch bs={wrong[0]}: expected numbers of requests, 1 or more")
    return tuple(sorted({int(size) for size in sizes} or {1})), ",".join(rest)


def _parted(text: str) -> list[str]:
    """Split at commas that stand in no bracket."""
    parts, open_ = [""], 0
    for char in text:
        open_ += (char in _PAIRS) - (char in _PAIRS.values())
        if char == "," and open_ <= 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part.strip()]


def _values(text: str, where: str) -> list[str]:
    found = _RANGE.fullmatch(text)
    if found is None:
        return [text]
    first, last = int(found[1]), int(found[2])
    if last < first:
        raise SpecmapError(f"{where}: the range {text} runs backwards")
    if last - first >= MOST_CELLS:
        raise SpecmapError(f"{where}: {text} is more than {MOST_CELLS} values")
    return [str(number) for number in range(first, last + 1)]


def grid_of(
    axes: Sequence[Axis],
    sizes: tuple[int, ...],
    declarations: Declarations,
    history: Callable[[str], str],
) -> Grid:
    """Check the axes against the arguments that a release declares.

    Raises:
        ArgumentError: it does not know one, or refuses a value.
        SpecmapError: the grid is too large.
    """
    found = [_axis(axis, declarations, history) for axis in axes]
    grid = Grid(
        axes=tuple(axis for axis, _, _ in found),
        settings=tuple(settings for _, settings, _ in found),
        sizes=sizes,
        notes=tuple(note for _, _, note in found if note),
    )
    cells = grid.count * len(sizes)
    if cells > MOST_CELLS:
        raise SpecmapError(f"{cells} cells are too many; vary less, {MOST_CELLS} at most")
    return grid


def _axis(
    axis: Axis, declarations: Declarations, history: Callable[[str], str]
) -> tuple[Axis, tuple[Setting, ...], str]:
    if _VARIABLE.fullmatch(axis.name):
        settings = tuple(
            Setting({}, environment={axis.name: None if value == UNSET else value})
            for value in axis.values
        )
        return axis, settings, ""
    argument = _argument(axis.name, declarations, history)
    bare = replace(
        declarations,
        arguments=tuple(replace(a, required=False) for a in declarations.arguments),
    )
    settings = tuple(_setting(argument, axis, value, bare, history) for value in axis.values)
    note = f"--{axis.name} is deprecated" if argument.deprecated is not None else ""
    if argument.deprecated:
        note += f"; instead: {argument.deprecated}"
    fields = dict.fromkeys(name for s in settings for name in (*s.values, *s.removed))
    return replace(axis, fields=tuple(fields)), settings, note


def _argument(name: str, declarations: Declarations, history: Callable[[str], str]) -> Argument:
    flag = f"--{name}"
    if flag in declarations.by_flag:
        return declarations.by_flag[flag]
    release = f"SGLang {declarations.release}" if declarations.release else "SGLang"
    near = nearest(flag, declarations.by_flag)
    parts = [history(flag), f"did you mean {' or '.join(near)}?" if near else ""]
    told = "; ".join(filter(None, parts))
    raise ArgumentError(f"--vary {name}: {release} does not know {flag}{told and f'; {told}'}")


def _setting(
    argument: Argument,
    axis: Axis,
    value: str,
    declarations: Declarations,
    history: Callable[[str], str],
) -> Setting:
    """Return what a value sets, by the release's own parser."""
    flag = f"--{axis.name}"
    without = value == UNSET
    if argument.kind == "flag":
        if value not in (_YES, _NO, UNSET):
            raise ArgumentError(f"--vary {axis.name}={value}: {flag} takes none; write yes or no")
        without, words = value != _YES, [flag]
    else:
        words = [flag, *_words(argument, value)]
    if without:
        return Setting({}, removed=(argument.field,))
    try:
        given = parse(declarations, words, history)
    except ArgumentError as error:
        raise ArgumentError(f"--vary {axis.name}={value}: {error}") from None
    return Setting(dict(given.values))


def _words(argument: Argument, value: str) -> list[str]:
    """Return the words of a value; a list argument takes several, parted by spaces."""
    if argument.kind != "list":
        return [value]
    try:
        loaded = json.loads(value)
    except ValueError:
        loaded = None
    return [str(item) for item in loaded] if isinstance(loaded, list) else value.split()


def changed(inputs: Inputs, settings: Sequence[Setting]) -> Inputs:
    """Return what a launch gives, with the settings of one cell in place of its own."""
    values, environment = dict(inputs.values), dict(inputs.environment)
    unknown = dict(inputs.unknown_values)
    for setting in settings:
        for name in (*setting.removed, *setting.values):
            values.pop(name, None)
            unknown.pop(name, None)
        values.update(setting.values)
        environment.update(setting.environment or {})
    left_open = (name for name in inputs.unknown_environment if name not in environment)
    return replace(
        inputs,
        values=values,
        unknown_values=unknown,
        environment=environment,
        unknown_environment=tuple(left_open),
    )
