"""A hook of mkdocs: which files of the checkout are in the manual, under the paths that they have in the checkout.

mkdocs knows one folder of pages, but the README, SECURITY.md and the protocol are where people look for them. With
the paths of the checkout, a relative link means the same on the site and where the code is hosted. Touches: nothing.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel

CHECKOUT = Path(__file__).resolve().parents[1]
IN_THE_MANUAL = (
    "*.md",
    "LICENSE",
    ".github/CONTRIBUTING.md",
    "docs/**/*.md",
    "docs/*.svg",
    "docs/pictures/*",
    "docs/monitoring/*",
    "systemd/*.md",
    "tests/scenarios/*.md",
    "tests/vectors/v1/*.md",
    "tools/benchmark/growth.svg",
)
# A fence such as "```json task": its second word is for the tests, and mkdocs would take such a line for no fence.
_KIND = re.compile(r"^(```\w+) \w+$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The theme's files, and ours in place of what mkdocs found in its folder."""
    ours = {path.relative_to(CHECKOUT).as_posix() for pattern in IN_THE_MANUAL for path in CHECKOUT.glob(pattern)}
    theirs = [file for file in files if file.src_dir != config.docs_dir]
    return Files([*theirs, *(_file(path, config) for path in sorted(ours))])


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The text of a page with fences that mkdocs reads."""
    return _KIND.sub(r"\1", markdown)


def _file(path: str, config: MkDocsConfig) -> File:
    # Said outright, since mkdocs leaves out folders that begin with a dot.
    included = InclusionLevel.INCLUDED
    return File(path, str(CHECKOUT), config.site_dir, config.use_directory_urls, inclusion=included)
