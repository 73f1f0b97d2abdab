"""The arguments that a release declares, read from its source without importing it."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

from specmap.errors import TargetError
from specmap.scan.index import Tree
from specmap.scan.launch.arguments import Argument, Declarations, Field
from specmap.scan.launch.declaring import read_arguments, read_fields
from specmap.scan.release import release_in
from specmap.scan.vocabulary import Vocabulary

__all__ = ["Argument", "Declarations", "Field", "read"]


def read(root: Path, vocabulary: Vocabulary) -> Declarations:
    """Read the declarations of the tree below ``root``.

    Raises:
        TargetError: the settings class is not where the vocabulary says.
    """
    names = vocabulary.arguments
    tree = Tree(root, vocabulary.package)
    for dotted in names.modules:
        module = tree.module(dotted)
        classes = module.classes if module else {}
        for name in sorted(names.settings & set(classes)):
            owner = classes[name]
            fields = read_fields(tree, owner, names)
            arguments = read_arguments(tree, owner, fields, names)
            own = {field.declared.name: field.declared for field in fields}
            return Declarations(release_in(root), MappingProxyType(own), arguments, names.types)
    wanted = f"{' or '.join(sorted(names.settings))} in {' or '.join(names.modules)}"
    raise TargetError(f"{vocabulary.package}: no class {wanted}; is this a SGLang tree?")
