"""The manual builds as a site without a warning: no dead link or anchor, and no page outside of the navigation."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.docs.manual import CHECKOUT, PAGES


def test_it_builds_and_has_every_page(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]  # not --quiet: it hides warnings from --strict
    done = subprocess.run(
        [*command, "-f", str(CHECKOUT / "docs/site/mkdocs.yml"), "-d", str(tmp_path / "site")],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for page in PAGES:
        path = page.relative_to(CHECKOUT)
        folder = path.parent if path.stem in ("README", "index") else path.with_suffix("")
        assert (tmp_path / "site" / folder / "index.html").is_file(), path
    diagrams = (tmp_path / "site/docs/internals/index.html").read_text()
    assert len(re.findall(r'<pre class="mermaid">', diagrams)) == 7
    assert "fonts.googleapis.com" not in diagrams
