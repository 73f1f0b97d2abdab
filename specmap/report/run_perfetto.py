"""A run as a Perfetto trace: protobuf, written by hand because the schema needed is tiny.

Field numbers are those of ``perfetto/trace/trace_packet.proto``, ``track_event.proto``,
``track_descriptor.proto`` and ``debug_annotation.proto``; fields stand in their order, as
protobuf's own serialiser writes them, so that a test can compare with it byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from specmap.report.run_timeline import Lane, Slice, Value

_VARINT, _BYTES = 0, 2
_PACKET = 1
_TIMESTAMP, _SEQUENCE, _TRACK_EVENT, _TRACK_DESCRIPTOR = 8, 10, 11, 60
_UUID, _PROCESS, _THREAD, _PARENT = 1, 3, 4, 5
_PID, _PROCESS_NAME, _TID, _THREAD_NAME = 1, 6, 2, 5
_EVENT_TYPE, _TRACK_UUID, _CATEGORY, _EVENT_NAME, _ANNOTATION = 9, 11, 22, 23, 4
_NAME_OF, _INTEGER, _TEXT = 10, 4, 6
_BEGIN, _END = 1, 2
_ONE_SEQUENCE = 1


def render_perfetto(lanes: Iterable[Lane]) -> Iterator[bytes]:
    """Yield the trace packet by packet; lanes of one process stand together in the viewer."""
    processes: dict[int, int] = {}
    uuid = 0
    for lane in lanes:
        if lane.pid not in processes:
            uuid += 1
            processes[lane.pid] = uuid
            process = _field(_PID, lane.pid) + _field(_PROCESS_NAME, lane.process)
            yield _packet(
                _field(_TRACK_DESCRIPTOR, _field(_UUID, uuid) + _field(_PROCESS, process))
            )
        uuid += 1
        thread = _field(_PID, lane.pid) + _field(_TID, lane.tid) + _field(_THREAD_NAME, lane.name)
        descriptor = (
            _field(_UUID, uuid) + _field(_THREAD, thread) + _field(_PARENT, processes[lane.pid])
        )
        yield _packet(_field(_TRACK_DESCRIPTOR, descriptor))
        for one in lane.slices:
            yield from _slice(one, uuid)


def _slice(one: Slice, track: int) -> Iterator[bytes]:
    begin = (
        b"".join(_field(_ANNOTATION, _annotation(name, value)) for name, value in one.values)
        + _field(_EVENT_TYPE, _BEGIN)
        + _field(_TRACK_UUID, track)
        + _field(_CATEGORY, one.category)
        + _field(_EVENT_NAME, one.name)
    )
    end = _field(_EVENT_TYPE, _END) + _field(_TRACK_UUID, track)
    for time_ns, event in ((one.start_ns, begin), (one.start_ns + one.duration_ns, end)):
        yield _packet(_field(_TRACK_EVENT, event), _field(_TIMESTAMP, time_ns))


def _annotation(name: str, value: Value) -> bytes:
    return _field(_INTEGER if isinstance(value, int) else _TEXT, value) + _field(_NAME_OF, name)


def _packet(content: bytes, time: bytes = b"") -> bytes:
    return _field(_PACKET, time + _field(_SEQUENCE, _ONE_SEQUENCE) + content)


def _field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3 | _VARINT) + _varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | _BYTES) + _varint(len(raw)) + raw


def _varint(value: int) -> bytes:
    """Encode base 128, the low bits first; a negative number as its 64-bit two's complement."""
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
