"""The file: style, data and script in one page that reaches no network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from importlib.resources import files

from specmap.errors import OutputError
from specmap.report.page.data import packed, page
from specmap.report.page.subject import Subject

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<noscript><p>{headline}</p><p>This page needs JavaScript to show more.</p></noscript>
<div id="specmap-page"></div>
<script type="application/octet-stream" id="specmap-data">{data}</script>
<script>{script}</script>
</body>
</html>
"""
_POLICY = (
    "default-src 'none'; script-src '{script}' 'wasm-unsafe-eval'; worker-src blob:; "
    "style-src '{style}'; img-src data: blob:; base-uri 'none'; form-action 'none'"
)


def render(subjects: Sequence[Subject], changes: Sequence[tuple[str, list[str]]] = ()) -> bytes:
    """Return the page of one side or two as UTF-8.

    Raises:
        OutputError: the front end is not installed, or cannot stand in a page.
    """
    data, columns = page(subjects, changes)
    script, style = _part("page.js", ("</script", "<!--")), _part("page.css", ("</style",))
    text = _PAGE.format(
        policy=_POLICY.format(script=_hash(script), style=_hash(style)),
        title=escape(f"specmap: {' and '.join(side['label'] for side in data['sides'])}"),
        headline=escape(" ".join(side["headline"]["text"] for side in data["sides"])),
        style=style,
        script=script,
        data=base64.b64encode(packed(data, columns)).decode("ascii"),
    )
    return text.encode("utf-8", "replace")


def _part(name: str, forbidden: Sequence[str]) -> str:
    """Return a file of the bundle, which must not end the element that it stands in."""
    try:
        text = (files("specmap.report.page") / "bundle" / name).read_text("utf-8")
    except OSError as error:
        raise OutputError(
            f"the page's {name} is missing ({error.strerror or error}); install specmap again"
        ) from None
    for word in forbidden:
        if word in text.lower():
            raise OutputError(f"the page's {name} holds {word!r}; build the front end again")
    return text


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
