"""Puts the parts of the interpreter together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from specmap.scan.launch.attributes import MISSING, Attributes
from specmap.scan.launch.builtin import Builtins
from specmap.scan.launch.calls import Calls
from specmap.scan.launch.expressions import Expressions
from specmap.scan.launch.library import Library
from specmap.scan.launch.loading import Loader
from specmap.scan.launch.machine import Machine
from specmap.scan.launch.methods import Methods
from specmap.scan.launch.modelclasses import ModelClasses
from specmap.scan.launch.outside import Outside
from specmap.scan.launch.statements import Statements
from specmap.scan.launch.tables import Inputs, Tables
from specmap.scan.launch.typetests import TypeNames
from specmap.scan.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A machine, ready to run, with what its parts answer from."""

    machine: Machine
    loader: Loader
    calls: Calls
    tables: Tables
    builtins: Builtins


def interpreter(library: Library, inputs: Inputs, vocabulary: Vocabulary) -> Interpreter:
    """Build a machine that runs the modules of a library under some inputs."""
    machine = Machine()
    words = vocabulary.launch_words
    models = ModelClasses(library, words.models, words.renamed_in)
    tables = Tables(machine, inputs, vocabulary, models)
    outside = Outside(machine, tables, TypeNames(words.views, words.config_kind))
    machine.contains = outside.contains
    machine.is_replaced = tables.is_word
    machine.is_overridden = partial(library.is_overridden, vocabulary.scope)
    machine.declare_items = tables.declare_items
    loader = Loader(machine, library, words.registries, vocabulary.plugins)

    def attribute_or(value: object, name: str) -> object:
        return attributes.find(value, name)

    builtins = Builtins(machine, attribute_or, MISSING, tables.absent)
    methods = Methods(machine, builtins.each)
    attributes = Attributes(
        machine,
        methods.find,
        tables.replaced,
        outside.constant,
        words.stash,
        words.bag_modules,
    )
    own = (*words.registries, *(name.rpartition(".")[0] for name in words.capture))
    calls = Calls(machine, tables.replaced, outside.call, own)
    Expressions(machine, builtins.find)
    Statements(machine, library, builtins.find, words.ignored)
    return Interpreter(machine, loader, calls, tables, builtins)
