"""What rewrites did, for programs."""

from __future__ import annotations

import json

from specmap.codemap.remedy import Attempt, FixReport

SCHEMA_VERSION = "1.0"


def render_fix_json(report: FixReport) -> str:
    """Return the report as JSON: target, attempts with facts and proof, files that changed."""
    content = {
        "schema": SCHEMA_VERSION,
        "target": report.target,
        "release": report.release,
        "attempts": [_attempt(attempt) for attempt in report.attempts],
        "files": sorted(report.after),
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _attempt(attempt: Attempt) -> dict[str, object]:
    rewrite, proposal = attempt.rewrite, attempt.proposal
    return {
        "rewrite": rewrite.id,
        "name": rewrite.name,
        "safety": str(rewrite.safety),
        "file": proposal.span.file,
        "line": proposal.span.line,
        "function": proposal.holder,
        "what": proposal.what,
        "outcome": str(attempt.outcome),
        "reason": attempt.reason,
        "facts": [fact for fact in proposal.facts if fact],
        "workers": list(proposal.workers),
        "proven": attempt.proven,
        "proof": [
            {"layer": str(s.layer), "status": str(s.status), "detail": s.detail}
            for s in attempt.proof
        ],
    }
