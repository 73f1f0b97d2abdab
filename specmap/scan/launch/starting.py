"""What a server does between its arguments and its first request."""

from __future__ import annotations

from specmap.scan.launch.carrying import Carriers
from specmap.scan.launch.interpreter import Interpreter
from specmap.scan.launch.values import Bound, Class, Function
from specmap.scan.parse import module_name
from specmap.scan.vocabulary import LaunchWords


def adjust(run: Interpreter, carriers: Carriers, words: LaunchWords) -> None:
    """Run the methods of the target's runner that change settings before a worker is made.

    Raises:
        Raised: they stop the start.
    """
    for name in words.adjust:
        found = carriers.of_runner(name)
        if found is not None:
            run.machine.invoke(found[-1], [], {})


def make_worker(
    run: Interpreter, carriers: Carriers, words: LaunchWords, file: str, name: str
) -> object:
    """Run the constructor of a worker class, then what a server calls on the new worker.

    Functions outside the worker's package and the argument code are not run: what they return
    is not known, and the settings stay as they were derived.

    Raises:
        Raised: the worker cannot be made, whatever the unknown facts are.
    """
    machine = run.machine
    dotted = module_name(file)
    cls = carriers.dotted(f"{dotted}.{name}")
    if not isinstance(cls, Class):
        return None
    machine.within = (f"{dotted.rpartition('.')[0]}.", *words.registries, *words.names_in)
    try:
        worker = machine.invoke(cls, _arguments(run, carriers, cls), {})
        for method in words.started:
            call = machine.attribute(worker, method)
            if isinstance(call, Bound):
                machine.invoke(call, [], {})
    finally:
        machine.within = ()
    return worker


def _arguments(run: Interpreter, carriers: Carriers, cls: Class) -> list[object]:
    """Return what stands under the names of the constructor's parameters in a server."""
    owner = next((c for c in cls.mro() if "__init__" in c.slots), None)
    init = run.machine.read(owner, "__init__") if owner is not None else None
    if not isinstance(init, Function):
        return []
    return [carriers.named(parameter.arg) for parameter in init.node.args.args[1:]]
