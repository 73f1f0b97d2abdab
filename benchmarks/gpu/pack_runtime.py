"""Pack a small SGLang runtime for a GPU machine that reaches no package index.

    python pack_runtime.py 0.5.12 DEST      # v1 and v2 workers
    python pack_runtime.py 0.5.17 DEST      # v2 only; the newest release for torch 2.11

Writes DEST/site.tar.xz: SGLang and the packages that its speculative workers import, unpacked
side by side, for CPython 3.12 on x86-64 where torch 2.11 (CUDA 13), numpy, triton, ninja, nvcc
and huggingface-hub are installed. Of sglang-kernel only the Hopper library is kept, without
FlashAttention 3 and FlashMLA: run with ``attention_backend="triton"``. The packed packages
are for measurements and are never part of specmap. ``unpack.sh`` unpacks them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in (34, 31, 28, 27, 24, 17, 12, 5)] + [
    f"manylinux{year}_x86_64" for year in ("2014", "2010", "1")
]
# Pinned by the release, or by a package that the release pins.
PINNED = [
    "transformers", "flashinfer_python", "sglang-kernel", "apache-tvm-ffi", "sgl-deep-gemm",
    "openai", "openai-harmony",
]  # fmt: skip
OWNED = {"tokenizers": "transformers", "pydantic-core": "pydantic-2"}
ANY_VERSION = [
    "orjson", "pyzmq", "pybase64", "setproctitle", "msgspec", "fastapi", "starlette", "uvicorn",
    "pydantic", "annotated-types", "typing-inspection", "typing_extensions", "anyio", "idna",
    "ipython", "traitlets", "jiter", "distro", "sniffio", "partial_json_parser", "interegular",
    "python-multipart", "watchfiles", "gguf", "decorator", "stack-data", "matplotlib-inline",
    "parso", "prompt-toolkit", "pexpect", "ptyprocess", "wcwidth", "executing", "asttokens",
    "pure-eval", "ipython-pygments-lexers", "cloudpickle", "diskcache", "lark", "referencing",
    "jsonschema", "jsonschema-specifications", "rpds-py", "dill", "loguru", "opentelemetry-api",
    "compressed-tensors", "xxhash",
]  # fmt: skip
# Imported at module level by some releases, called for structured output only.
STUBS = ("xgrammar/__init__.py", "xgrammar/structural_tag.py", "modelscope/__init__.py")
STUB = '''"""Placeholder: this runtime has no structured output."""
import pydantic


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (pydantic.BaseModel,), {})
'''
# Large parts that these runs never load, by the first word of the wheel's name.
LEFT_OUT = {
    "sglang_kernel": (
        "sgl_kernel/flash_ops", "sgl_kernel/sm100", "sgl_kernel/flashmla_ops", "lib/", "lib64/",
        "include/", "_mscclpp",
    ),
    "flashinfer_python": ("flashinfer/data/cutlass", "flashinfer/data/cccl"),
}  # fmt: skip


def download(requirement: str, into: Path) -> Path:
    """Download one wheel for the GPU machine; return its path."""
    into.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
        "--only-binary=:all:", "--python-version", "3.12", "--implementation", "cp",
        "--dest", str(into), requirement,
    ]  # fmt: skip
    for platform in PLATFORMS:
        command += ["--platform", platform]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    name = re.split(r"[=<>!~\[]", requirement)[0].replace("-", "_").lower()
    found = [wheel for wheel in into.glob("*.whl") if wheel.name.lower().startswith(f"{name}-")]
    if done.returncode or not found:
        sys.exit(f"no wheel for {requirement}: {done.stderr.strip().splitlines()[-1:]}")
    return found[0]


def metadata_of(wheel: Path) -> str:
    """Return the METADATA file of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return archive.read(name).decode()


def pins_of(wheel: Path) -> dict[str, str]:
    """Return the exact versions that a wheel asks for, by lower-case name."""
    lines = re.findall(r"^Requires-Dist: (.*)$", metadata_of(wheel), re.MULTILINE)
    matches = (
        re.match(r"([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?==([^; ]+)", line)
        for line in lines
        if "extra ==" not in line
    )
    return {match[1].lower().replace("_", "-"): match[2] for match in matches if match}


def wheels_of(release: str, into: Path) -> list[Path]:
    """Download SGLang and everything that is packed with it."""
    sglang = download(f"sglang=={release}", into / release)
    pins = pins_of(sglang)
    wheels = [sglang]
    for name in PINNED:
        version = pins.get(name.lower().replace("_", "-"))
        wheels.append(download(f"{name}=={version}" if version else name, into / release))
    wheels += [download(name, into / "any") for name in ANY_VERSION]
    for name, owner in OWNED.items():
        parent = next(wheel for wheel in wheels if wheel.name.lower().startswith(owner))
        asked = re.search(rf"^Requires-Dist: {name}\s*\(?([^;\n)]*)", metadata_of(parent), re.M)
        wheels.append(download(name + (asked[1].strip() if asked else ""), into / release))
    return wheels


def main(release: str, folder: Path) -> None:
    """Write ``folder``/site.tar.xz."""
    site = folder / "site"
    shutil.rmtree(site, ignore_errors=True)
    site.mkdir(parents=True)
    for wheel in wheels_of(release, folder / "wheels"):
        left_out = LEFT_OUT.get(wheel.name.split("-")[0], ())
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site, [n for n in archive.namelist() if not n.startswith(left_out)])
    for stub in STUBS:
        (site / stub).parent.mkdir(exist_ok=True)
        (site / stub).write_text(STUB)
    packed = folder / "site.tar.xz"
    with tarfile.open(packed, "w:xz", preset=4) as tar:
        tar.add(site, arcname=".")
    print(f"{packed}: {packed.stat().st_size / 2**20:.1f} MiB, sglang {release}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
