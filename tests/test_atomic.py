"""Files are written whole or not at all; links, devices, pipes and folders are told apart."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from specmap.atomic import replacing
from specmap.errors import OutputError


def write(path: Path, content: bytes, *, make_folders: bool = False) -> None:
    with replacing([path], make_folders=make_folders) as (fresh,):
        fresh.write_bytes(content)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_old_file_stands_until_the_new_one_is_whole(tmp_path: Path) -> None:
    place = tmp_path / "a.txt"
    place.write_bytes(b"old")
    with replacing([place]) as (fresh,):
        fresh.write_bytes(b"ne")
        assert place.read_bytes() == b"old"
        fresh.write_bytes(b"new")
    assert place.read_bytes() == b"new"
    assert names(tmp_path) == ["a.txt"]


def test_a_failure_half_way_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    place = tmp_path / "a.txt"
    place.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), replacing([place]) as (fresh,):
        fresh.write_bytes(b"half")
        raise ZeroDivisionError
    assert place.read_bytes() == b"old"
    assert names(tmp_path) == ["a.txt"]


def test_of_several_files_all_are_moved_or_none(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "gone" / "b"
    first.write_bytes(b"old")
    said = r"cannot write '.*/gone/b': No such file.*; try so"
    with (
        pytest.raises(OutputError, match=said),
        replacing([first, second], advice="try so") as places,
    ):
        for place in places:
            place.write_bytes(b"new")
    assert first.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_a_file_keeps_its_mode(tmp_path: Path) -> None:
    place = tmp_path / "run.sh"
    place.write_bytes(b"old")
    place.chmod(0o750)
    write(place, b"new")
    assert place.stat().st_mode & 0o7777 == 0o750


def test_folders_are_made_only_where_that_is_asked_for(tmp_path: Path) -> None:
    place = tmp_path / "x" / "y" / "a"
    with pytest.raises(OutputError, match="No such file"):
        write(place, b"new")
    write(place, b"new", make_folders=True)
    assert place.read_bytes() == b"new"


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_what_it_points_to_is_written(tmp_path: Path, there: bool) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    if there:
        (folder / "real").write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to(folder / "real")
    write(link, b"new")
    assert link.is_symlink()
    assert (folder / "real").read_bytes() == b"new"
    assert names(folder) == ["real"]


def test_a_link_to_itself_is_an_error(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(link)
    with pytest.raises(OutputError, match="leads to itself"):
        write(link, b"new")


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="it is a folder; name a file"):
        write(tmp_path, b"new")


def test_a_device_is_written_to_and_stays(tmp_path: Path) -> None:
    write(Path("/dev/null"), b"new")
    assert Path("/dev/null").is_char_device()
    with pytest.raises(OutputError, match="cannot write '/dev/full': No space left"):
        write(Path("/dev/full"), b"new")


def test_a_named_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write(pipe, b"new")
    reader.join(10)
    assert read == [b"new"]
    assert pipe.is_fifo()


def test_an_open_pipe_of_the_process_is_written_to() -> None:
    source, sink = os.pipe()
    write(Path(f"/dev/fd/{sink}"), b"new")
    os.close(sink)
    with open(source, "rb") as stream:  # noqa: PTH123
        assert stream.read() == b"new"


def test_a_read_only_file_system_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux: there even ``unlink`` of a file that is not there says EROFS, not ENOENT."""

    def refused(self: Path, *args: object, **kwargs: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self))

    monkeypatch.setattr(Path, "open", refused)
    monkeypatch.setattr(Path, "write_bytes", refused)
    monkeypatch.setattr(Path, "unlink", refused)
    with pytest.raises(OutputError, match="Read-only file system; name another place"):
        write(tmp_path / "a.txt", b"x")


@pytest.mark.parametrize("error", [KeyboardInterrupt, PermissionError])
@pytest.mark.parametrize("after", [0, 1])
def test_files_that_were_moved_are_put_back_when_the_rest_cannot_be(
    error: type[BaseException], after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second move fails, before it is made or when it was just made; one file is new."""
    places = [tmp_path / name for name in ("a", "b", "c")]
    for place in places[1:]:
        place.write_bytes(b"old")
    moves: list[Path] = []
    replace = Path.replace

    def failing(self: Path, target: Path) -> Path:
        moves.append(target)
        if len(moves) == 2 and not after:
            raise error(errno.EACCES, "no")
        found = replace(self, target)
        if len(moves) == 2:
            raise error(errno.EACCES, "no")
        return found

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises((KeyboardInterrupt, OutputError)), replacing(places) as fresh:
        for one in fresh:
            one.write_bytes(b"new")
    assert names(tmp_path) == ["b", "c"]
    assert {place.read_bytes() for place in places[1:]} == {b"old"}
