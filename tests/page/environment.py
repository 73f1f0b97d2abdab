"""The browser and the Node packages that this tier needs, installed where that is possible.

``python -m tests.page.environment`` installs what is missing and says what it could not.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

APP = Path(__file__).parents[2] / "specmap" / "report" / "page" / "app"
BUNDLE = APP.parent / "bundle"
MARKER = APP / "node_modules" / ".specmap-lock"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
LEAST_NODE = 20
TIMEOUT_S = 400


class MissingToolError(RuntimeError):
    """Something that the browser tests need is not there; the message says how to get it."""


def browser() -> Path:
    """Return the browser.

    Raises:
        MissingToolError: there is none.
    """
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found is None:
        raise MissingToolError("no Chromium: install the system package 'chromium'")
    return Path(found)


def node() -> Path:
    """Return Node.

    Raises:
        MissingToolError: there is none, or it is too old.
    """
    found = shutil.which("node")
    wanted = f"install Node {LEAST_NODE} or newer, with npm"
    if found is None or shutil.which("npm") is None:
        raise MissingToolError(f"no Node: {wanted}")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
    if int(version.stdout.lstrip("v").partition(".")[0]) < LEAST_NODE:
        raise MissingToolError(f"Node {version.stdout.strip()} is too old: {wanted}")
    return Path(found)


def packages() -> None:
    """Install the Node packages of the lockfile where they are missing or others.

    Raises:
        MissingToolError: Node is missing, or npm failed.
    """
    node()
    lock = hashlib.sha256((APP / "package-lock.json").read_bytes()).hexdigest()
    if MARKER.is_file() and MARKER.read_text("utf-8") == lock:
        return
    _run(["npm", "ci", "--no-audit", "--no-fund"], "npm could not install the page's packages", APP)
    MARKER.write_text(lock, "utf-8")


def _install_browser() -> None:
    try:
        browser()
        return
    except MissingToolError:
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            raise
    _run(["apt-get", "update", "-qq"], "apt-get update failed")
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"]
    _run(command, "apt-get could not install chromium")
    browser()


def _run(command: list[str], failed: str, cwd: Path | None = None) -> None:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S,
        check=False,
    )  # fmt: skip
    if done.returncode:
        end = (done.stdout + done.stderr).strip()[-600:]
        raise MissingToolError(f"{failed}:\n{end}")


def main() -> int:
    """Install everything; say what is missing, and fail."""
    failed = 0
    for step in (_install_browser, packages):
        try:
            step()
        except (MissingToolError, subprocess.TimeoutExpired) as error:
            failed = 1
            sys.stderr.write(f"browser tests: {error}\n")
    return failed


if __name__ == "__main__":
    sys.exit(main())
