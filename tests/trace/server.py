"""A server that runs: the small tree of the rules' examples with a scheduler process and a torch.

Nothing is computed. ``torch.cuda.CUDAGraph`` is a class with the three methods that matter, and
``serve.py`` spawns one scheduler a rank, as SGLang does, and drives it for some cycles.
"""

from __future__ import annotations

from pathlib import Path

from tests.review_tree import edit, plant

_ARGUMENTS = "sglang/srt/server_args.py"
_MODEL = "sglang/srt/model_executor/model_runner.py"
_RUNNERS = (
    "sglang/srt/model_executor/cuda_graph_runner.py",
    "sglang/srt/speculative/eagle_draft_cuda_graph_runner.py",
    "sglang/srt/speculative/eagle_draft_extend_cuda_graph_runner.py",
)
_REPLAY = "        self.graphs[bs].replay()\n"
_SCHEDULER = "sglang/srt/managers/scheduler.py"

TORCH = """
import contextlib

int32, int64 = "int32", "int64"


class Tensor:
    def __getitem__(self, key):
        return self

    def to(self, dtype):
        return self

    def copy_(self, other):
        return self


def zeros(shape, dtype=None):
    return Tensor()


ones = zeros


@contextlib.contextmanager
def device(name):
    yield


from torch import cuda
"""

CUDA = """
class CUDAGraph:
    def capture_begin(self, *args, **kwargs):
        pass

    def capture_end(self):
        pass

    def replay(self):
        pass


class graph:
    def __init__(self, cuda_graph):
        self.cuda_graph = cuda_graph

    def __enter__(self):
        self.cuda_graph.capture_begin()

    def __exit__(self, *error):
        self.cuda_graph.capture_end()
"""

MODEL = """

class Model:
    def forward(self, input_ids, positions, forward_batch):
        return input_ids


def load_model(server_args):
    return Model()
"""

SCHEDULER = """

def run_scheduler_process(
    server_args: ServerArgs, port_args, gpu_id, tp_rank, moe_ep_rank, pp_rank, dp_rank, pipe_writer
):
    scheduler = Scheduler(server_args, port_args, gpu_id, tp_rank, moe_ep_rank, pp_rank, dp_rank)
    pipe_writer.send("ready")
    scheduler.event_loop(pipe_writer)
"""

LOOP = """
    def event_loop(self, requests):
        while True:
            size = requests.recv()
            if size is None:
                return
            tensor = torch.zeros((size,))
            batch = ScheduleBatch(
                reqs=[None] * size, forward_mode=ForwardMode.DECODE, input_ids=tensor,
                seq_lens=tensor, seq_lens_cpu=tensor, out_cache_loc=tensor, positions=tensor,
                device="cuda", seq_lens_sum=size,
            )
            self.run_batch(batch)
            requests.send("done")
"""

SERVE = '''
"""Usage: serve.py RANKS CYCLES SIZE PAUSE [ARGUMENT=VALUE ...]; CYCLES < 0 goes on until killed."""
import multiprocessing
import signal
import sys
import time

from sglang.srt.managers.scheduler import run_scheduler_process
from sglang.srt.server_args import ServerArgs

if __name__ == "__main__":
    ranks, cycles, size = map(int, sys.argv[1:4])
    pause = float(sys.argv[4])
    given = dict(pair.split("=") for pair in sys.argv[5:])
    server_args = ServerArgs(**{name: eval(value) for name, value in given.items()})
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for rank in range(ranks):
        ours, theirs = context.Pipe()
        process = context.Process(
            target=run_scheduler_process,
            args=(server_args, None, rank, rank, 0, 0, None, theirs),
            daemon=True,
        )
        process.start()
        theirs.close()
        pipes.append(ours)
        processes.append(process)
    for pipe in pipes:
        pipe.recv()
    print("ready", *(process.pid for process in processes), flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    done = 0
    try:
        while cycles < 0 or done < cycles:
            for pipe in list(pipes):
                try:
                    pipe.send(size)
                    pipe.recv()
                except (EOFError, OSError):
                    pipes.remove(pipe)
            if not pipes:
                break
            done += 1
            time.sleep(pause)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    for pipe in pipes:
        try:
            pipe.send(None)
        except OSError:
            pass
    for process in processes:
        process.join()
    print("served", done, flush=True)
'''


def plant_server(folder: Path) -> Path:
    """Write the tree, its torch and ``serve.py`` into ``folder`` and return it."""
    plant(folder)
    for package in sorted({path.parent for path in (folder / "sglang").rglob("*.py")}):
        (package / "__init__.py").touch()
    edit(
        folder,
        _ARGUMENTS,
        (
            "speculative_algorithm: str = None\n",
            "speculative_algorithm: str = 'EAGLE'\n    tp_size: int = 1\n",
        ),
    )
    for runner in _RUNNERS:  # real runners keep the size that they replay
        edit(folder, runner, (_REPLAY, "        self.bs = bs\n" + _REPLAY))
    edit(folder, _MODEL, ("\n\n@dataclass", MODEL + "\n\n@dataclass"))
    edit(
        folder,
        _SCHEDULER,
        ("from sglang.srt.managers.schedule_batch", "import torch\n\n"
         "from sglang.srt.model_executor.forward_batch_info import ForwardMode\n"
         "from sglang.srt.managers.schedule_batch"),
        ("    def __init__(self, server_args: ServerArgs):\n",
         "    def __init__(\n        self, server_args: ServerArgs, port_args, gpu_id, tp_rank,"
         " moe_ep_rank, pp_rank, dp_rank\n    ):\n"
         "        self.tp_rank, self.pp_rank, self.dp_rank = tp_rank, pp_rank, dp_rank\n"
         "        self.gpu_id = gpu_id\n"),
    )  # fmt: skip
    scheduler = folder / _SCHEDULER
    scheduler.write_text(scheduler.read_text("utf-8") + LOOP + SCHEDULER, "utf-8")
    (folder / "torch" / "cuda").mkdir(parents=True)
    (folder / "torch" / "__init__.py").write_text(TORCH, "utf-8")
    (folder / "torch" / "cuda" / "__init__.py").write_text(
        "from torch.cuda.graphs import CUDAGraph, graph\n"
        "\n\ndef is_initialized():\n    return False\n",
        "utf-8",
    )
    (folder / "torch" / "cuda" / "graphs.py").write_text(CUDA, "utf-8")
    (folder / "serve.py").write_text(SERVE, "utf-8")
    return folder
