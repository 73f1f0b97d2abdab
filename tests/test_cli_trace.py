"""``specmap trace`` against a server that runs: the whole way, from the command to the report."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar, TypeVar

import duckdb
import pytest

from tests.review_tree import edit_everywhere
from tests.trace.recorded import NGRAM
from tests.trace.server import plant_server

SECONDS = 120
T = TypeVar("T")


@dataclass(frozen=True)
class Bench:
    """A planted server, and the folder that this test works in."""

    tree: Path
    folder: Path
    cache: Path

    @property
    def run(self) -> Path:
        return self.folder / "run"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def serve(self, *arguments: object) -> list[str]:
        return [sys.executable, str(self.tree / "serve.py"), *map(str, arguments)]

    def specmap(self, *arguments: object) -> list[str]:
        return [sys.executable, "-m", "specmap", "trace", *map(str, arguments)]

    def live(self, *arguments: object) -> list[str]:
        return self.specmap("--live", "--dir", self.run, "--log", self.log, *arguments)

    @property
    def environment(self) -> dict[str, str]:
        # Another folder for sockets than the user's: tests must not meet a real server.
        return {
            **os.environ,
            "SPECMAP_CACHE_DIR": str(self.cache),
            "SPECMAP_SOCKETS": str(self.folder),
        }

    def trace(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            list(map(str, arguments)), cwd=self.folder, env=self.environment,
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip

    @contextmanager
    def started(self, *arguments: object) -> Iterator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            list(map(str, arguments)), cwd=self.folder, env=self.environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def ranks(self) -> list[int]:
        """Return the processes of the ranks, once the server is up."""
        return [int(pid) for pid in self.logged(r"ready (.*)\n").split()]

    def logged(self, pattern: str) -> str:
        return waited(lambda: re.search(pattern, text_of(self.log)), pattern)[1]


def text_of(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


def waited(look: Callable[[], T | None], what: str) -> T:
    until = time.monotonic() + SECONDS
    while not (found := look()):
        assert time.monotonic() < until, f"never came: {what}"
        time.sleep(0.02)
    return found


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return plant_server(tmp_path_factory.mktemp("tree") / "t"), tmp_path_factory.mktemp("cache")


@pytest.fixture
def bench(planted: tuple[Path, Path], tmp_path: Path) -> Bench:
    tree, cache = planted
    return Bench(tree, tmp_path, cache)


def problems(bench: Bench, folder: Path | None = None) -> dict[str, str]:
    """Return the findings by kind, but for ranks that waited for a busy machine."""
    done = bench.trace(*bench.specmap("read", folder or bench.run, "-f", "json"))
    found = {f["problem"]: f["message"] for f in json.loads(done.stdout)["findings"]}
    return {problem: said for problem, said in found.items() if problem != "slow-rank"}


def phases(bench: Bench, folder: Path | None = None) -> dict[str, list[tuple[str, int]]]:
    """Return each phase's states and counts, one entry a rank."""
    done = bench.trace(*bench.specmap("read", folder or bench.run, "-f", "json"))
    found: dict[str, list[tuple[str, int]]] = {}
    for rank in json.loads(done.stdout)["ranks"]:
        for phase in rank["phases"]:
            for state, count in phase["counts"].items():
                found.setdefault(phase["phase"], []).append((state, count))
    return found


def test_every_cycle_of_every_rank_is_seen(bench: Bench) -> None:
    """Batches of 4 fit the captured sizes 1, 2, 4, 8 of the tree: all three phases replay."""
    done = bench.trace(*bench.live("--", *bench.serve(2, 30, 4, 0)))
    assert done.stderr == ""
    assert problems(bench) == {}
    assert text_of(bench.log).endswith("served 30\n")
    assert "EAGLEWorker" in done.stdout
    graph = [("GRAPH", 30)] * 2
    assert phases(bench) == {"draft": graph, "verify": graph, "draft_extend": graph}


def test_a_batch_above_the_captured_sizes_is_a_finding(bench: Bench) -> None:
    """The tree captures up to 8; draft then calls the draft model three times a cycle."""
    done = bench.trace(*bench.live("--", *bench.serve(1, 12, 9, 0)))
    assert (done.returncode, done.stderr) == (1, "")
    assert "bs 9 > largest captured 8" in done.stdout
    eager = [("EAGER", 12)]
    assert phases(bench) == {"draft": eager, "verify": eager, "draft_extend": eager}
    again = bench.trace(*bench.specmap("read", bench.run))
    assert (again.returncode, f"{again.stdout}\nRecorded in run\n") == (1, done.stdout)


def test_the_call_graph_shows_what_ran_on_it(bench: Bench) -> None:
    bench.trace(*bench.live("--", *bench.serve(1, 12, 9, 0)))
    arguments = ("-f", "dot", "--phase", "verify", "-o", "verify.dot")
    done = bench.trace(*bench.specmap("read", "run", *arguments))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    drawn = text_of(bench.folder / "verify.dot")
    assert re.search(r'label="verify :\d+\\n12 calls"', drawn)
    assert "12 EAGER" in drawn
    wrong = bench.trace(*bench.specmap("read", "run", "-f", "dot", "--worker", "EagleWorkr"))
    assert wrong.returncode == 2
    assert "did you mean EAGLEWorker" in wrong.stderr


def test_graphs_that_the_launch_turned_off(bench: Bench) -> None:
    command = bench.serve(1, 5, 4, 0, "disable_cuda_graph=True")
    done = bench.trace(*bench.live("--", *command))
    assert done.returncode == 1
    assert "disabled (disable_cuda_graph)" in done.stdout
    # The command is a script: the source was judged by the arguments that the rank ran with.
    read = bench.trace(*bench.specmap("read", bench.run, "-f", "json"))
    rows = {row["phase"]: row for row in json.loads(read.stdout)["joined"]}
    for phase in ("draft", "verify", "draft_extend"):
        assert (rows[phase]["expected"], rows[phase]["agreement"]) == ("EAGER", "agree")


def test_no_cycle_fails_and_says_why(bench: Bench) -> None:
    done = bench.trace(*bench.live("--", *bench.serve(1, 0, 4, 0)))
    assert done.returncode == 2
    assert done.stderr.startswith("specmap: ")
    assert done.stderr.count("\n") == 1
    assert "request" in done.stderr


def test_another_sglang_than_the_plans_is_told(bench: Bench) -> None:
    """The plan is of a tree whose worker has another name than the one that is served."""
    other = plant_server(bench.folder / "other")
    edit_everywhere(other, {"EAGLEWorker": "OTHERWorker"})
    done = bench.trace(*bench.live("--target", other, "--", *bench.serve(1, 9, 4, 0)))
    assert done.returncode == 2
    assert text_of(bench.log).endswith("served 9\n")
    assert done.stderr.count("\n") == 1
    assert "OTHERWorker" in done.stderr
    assert "the plan was made for" in done.stderr


def test_another_release_than_the_servers_is_refused_before_it_starts(bench: Bench) -> None:
    trees = [plant_server(bench.folder / name) for name in ("named", "served")]
    for tree, release in zip(trees, ("0.5.3", "0.5.9"), strict=True):
        (tree / "sglang" / "version.py").write_text(f'__version__ = "{release}"\n', "utf-8")
    serve = [sys.executable, str(trees[1] / "serve.py"), "1", "5", "4", "0"]
    done = bench.trace(*bench.live("--target", trees[0], "--", *serve))
    assert (done.returncode, done.stdout) == (2, "")
    assert "is release 0.5.3, and the server imports 0.5.9" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not bench.run.exists()
    assert not bench.log.exists()


@pytest.mark.parametrize("what", ["log", "command"])
def test_a_run_that_did_not_begin_leaves_nothing(bench: Bench, what: str) -> None:
    if what == "log":
        command = bench.specmap("--live", "--dir", bench.run, "--log", bench.folder / "no" / "log")
        done = bench.trace(*command, "--", *bench.serve(1, 5, 4, 0))
        assert "name another --log" in done.stderr
    else:
        (bench.folder / "empty").touch(0o755)
        done = bench.trace(*bench.live("--target", bench.tree, "--", bench.folder / "empty"))
        assert "cannot start" in done.stderr
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert not bench.run.exists()


def test_damaged_files_are_told_and_the_rest_is_shown(bench: Bench) -> None:
    bench.trace(*bench.live("--", *bench.serve(2, 6, 4, 0)))
    for path in bench.run.glob("*.parquet"):
        path.unlink()
    (first, *_) = sorted(bench.run.glob("rank-0-*.spool"))
    first.write_bytes(b"no spool" * 20)
    (bench.run / "run.json").write_text("{", "utf-8")
    done = bench.trace(*bench.specmap("read", bench.run, "--target", bench.tree))
    assert done.returncode == 2
    assert phases(bench)["verify"] == [("GRAPH", 6)]
    lines = done.stderr.splitlines()
    assert [line for line in lines if line.startswith("specmap: run.json: no JSON; ")]
    assert [line for line in lines if line.startswith(f"specmap: {first.name}: not a spool")]
    assert "GRAPH" in done.stdout
    assert len(list(bench.run.glob("rank-1-*.passes.parquet"))) == 1


@pytest.mark.parametrize(
    "words",
    [("--live", "--dir", "", "--", "true"), ("read", ""), ("export", "run", "--chrome", "")],
)
def test_an_unset_variable_is_not_the_current_folder(tmp_path: Path, words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "specmap", "trace", *words], cwd=tmp_path, capture_output=True,
        text=True, timeout=50, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert ": it is empty " in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_runs_no_sglang_is_told_so(bench: Bench) -> None:
    command = [sys.executable, "-c", "print('hello')"]
    done = bench.trace(*bench.live("--target", bench.tree, "--", *command))
    assert done.returncode == 2
    assert text_of(bench.log) == "hello\n"
    assert "no rank" in done.stderr


def test_the_code_of_a_command_that_fails_is_handed_on(bench: Bench) -> None:
    command = [sys.executable, "-c", "raise SystemExit(7)"]
    done = bench.trace(*bench.live("--target", bench.tree, "--", *command))
    assert done.returncode == 7
    assert done.stderr.endswith("specmap: the command ended with exit code 7\n")


def test_after_the_cycles_the_server_goes_on(bench: Bench) -> None:
    with bench.started(*bench.live("--cycles", 20, "--", *bench.serve(2, -1, 4, 0.002))) as running:
        assert running.stderr is not None
        assert running.stderr.readline() == "specmap: tracing ended; the command goes on\n"
        ranks = bench.ranks()
        for rank in ranks:
            os.kill(rank, 0)
        headers = [json.loads(path.read_bytes()) for path in bench.run.glob("rank-*[0-9].json")]
        assert sorted(header["pid"] for header in headers) == sorted(ranks)
        assert all(header["finished"] for header in headers)
        # The ranks take turns, so none is more than a cycle behind.
        assert min(header["cycles"] for header in headers) >= 20 - 1
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=SECONDS)
    assert err == ""
    assert problems(bench) == {}
    assert out.count("EAGLEWorker, ") == 1
    assert "interrupted" in text_of(bench.log)


def test_stop_after_ends_the_server_too(bench: Bench) -> None:
    command = bench.live("--seconds", 0.3, "--stop-after", "--", *bench.serve(1, -1, 4, 0.002))
    done = bench.trace(*command)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "served" not in text_of(bench.log)
    (rank,) = bench.ranks()
    waited(lambda: not Path(f"/proc/{rank}/exe").exists(), "the end of the rank")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_trace_and_then_the_server(bench: Bench, number: int) -> None:
    with bench.started(*bench.live("--", *bench.serve(1, -1, 4, 0.002))) as running:
        (rank,) = bench.ranks()
        waited(lambda: list(bench.run.glob("*.spool")), "records")
        running.send_signal(number)
        out, err = running.communicate(timeout=SECONDS)
    assert (running.returncode, err) == (0, ""), out
    assert "EAGLEWorker" in out
    waited(lambda: not Path(f"/proc/{rank}/exe").exists(), "the end of the rank")
    (header,) = [json.loads(path.read_bytes()) for path in bench.run.glob("rank-*[0-9].json")]
    assert header["finished"]


def test_a_killed_rank_loses_nothing_that_it_recorded(bench: Bench) -> None:
    """The server of this test goes on with one rank; the other's ring is read afterwards."""
    with bench.started(*bench.live("--", *bench.serve(2, 300, 4, 0.005))) as running:
        first, second = bench.ranks()
        (spool,) = waited(lambda: list(bench.run.glob(f"*-{second}.spool")), "records")
        waited(lambda: spool.stat().st_size > 64 + 32 * 50, "fifty records")
        waited(lambda: list(bench.run.glob(f"*-{second}.json")), "the header")
        os.kill(second, signal.SIGKILL)
        report, _ = running.communicate(timeout=SECONDS)
    assert text_of(bench.log).endswith("served 300\n")
    headers = {
        header["pid"]: header
        for header in (json.loads(p.read_bytes()) for p in bench.run.glob("rank-*[0-9].json"))
    }
    assert headers[first]["finished"]
    assert not headers[second]["finished"]
    assert not (Path("/dev/shm") / headers[second]["shm"]).exists()
    assert running.returncode == 1
    assert "killed, and every record was saved from its memory (TP " in report
    assert f"(process {second})" in problems(bench)["rank-missing"]
    whole, cut = (count for _, count in phases(bench)["verify"])
    assert whole == 300
    assert 0 < cut < 300


def test_a_full_disk_costs_the_trace_and_not_the_server(bench: Bench) -> None:
    """A limit on file sizes fails the write as a full disk does, at the same call."""
    front = ["prlimit", f"--fsize={14 << 10}", "env", "SPECMAP_RING=256"]
    done = bench.trace(*bench.live("--", *front, *bench.serve(1, 120, 4, 0.02)))
    assert text_of(bench.log).endswith("served 120\n")
    assert text_of(bench.log).count("File too large; the server goes on\n") == 1
    assert done.returncode == 2
    line, ended = done.stderr.splitlines()
    assert re.search(r"rank-\S+\.spool: the disk refused more \(File too large\)", line)
    assert ended == "specmap: tracing ended; the command goes on"
    ((state, count),) = phases(bench)["verify"]
    assert state == "GRAPH"
    assert 0 < count < 120


def test_a_full_disk_ends_a_trace_of_a_server_that_goes_on(bench: Bench) -> None:
    """The cycles that were asked for will never be there."""
    full = ["prlimit", f"--fsize={14 << 10}", "env", "SPECMAP_RING=256"]
    dormant = bench.specmap("--live", "--dormant", "--", *full, *bench.serve(1, -1, 4, 0.002))
    with bench.started(*dormant) as server:
        waited(lambda: list(bench.folder.glob("*.sock")), "a socket")
        attach = bench.specmap("--attach", server.pid, "--cycles", 10**6, "--dir", bench.run)
        done = bench.trace(*attach)
        assert done.returncode == 2
        assert "the disk refused more (File too large)" in done.stderr
        assert server.poll() is None
        os.killpg(server.pid, signal.SIGKILL)


def test_sleeping_agents_are_armed_and_sleep_again(bench: Bench) -> None:
    dormant = bench.specmap("--live", "--dormant", "--", *bench.serve(2, -1, 4, 0.002))
    with bench.started(*dormant) as server:
        assert server.stdout is not None
        ranks = [int(pid) for pid in server.stdout.readline().split()[1:]]
        waited(lambda: len(list(bench.folder.glob("*.sock"))) == 2, "sockets")
        for folder in (bench.run, bench.folder / "second"):
            done = bench.trace(
                *bench.specmap("--attach", server.pid, "--cycles", 15, "--dir", folder)
            )
            assert done.stderr == ""
            # Ranks that were armed one by one may not have begun in the same cycle.
            assert problems(bench, folder).keys() <= {"records-lost"}
            ((_, one), (_, two)) = phases(bench, folder)["verify"]
            assert min(one, two) >= 14  # a cycle that was under way is not counted
        one_rank = bench.folder / "third"
        done = bench.trace(*bench.specmap("--attach", ranks[1], "--cycles", 5, "--dir", one_rank))
        assert done.returncode == 0
        assert len(list(one_rank.glob("*.spool"))) == 1
        assert server.poll() is None
        os.killpg(server.pid, signal.SIGKILL)


def test_a_rank_that_is_killed_while_it_is_attached_to_is_no_whole_run(bench: Bench) -> None:
    """Even where it is the only one, and no other rank's log goes on behind its own."""
    dormant = bench.specmap("--live", "--dormant", "--", *bench.serve(1, -1, 4, 0.002))
    with bench.started(*dormant) as server:
        assert server.stdout is not None
        (rank,) = (int(pid) for pid in server.stdout.readline().split()[1:])
        waited(lambda: list(bench.folder.glob("*.sock")), "a socket")
        attach = bench.specmap("--attach", server.pid, "--cycles", 10**6, "--dir", bench.run)
        with bench.started(*attach) as tracer:
            (spool,) = waited(lambda: list(bench.run.glob("*.spool")), "records")
            waited(lambda: spool.stat().st_size > 64 + 32 * 50, "fifty records")
            os.kill(rank, signal.SIGKILL)
            out, err = tracer.communicate(timeout=SECONDS)
    assert tracer.returncode == 1, (out, err)
    (line,) = err.splitlines()
    assert f"(process {rank}) ended after" in line
    assert "it was killed, and the run ends there" in line
    assert "every record was saved from its memory" in out


def test_a_server_that_was_started_with_the_agents_folder(bench: Bench) -> None:
    """The way of containers: no plan, so that at first every process may turn out a rank."""
    folder = bench.trace(*bench.specmap("path")).stdout.strip()
    environment = ["env", "SPECMAP_TRACE=dormant", f"PYTHONPATH={folder}"]
    with bench.started(*environment, *bench.serve(2, -1, 4, 0.002)) as server:
        assert server.stdout is not None
        ranks = [int(pid) for pid in server.stdout.readline().split()[1:]]
        waited(lambda: {int(p.stem) for p in bench.folder.glob("*.sock")} >= set(ranks), "sockets")
        done = bench.trace(
            *bench.specmap("--attach", server.pid, "--seconds", 1, "--dir", bench.run)
        )
        assert done.stderr == ""
        assert sorted(phases(bench)) == ["draft", "draft_extend", "verify"]
        assert {int(path.stem.split("-")[4]) for path in bench.run.glob("*.spool")} == set(ranks)
        assert server.poll() is None
        os.killpg(server.pid, signal.SIGKILL)


def test_a_second_tracer_is_refused_and_the_first_goes_on(bench: Bench) -> None:
    with bench.started(*bench.live("--", *bench.serve(1, -1, 4, 0.002))) as first:
        (rank,) = bench.ranks()
        waited(lambda: (bench.folder / f"{rank}.sock").exists(), "socket")
        second = bench.trace(*bench.specmap("--attach", rank, "--dir", bench.folder / "second"))
        assert second.returncode == 2
        assert "armed already" in second.stderr
        first.send_signal(signal.SIGINT)
        _, err = first.communicate(timeout=SECONDS)
    assert (first.returncode, err) == (0, "")


def test_a_dead_collector_costs_the_trace_and_not_the_server(bench: Bench) -> None:
    with bench.started(*bench.live("--", *bench.serve(1, 400, 4, 0.005))) as running:
        (rank,) = bench.ranks()
        waited(lambda: list(bench.run.glob("*.spool")), "records")
        running.kill()
        running.wait()
        bench.logged(r"(served 400)\n")
    assert not Path(f"/proc/{rank}/exe").exists()
    assert "the collector" in text_of(bench.log)
    ((_, count),) = phases(bench)["verify"]
    assert 0 < count < 400


class Collector(BaseHTTPRequestHandler):
    """Takes what is posted, as an OpenTelemetry collector at its HTTP port."""

    taken: ClassVar[list[tuple[str, bytes]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.taken.append((self.path, body))
        self.send_response(200 if self.path == "/v1/metrics" else 404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[str]:
    Collector.taken.clear()
    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_run_in_the_formats_of_other_tools(bench: Bench, collector: str) -> None:
    bench.trace(*bench.live("--", *bench.serve(2, 6, 4, 0)))
    done = bench.trace(
        *bench.specmap("export", "run", "--chrome", "run.json", "--perfetto", "run.pftrace"),
        *("--prometheus", "specmap.prom", "--otlp", collector),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "wrote run.json", "wrote run.pftrace", "wrote specmap.prom",
        f"sent to {collector}/v1/metrics",
    ]  # fmt: skip
    events = json.loads((bench.folder / "run.json").read_bytes())["traceEvents"]
    assert [event["name"] for event in events].count("verify GRAPH") == 12
    assert (bench.folder / "run.pftrace").read_bytes().count(b"verify GRAPH") == 12
    counted = re.findall(r'passes_total{.*phase="verify",state="GRAPH"} (\d+)',
                         text_of(bench.folder / "specmap.prom"))  # fmt: skip
    assert counted == ["6", "6"]
    ((place, body),) = Collector.taken
    assert place == "/v1/metrics"
    assert b'"specmap.passes"' in body


def test_an_export_that_fails_is_one_line(bench: Bench, collector: str) -> None:
    bench.trace(*bench.live("--", *bench.serve(1, 2, 4, 0)))
    for arguments, said in (
        (["--otlp", f"{collector}/other"], "HTTP 404"),
        (["--otlp", "http://127.0.0.1:1"], "Connection refused"),
        (["--otlp", "collector:4318"], "expected http://HOST:4318"),
        (["--chrome", "/proc/run.json"], "cannot write '/proc/run.json'"),
        ([], "name one of --chrome, --perfetto, --prometheus, --otlp"),
        (["--chrome", "t", "--prometheus", "./t"], "two formats have the same file"),
    ):
        done = bench.trace(*bench.specmap("export", "run", *arguments))
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
        assert done.stderr.count("\n") == 1


CUT_SHORT = """
import os, signal, sys, time
from specmap.cli import main
from specmap.report import run_chrome

number = int(sys.argv.pop())

def render(lanes):
    yield b"{"
    os.kill(os.getpid(), number)
    time.sleep(60)

run_chrome.render_chrome = render
main()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_export_that_is_ended_by_a_signal_leaves_nothing(tmp_path: Path, number: int) -> None:
    run, place = tmp_path / "run", tmp_path / "out" / "run.json"
    run.mkdir()
    place.parent.mkdir()
    NGRAM.write(run)
    words = ["trace", "export", str(run), "--chrome", str(place), str(int(number))]
    done = subprocess.run(
        [sys.executable, "-c", CUT_SHORT, *words], capture_output=True, text=True, timeout=50,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", "")
    assert list(place.parent.iterdir()) == []


def test_an_export_of_a_damaged_run_says_what_is_missing(bench: Bench) -> None:
    bench.trace(*bench.live("--", *bench.serve(2, 4, 4, 0)))
    lost = sorted(bench.folder.glob("run/*.spool"))[0]
    lost.write_bytes(b"")
    done = bench.trace(*bench.specmap("export", "run", "--prometheus", "t.prom"))
    assert (done.returncode, done.stdout) == (2, "wrote t.prom\n")
    assert done.stderr == f"specmap: {lost.name}: empty; this rank left no record\n"


GUIDE = (Path(__file__).parent.parent / "docs" / "trace.md").read_text("utf-8")
QUERIES = re.findall(r"```sql\n(.*?)```", GUIDE, re.DOTALL)


def test_the_queries_of_the_documentation(bench: Bench) -> None:
    """Two ranks of 20 cycles with batches of 3, which the graph of 4 is replayed for."""
    bench.trace(*bench.live("--", *bench.serve(2, 20, 3, 0)))
    eager = bench.folder / "eager"
    bench.trace(*bench.specmap("--live", "--dir", eager, "--", *bench.serve(1, 5, 9, 0)))
    answers = [
        [
            duckdb.execute(query.replace("output/trace-1", str(folder))).fetchall()
            for folder in (bench.run, eager)
        ]
        for query in QUERIES
    ]
    how, why, differ, padding, records, lost = answers
    phases = ["draft", "draft_extend", "verify"]
    assert [row[:3] for row in how[0]] == [(phase, "GRAPH", 40) for phase in phases]
    assert [row[:3] for row in how[1]] == [(phase, "EAGER", 5) for phase in phases]
    assert why[0] == []
    assert [(row[1], row[3], row[4]) for row in why[1]] == [(phase, 5, 0) for phase in phases]
    assert all(row[2] == "bs 9 > largest captured 8" for row in why[1])
    assert differ == [[], []]
    assert padding[0] == [(phase, 4, 40, 0.25) for phase in phases]
    # Three runners capture four sizes each, on both ranks.
    assert ("CAPTURE_BEGIN", 24) in records[0]
    assert lost == [[("0",), ("0",)], [("0",)]]
