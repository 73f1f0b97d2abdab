"""A server's log: which start of it counts, what is wrong with it, and its decode batches."""

from __future__ import annotations

import textwrap

import pytest

from specmap.codemap.outcome import LoggedBatch
from specmap.scan.launch.command import CommandError, choose, read
from specmap.scan.vocabulary import load_vocabulary

NAMES = load_vocabulary().arguments
START = (
    "[2026-01-01 01:02:03] server_args=ServerArgs(model_path='/models/m', tp_size={}, x='a b')\n"
)


def decode(running: int, said: str, head: str = "[2026-01-01 01:02:04]") -> str:
    """Return a line as 0.5.12 writes it (observability/scheduler_metrics_mixin.py:675, :710)."""
    return (
        f"{head} Decode batch, #running-req: {running}, #token: 2160, token usage: 0.02, "
        f"accept len: 2.41, accept rate: 0.60, cuda graph: {said}, "
        "gen throughput (token/s): 211.40, #queue-req: 0\n"
    )


# As the releases' own f-strings give them.
WRITTEN = {
    "0.4.7, scheduler.py:1211": "Decode batch. #running-req: 4, #token: 2160, token usage: 0.02, "
    "accept len: 2.41, cuda graph: True, gen throughput (token/s): 211.40, #queue-req: 0",
    "0.5.2 on a CPU": "Decode batch. #running-req: 4, #token: 2160, token usage: 0.02, "
    "accept len: 2.41, cpu graph: True, gen throughput (token/s): 211.40, #queue-req: 0, ",
    "0.5.9 with SGLANG_LOG_FORWARD_ITERS": "Decode batch [17], #running-req: 4, #token: 2160, "
    "token usage: 0.02, accept len: 2.41, accept rate: 0.60, npu graph: True, "
    "gen throughput (token/s): 211.40, #queue-req: 0, ",
}


@pytest.mark.parametrize("line", WRITTEN.values(), ids=WRITTEN)
def test_a_decode_batch_of_each_format(line: str) -> None:
    (command,) = read(f"{START.format(1)}[2026-01-01 01:02:04 TP0] {line}\n", NAMES)
    assert command.batches == (LoggedBatch(4, 1, 0),)


def test_decode_batches_are_counted_by_size() -> None:
    prefill = (
        "[2026-01-01 01:02:04] Prefill batch, #new-seq: 9, #new-token: 1, #running-req: 9, "
        "#queue-req: 0, cuda graph: False\n"
    )
    lines = decode(4, "True") + decode(2, "False") + decode(4, "False") + decode(4, "True")
    (command,) = read(START.format(1) + prefill + lines + decode(0, "False"), NAMES)
    assert command.batches == (LoggedBatch(2, 0, 1), LoggedBatch(4, 2, 1))


def test_ranks_that_log_their_own_requests_are_told() -> None:
    (command,) = read(START.format(1) + decode(4, "True", "[2026-01-01 01:02:04 DP1 TP4]"), NAMES)
    assert command.batches == (LoggedBatch(4, 1, 0, ranks=True),)


def test_a_release_that_does_not_say_it_still_tells_the_size() -> None:
    # 0.4.6, managers/scheduler.py:1043
    line = "Decode batch. #running-req: 4, #token: 2160, token usage: 0.02, accept len: 2.41, "
    (command,) = read(f"{START.format(1)}[x] {line}gen throughput (token/s): 1, #q: 0\n", NAMES)
    assert command.batches == (LoggedBatch(4, 0, 0),)


def test_a_restart_is_two_starts_and_the_last_counts() -> None:
    found = read(START.format(1) + decode(2, "True") + START.format(8) + decode(4, "False"), NAMES)
    assert [command.fields["tp_size"] for command in found] == [1, 8]
    assert [command.line for command in found] == [1, 3]
    last = choose(found)
    assert last.batches == (LoggedBatch(4, 0, 1),)
    assert last.notes[0] == (
        "the text starts 2 servers (lines 1, 3); this is number 2, the last start that the log "
        "shows; --server N takes another"
    )
    assert choose(found, 1).batches == (LoggedBatch(2, 1, 0),)


def test_a_command_above_its_log_is_counted_and_the_log_counts() -> None:
    text = "#!/bin/bash\npython -m sglang.launch_server --model m --tp 4\n" + START.format(4)
    found = read(text, NAMES)
    assert [command.line for command in found] == [2, 3]
    assert choose(found).fields["tp_size"] == 4
    assert choose(found, 1).argv == ("--model", "m", "--tp", "4")


def test_a_log_that_fold_has_broken_is_joined() -> None:
    text = START.format(8) + decode(4, "True")
    folded = "".join(
        f"{line[at : at + 40]}\n"
        for line in text.splitlines()
        for at in range(0, len(line), 40)
    )  # fmt: skip
    (command,) = read("a line before\n" + folded, NAMES)
    assert command.fields == {"model_path": "/models/m", "tp_size": 8, "x": "a b"}
    assert command.batches == (LoggedBatch(4, 1, 0),)
    assert command.line == 2


def test_a_line_that_is_broken_at_other_places_is_not_guessed() -> None:
    wrapped = "\n".join(textwrap.wrap(START.format(8).replace("a b", "a b" * 30), 38))
    with pytest.raises(CommandError, match=r"ServerArgs\( in line \d cannot be read: it is broken"):
        read(wrapped.replace("tp_size", "tp_\nsize"), NAMES)


def test_a_cut_line_is_told() -> None:
    with pytest.raises(
        CommandError, match=r"ServerArgs\( in line 1 is not closed: the line is cut"
    ):
        read(START.format(8)[:70] + "\n" + decode(4, "True"), NAMES)


def test_a_cut_line_beside_a_whole_one_is_a_note() -> None:
    (command,) = read(START.format(8) + START.format(1)[:70] + "\n", NAMES)
    assert command.fields["tp_size"] == 8
    assert any("ServerArgs( in line 2 is not closed" in note for note in command.notes)


def test_no_text_and_no_server_are_told_apart() -> None:
    with pytest.raises(CommandError, match="it is empty"):
        read(" \n", NAMES)
    with pytest.raises(CommandError, match=r"or a log with its line ServerArgs\(\.\.\.\)"):
        read("2026/01/01 00:00:00 [error] 12#12: connect() failed\n", NAMES)


def test_a_byte_that_is_no_text_is_told() -> None:
    (command,) = read(START.format(8) + "[x] user �\n", NAMES)
    assert command.notes[0] == "line 2: a byte that is no UTF-8 text is not read"
