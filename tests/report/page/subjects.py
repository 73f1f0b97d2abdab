"""Sides of pages over the hand-written map, run and launch."""

from __future__ import annotations

import base64
import gzip
import json
import re
import struct
from dataclasses import replace
from typing import Any

from specmap.codemap.condition import Atom, atoms_of
from specmap.codemap.finding import Crash, Finding, FindingStatus, LintReport, Step
from specmap.codemap.outcome import TermSource, TermValue
from specmap.codemap.source import symbol_id
from specmap.report.page.phases import ends_of
from specmap.report.page.subject import Subject
from tests.lint.samples import match, rule
from tests.report.sample import sample_map
from tests.report.sample_facts import FILES

SOURCE = "".join(f"line {number}\n" for number in range(1, 3001))
EVIL = "</script><script>alert(1)</script><!-- <style> & \" ' \u2028"


def subject(**changes: Any) -> Subject:
    """Return a side without launch and run, every test of its phases not known."""
    codemap = sample_map()
    values = {
        (worker.id, phase.name): tuple(
            (atom, TermValue(atom.text, atom.span, None, TermSource.UNKNOWN))
            for term in ends_of(phase).values()
            for atom in dict.fromkeys(atoms_of(term))
        )
        for worker in codemap.workers
        for phase in worker.phases
    }
    given: dict[str, Any] = {
        "label": codemap.target,
        "codemap": codemap,
        "source": lambda file: SOURCE if file in FILES.values() else None,
        "values": values,
        "size_test": _size_test,
    }
    return Subject(**(given | changes))


def _size_test(atom: Atom) -> str | None:
    return "at most" if "max_bs" in atom.text else None


def lint(message: str = "x.item() waits") -> LintReport:
    """Return one finding that counts, one that was suppressed, and a rule that failed."""
    file = FILES["EAGLEWorker"]
    found = match(line=700, file=file)
    new = Finding(rule(), found, "0" * 32)
    flow = (Step(found.span, message),)
    assert found.holder == symbol_id(file, "EAGLEWorker.verify")
    return LintReport(
        "sglang==0.5.9",
        "0.5.9",
        (rule(),),
        (
            replace(new, match=replace(found, message=message, flow=flow)),
            replace(new, status=FindingStatus.SUPPRESSED, reason="known", fingerprint="1" * 32),
        ),
        (Crash("SPM902", "rules/x.py:1", "division by zero"),),
    )


def unpacked(page: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the data and the columns of a page, as the front end takes them apart."""
    found = re.search(rb'id="specmap-data">([^<]*)</script>', page)
    assert found is not None
    content = gzip.decompress(base64.b64decode(found[1]))
    (length,) = struct.unpack_from("<I", content)
    start = -(-(4 + length) // 8) * 8
    data: dict[str, Any] = json.loads(content[4 : 4 + length])
    return data, content[start:]
