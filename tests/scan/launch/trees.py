"""Small trees that declare their launch arguments in the three ways that SGLang has had."""

from __future__ import annotations

BY_HAND = {
    "sglang/__init__.py": "",
    "sglang/version.py": '__version__ = "0.5.9"\n',
    "sglang/srt/utils/names.py": 'KINDS = ("a", "b")\n',
    "sglang/srt/server_args.py": """
import argparse
import dataclasses
import json
from typing import List, Optional

from sglang.srt.utils.names import KINDS

BACKENDS = ["triton", "fa3"]
OPEN = {"x"}
if len(BACKENDS) > 9:
    OPEN.add("y")


@dataclasses.dataclass
class ServerArgs:
    model_path: str
    tp_size: int = 1
    max_tokens: Optional[int] = 8 * 1024
    cuda_graph_bs: Optional[List[int]] = None
    attention_backend: Optional[str] = None
    kind: str = "a"
    open_kind: str = "x"
    fraction: float = 0.9
    enable_x: bool = True
    lora: Optional[str] = None
    override: str = "{}"
    quant: Optional[str] = None
    urls: List[str] = dataclasses.field(default_factory=list)
    port: int = find_port()

    @staticmethod
    def add_cli_args(parser: argparse.ArgumentParser):
        parser.add_argument("--model-path", "--model", type=str, required=True)
        parser.add_argument(
            "--tensor-parallel-size", "--tp-size", type=int, default=ServerArgs.tp_size
        )
        parser.add_argument("--max-tokens", type=int, default=ServerArgs.max_tokens)
        parser.add_argument("--cuda-graph-bs", type=int, nargs="+")
        parser.add_argument("--attention-backend", type=str, choices=BACKENDS)
        parser.add_argument("--kind", type=str, choices=["auto"] + list(KINDS), default="a")
        parser.add_argument("--open-kind", type=str, choices=OPEN)
        parser.add_argument("--fraction", type=float, default=ServerArgs.fraction)
        parser.add_argument("--enable-x", action="store_true")
        parser.add_argument("--lora", action=argparse.BooleanOptionalAction)
        parser.add_argument("--override", type=json.loads)
        parser.add_argument("--quant", type=nullable_str)
        parser.add_argument("--gone", action=DeprecatedAction, help="Use --kind instead.")
        parser.add_argument("--config", type=str)

    @classmethod
    def from_cli_args(cls, args):
        args.tp_size = args.tensor_parallel_size
        return cls()
""",
}

ANNOTATED = {
    "sglang/__init__.py": "",
    "sglang/version.py": '__version__ = "0.5.14"\n',
    "sglang/srt/server_args.py": """
import argparse
from typing import List, Literal, Optional

from sglang.srt.arg_groups.arg_utils import A, Arg


class Backend:
    FULL = "full"
    OFF = "disabled"
    ALL = (FULL, OFF)


class ServerArgs:
    model_path: A[str, Arg(help="h", aliases=["--model"])]
    tp_size: A[int, Arg(help="h", aliases=["--tensor-parallel-size"])] = 1
    cuda_graph_max_bs_decode: A[Optional[int], "h"] = None
    cuda_graph_max_bs_prefill: A[int | None, "h"] = None
    cuda_graph_bs_decode: A[Optional[List[int]], "h"] = None
    graph: A[Optional[Literal["full", "disabled"]], "h"] = "full"
    backend: A[str, Arg(help="h", choices=Backend.ALL)] = Backend.FULL
    chunk: A[Optional[int], Arg(help="h", type_parser=human_readable_int, fallback=64)] = None
    gemm: A[str, Arg(help="h", cli_name="--gemm-backend")] = "auto"
    disable_x: A[bool, "h"] = False
    disable_cuda_graph: A[bool, Arg(no_cli=True)] = False
    window: Optional[int] = None
    paths: A[Optional[List[str]], Arg(action=LoRAPathAction, action_kwargs={"nargs": "*"})] = None

    @staticmethod
    def add_cli_args(parser: argparse.ArgumentParser):
        add_cli_args_from_dataclass(parser, ServerArgs)
        parser.add_argument(
            "--cuda-graph-max-bs",
            type=int,
            action=DeprecatedAliasStoreAction,
            new_flag="--cuda-graph-max-bs-decode",
            dest="cuda_graph_max_bs_decode",
        )
        parser.add_argument(
            "--disable-cuda-graph",
            action=DeprecatedStoreTrueAction,
            new_flag="--graph=disabled",
        )
        parser.add_argument(
            "--disable-graph",
            action=DeprecatedStoreConstAction,
            dest="graph",
            const_value=Backend.OFF,
        )
        parser.add_argument("--old", action=DeprecatedAction, error_message="use --graph")
""",
}

ASSEMBLED = {
    "sglang/__init__.py": "",
    "sglang/version.py": '__version__ = "0.5.23"\n',
    "sglang/srt/arg_groups/fields/spec.py": """
import msgspec
from sglang.srt.arg_groups.arg_utils import A, Arg


class Spec(msgspec.Struct):
    _NS_PATH = "spec"
    algorithm: A[Optional[str], "h"] = None
    cuda_graph_max_bs_decode: A[Optional[int], "h"] = None
""",
    "sglang/srt/arg_groups/fields/model.py": """
import msgspec
from sglang.srt.arg_groups.arg_utils import A, Arg


class Model(msgspec.Struct):
    model_path: A[str, Arg(help="h", aliases=["--model"])]
    cuda_graph_max_bs_prefill: A[Optional[int], "h"] = None
    metrics: A[List[str], "h"] = msgspec.field(default_factory=list)
    sampling: A[Optional[str], Arg(no_cli=True)] = "pytorch"
""",
    "sglang/srt/server_args.py": """
from sglang.srt.arg_groups.fields.model import Model
from sglang.srt.arg_groups.fields.spec import Spec


class ServerArgs:
    @staticmethod
    def add_cli_args(parser):
        add_cli_args_from_dataclass(parser, ServerArgs)
        parser.add_argument(
            "--sampling", type=str, choices=dynamic(), default=_declared_default("sampling")
        )


_INPUT_NAMESPACES = [Spec, Model]
""",
}
