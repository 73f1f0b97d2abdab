"""What the tracer has to know by name: the table ``[trace]`` of the vocabulary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specmap.errors import RulesError


@dataclass(frozen=True, slots=True)
class TraceNames:
    """Names by meaning; see the comments in ``rules/vocabulary.toml``.

    ``decisions`` are the methods that say whether a runner can replay. ``sizes`` says how a
    test compares the batch with what was captured (``at most``, ``one of``), ``mode_tests``
    which tests only say that a runner is for another forward mode, ``disabled`` which
    settings turn graphs off, and in which phases. ``idle_modes`` are modes without a request.
    ``width`` and the last three are settings: the verify tokens of a request, and what the
    number of ranks is made of.
    """

    package: str
    mode_enum: str
    mode_attribute: str
    batch_parameters: tuple[str, ...]
    batch_size: tuple[str, ...]
    graph_classes: tuple[str, ...]
    graph_replay: tuple[str, ...]
    graph_capture: tuple[str, ...]
    graph_size: tuple[str, ...]
    collective_kernels: tuple[str, ...]
    accept_calls: tuple[str, ...]
    accept_requests: str
    accept_tokens: tuple[str, ...]
    rank_processes: tuple[str, ...]
    rank_names: Mapping[str, tuple[str, ...]]
    rank_title: str
    decisions: tuple[str, ...]
    sizes: Mapping[str, str]
    mode_tests: tuple[str, ...]
    disabled: Mapping[str, str]
    idle_modes: tuple[str, ...]
    width: tuple[str, ...]
    parallel: tuple[str, ...]
    replicas: tuple[str, ...]
    replicas_inside: tuple[str, ...]


def names_of(data: Mapping[str, Mapping[str, Sequence[str]]]) -> TraceNames:
    """Read the tables of a parsed vocabulary.

    Raises:
        RulesError: a key is missing.
    """
    try:
        trace = data["trace"]
        return TraceNames(
            package=data["tree"]["package"][0],
            mode_enum=trace["mode_enum"][0],
            mode_attribute=data["mode"]["attribute"][0],
            batch_parameters=tuple(trace["batch_parameters"]),
            batch_size=tuple(trace["batch_size"]),
            graph_classes=tuple(trace["graph_classes"]),
            graph_replay=tuple(trace["graph_replay"]),
            graph_capture=tuple(trace["graph_capture"]),
            graph_size=tuple(trace["graph_size"]),
            collective_kernels=tuple(trace["collective_kernels"]),
            accept_calls=tuple(trace["accept_calls"]),
            accept_requests=trace["accept_requests"][0],
            accept_tokens=tuple(trace["accept_tokens"]),
            rank_processes=tuple(trace["rank_processes"]),
            rank_names={k: (v,) for k, v in _pairs(trace["rank_names"], "=").items()},
            rank_title=trace["rank_title"][0],
            decisions=tuple(data["runner"]["decisions"]),
            sizes=_sizes(data["verdict"]),
            mode_tests=tuple(trace["mode_tests"]),
            disabled=_pairs(trace["disabled"], "="),
            idle_modes=tuple(data["modes"]["idle"]),
            width=tuple(data["verdict"]["width"]),
            parallel=tuple(trace["parallel"]),
            replicas=tuple(trace["replicas"]),
            replicas_inside=tuple(trace["replicas_inside"]),
        )
    except (KeyError, IndexError, TypeError) as error:
        raise RulesError(f"vocabulary.toml: table [trace]: missing or wrong key {error}") from error


def _sizes(table: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the tests against what was captured, each with every name of the batch size."""
    tests = _pairs(table["sizes"], " := ")
    return {
        f"{name} {test.removeprefix('bs ')}" if test.startswith("bs ") else test: how
        for test, how in tests.items()
        for name in table["batch_size"]
    }


def _pairs(items: Sequence[str], between: str) -> dict[str, str]:
    return {left: right for left, _, right in (item.partition(between) for item in items)}
