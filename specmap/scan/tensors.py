"""PyTorch's tensor functions by what they do to device, dtype and the host.

Facts of the PyTorch API (torch documentation: Tensor, creation ops, ``nonzero``,
``repeat_interleave``, CUDA semantics), not of SGLang.
"""

from __future__ import annotations

import ast

from specmap.scan.module import last_name

FACTORIES = frozenset(
    [
        "arange",
        "as_tensor",
        "asarray",
        "empty",
        "empty_strided",
        "eye",
        "full",
        "linspace",
        "normal",
        "ones",
        "rand",
        "randint",
        "randn",
        "randperm",
        "tensor",
        "zeros",
    ]
)
# Factories that copy host data: with a device they copy it there and wait.
FROM_HOST_DATA = frozenset({"tensor", "as_tensor", "asarray"})
# Functions whose size arguments are Python numbers: a device tensor is read back first.
SIZED = frozenset(
    ["arange", "empty", "full", "linspace", "ones", "rand", "randn", "range", "zeros"]
)
SIZED_METHODS = frozenset(
    [
        "expand",
        "narrow",
        "new_empty",
        "new_full",
        "new_ones",
        "new_zeros",
        "repeat",
        "reshape",
        "resize_",
        "view",
    ]
)
# The size of the result is the data's: the host waits for it.
DATA_SIZED = frozenset(
    ["argwhere", "bincount", "masked_select", "nonzero", "unique", "unique_consecutive"]
)
# The result is a Python bool.
HOST_TESTS = frozenset({"allclose", "equal", "is_nonzero"})
MOVES = frozenset({"to", "cpu", "cuda", "numpy"})
HOST_ATTRIBUTES = frozenset(
    [
        "device",
        "dtype",
        "grad_fn",
        "is_cpu",
        "is_cuda",
        "itemsize",
        "layout",
        "nbytes",
        "ndim",
        "requires_grad",
        "shape",
    ]
)
SAME_ATTRIBUTES = frozenset({"T", "mT", "data", "real"})
HOST_METHODS = frozenset(
    [
        "allclose",
        "data_ptr",
        "dim",
        "element_size",
        "equal",
        "get_device",
        "is_contiguous",
        "is_floating_point",
        "is_nonzero",
        "is_pinned",
        "item",
        "ndimension",
        "nelement",
        "numel",
        "size",
        "storage_offset",
        "stride",
        "tolist",
        "untyped_storage",
    ]
)
# Methods that give several tensors.
PAIRS = frozenset(
    [
        "chunk",
        "kthvalue",
        "max_pool2d",
        "mode",
        "nonzero_tuple",
        "sort",
        "split",
        "topk",
        "unbind",
        "tensor_split",
    ]
)
NOT_TENSORS = frozenset(
    [
        "device",
        "dtype",
        "get_device_module",
        "is_available",
        "is_tensor",
        "current_stream",
        "compile",
        "equal",
        "allclose",
        "is_nonzero",
        "get_default_dtype",
        "finfo",
        "iinfo",
        "current_device",
        "no_grad",
        "inference_mode",
        "synchronize",
        "device_count",
        "get_device_capability",
        "is_grad_enabled",
        "mem_get_info",
        "_profiler_enabled",
        "nvtx",
        "range_push",
        "range_pop",
        "stream",
        "manual_seed",
        "is_floating_point",
    ]
)
_BOOLEAN = frozenset(
    [
        "all",
        "any",
        "bool",
        "eq",
        "ge",
        "gt",
        "isfinite",
        "isin",
        "isinf",
        "isnan",
        "le",
        "logical_and",
        "logical_not",
        "logical_or",
        "logical_xor",
        "lt",
        "ne",
        "not_equal",
        "greater",
        "less",
        "bitwise_not",
    ]
)
_KEEPS = frozenset(
    [
        "clone",
        "contiguous",
        "cpu",
        "cuda",
        "detach",
        "expand",
        "expand_as",
        "flatten",
        "flip",
        "index_select",
        "narrow",
        "permute",
        "pin_memory",
        "repeat",
        "reshape",
        "ravel",
        "roll",
        "squeeze",
        "t",
        "transpose",
        "unsqueeze",
        "view",
    ]
)
_DTYPES = frozenset(
    [
        "bfloat16",
        "bool",
        "double",
        "float",
        "float16",
        "float32",
        "float64",
        "half",
        "int",
        "int16",
        "int32",
        "int64",
        "int8",
        "long",
        "short",
        "uint16",
        "uint32",
        "uint64",
        "uint8",
    ]
)
_TENSOR_TYPES = frozenset(
    [
        "torch.Tensor()",
        "torch.LongTensor()",
        "torch.IntTensor()",
        "torch.BoolTensor()",
        "torch.FloatTensor()",
        "torch.cuda.LongTensor()",
        "numpy.ndarray()",
    ]
)


def is_tensor_type(name: str) -> bool:
    """Whether an external value's name says that it is a tensor."""
    return name in _TENSOR_TYPES


def waits_for_device(name: str) -> bool:
    """Whether ``synchronize`` under this dotted name is a stream's, an event's or a device's."""
    parts = name.replace("()", "").split(".")
    owners = {"Stream", "Event", "accelerator", "cuda", "get_device_module", "npu", "xpu", "musa"}
    return parts[0] == "torch" and bool(owners & set(parts[1:-1]))


def is_bool_dtype(node: ast.expr) -> bool:
    """Whether a dtype expression is ``torch.bool`` or ``bool``."""
    return last_name(node) == "bool"


def dtype_argument(node: ast.Call) -> ast.expr | None:
    """Return the dtype that a call asks for."""
    for keyword in node.keywords:
        if keyword.arg == "dtype":
            return keyword.value
    for part in node.args:
        if isinstance(part, ast.Attribute | ast.Name):
            name = last_name(part)
            if name in _DTYPES or name.endswith("dtype"):
                return part
    return None


def names_device(node: ast.expr) -> bool:
    """Whether a positional argument of ``to`` is a device and not a dtype."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str | int) and not isinstance(node.value, bool)
    return isinstance(node, ast.JoinedStr) or "device" in last_name(node)


def result_is_bool(node: ast.Call, name: str, receiver: bool) -> bool:
    """Whether a tensor function gives a bool tensor."""
    dtype = dtype_argument(node)
    if dtype is not None:
        return is_bool_dtype(dtype)
    return name in _BOOLEAN or (receiver and name in _KEEPS)


def flag(node: ast.Call, name: str) -> bool:
    """Whether a call passes ``name=True`` (or something other than a constant)."""
    for keyword in node.keywords:
        if keyword.arg == name:
            value = keyword.value
            return not isinstance(value, ast.Constant) or bool(value.value)
    return False
