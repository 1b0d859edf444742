"""Every Python block in README and docs runs, and every test function in one passes."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(
    r"^(?:[^\n`]*?`(?P<file>\w+\.py)`[^\n]*\n\n)?```python\n(?P<code>.*?)^```", re.M | re.S
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    names: dict[str, Any] = {"__name__": f"docs_{page.stem}"}
    for block in BLOCK.finditer(page.read_text()):
        if block["file"]:
            (tmp_path / block["file"]).write_text(block["code"])
            sys.modules.pop(Path(block["file"]).stem, None)
        exec(compile(block["code"], str(page), "exec"), names)
    for name, value in list(names.items()):
        if name.startswith("test_"):
            value()


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"
