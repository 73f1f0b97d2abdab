"""Which rank this process is, and the facts of its run."""

from __future__ import annotations

import enum
import importlib.metadata
import os
import platform
import re
import sys
from time import clock_gettime_ns, monotonic_ns
from typing import Any

from .shape import parameters
from .wrapplan import Plan

_TITLE_RANK = re.compile(r"_(TP|PP|DP)(\d+)")
_RANKS = ("tp_rank", "pp_rank", "dp_rank", "gpu_id")
_PREFIXES = ("SGLANG_", "NCCL_", "CUDA_")
_SECRET = {
    "key", "keys", "token", "password", "passphrase", "secret", "credential", "credentials",
}  # fmt: skip
_LONGEST_TEXT, _LONGEST_LIST, _DEEPEST = 400, 64, 3


class Identity:
    """What is known of this rank; ``see`` adds what an object or a call's arguments tell."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.ranks: dict[str, int] = {}
        self.arguments: dict[str, Any] = {}
        self._server: Any = None

    def see(self, get: Any) -> None:
        """Take ranks and server arguments from ``get(name)``, which returns None for unknown."""
        names = self._plan.rank_names
        for key in _RANKS:
            for name in names.get(key, ()):
                value = get(name)
                if isinstance(value, int) and not isinstance(value, bool):
                    self.ranks.setdefault(key, value)
        for name in names.get("arguments", ()):
            self._server = get(name) or self._server

    def see_call(self, function: Any, args: Any, kwargs: Any) -> None:
        """Take them from a call's arguments."""
        given = {**dict(zip(parameters(function), args)), **kwargs}  # noqa: B905
        self.see(given.get)

    def read_arguments(self) -> None:
        """Read the server's arguments as they stand now."""
        if self._server is not None:
            self.arguments = arguments_of(self._server)

    @property
    def rank(self) -> str:
        """Return the name of this rank's files."""
        ranks = self.known_ranks()
        numbers = "-".join(str(ranks.get(key) or 0) for key in _RANKS[:3])
        return f"rank-{numbers}-{os.getpid()}"

    def known_ranks(self) -> dict[str, int]:
        """Return the ranks, from objects first, then from the title of the process."""
        titled = {
            f"{kind.lower()}_rank": int(number) for kind, number in _TITLE_RANK.findall(title())
        }
        return {**titled, **self.ranks}


def title() -> str:
    """Return the title of this process, as ``ps`` shows it."""
    try:
        with open("/proc/self/cmdline", "rb") as file:
            return file.read(400).replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return sys.argv[0] if sys.argv else ""


def arguments_of(server: Any, depth: int = 0) -> dict[str, Any]:
    """Return an arguments object's fields that are plain values, secrets left out."""
    found = {}
    for name in _fields(server):
        try:
            shown = _plain(getattr(server, name), depth)
        except Exception:
            continue
        if not name.startswith("_") and shown is not NotImplemented:
            found[name] = _without_secret(name, shown)
    return found


def _fields(thing: Any) -> list[str]:
    """Return the names of a record's fields: a plain object, a dataclass, or a struct."""
    declared = [
        getattr(type(thing), name, ()) for name in ("__struct_fields__", "__dataclass_fields__")
    ]
    return list(dict.fromkeys([*(one for some in declared for one in some), *_own(thing)]))


def _own(thing: Any) -> list[str]:
    return list(vars(thing)) if hasattr(thing, "__dict__") else []


def _plain(value: Any, depth: int) -> Any:
    """Return what JSON can hold of a value; NotImplemented for anything else."""
    if isinstance(value, enum.Enum):
        return value.value if isinstance(value.value, (str, int)) else value.name
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return value[:_LONGEST_TEXT]
    if depth >= _DEEPEST:
        return NotImplemented
    if isinstance(value, (list, tuple)) and len(value) <= _LONGEST_LIST:
        parts = [_plain(one, depth + 1) for one in value]
        return NotImplemented if NotImplemented in parts else parts
    if isinstance(value, dict) and len(value) <= _LONGEST_LIST:
        pairs = {str(key): _plain(one, depth + 1) for key, one in value.items()}
        return {
            key: _without_secret(key, one)
            for key, one in pairs.items()
            if one is not NotImplemented
        }
    known = ("__struct_fields__", "__dataclass_fields__")
    if any(hasattr(type(value), name) for name in known):
        return arguments_of(value, depth + 1)
    return NotImplemented


def _without_secret(name: str, value: Any) -> Any:
    hidden = value and _SECRET & set(name.lower().split("_"))
    return "<hidden>" if hidden and not isinstance(value, (bool, int)) else value


def environment() -> dict[str, str]:
    """Return the variables that change how a server runs, secrets left out."""
    return {
        name: str(_without_secret(name, value))
        for name, value in sorted(os.environ.items())
        if name.startswith(_PREFIXES)
    }


def versions(package: str) -> dict[str, Any]:
    """Return the versions of Python, the traced package, torch and the GPU's driver."""
    torch = sys.modules.get("torch")
    try:
        version: str | None = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        version = getattr(sys.modules.get(package), "__version__", None)
    return {
        "python": platform.python_version(),
        "sglang": version,
        "torch": str(getattr(torch, "__version__", "")) or None,
        "driver": _driver(),
    }


def _driver() -> str | None:
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8") as file:
            found = re.search(r"\s(\d+\.\d+(\.\d+)?)\s", file.readline())
    except OSError:
        return None
    return found and found[1]


def gpu() -> dict[str, Any]:
    """Return the GPU's name, memory and compute capability times ten, as far as they are known.

    Asked on the scheduler's thread, and never initialises CUDA.
    """
    found: dict[str, Any] = {}
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    try:
        if cuda is not None and cuda.is_initialized():
            found["gpu"] = str(cuda.get_device_name())
            about = cuda.get_device_properties(cuda.current_device())
            found["gpu_memory_bytes"] = int(about.total_memory)
            found["gpu_sm"] = 10 * int(about.major) + int(about.minor)
    except Exception as error:
        found["gpu_note"] = f"{type(error).__name__}: {error}"
    return found


def machine() -> dict[str, str]:
    """Return this machine's name and the number of its start."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
    except OSError:
        boot = ""
    return {"host": platform.node(), "boot_id": boot}


def clock_pair() -> list[int]:
    """Return [monotonic ns, real-time ns], read together."""
    return [monotonic_ns(), clock_gettime_ns(0)]
