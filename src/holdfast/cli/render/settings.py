"""The settings in force, and where each comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from holdfast.cli.render.tables import table


def setting_table(items: Sequence[Any], origin: bool) -> RenderableType:
    headings = ("SETTING", "VALUE", "FROM") if origin else ("SETTING", "VALUE")
    rows = [
        [setting.name, _value(setting), Text(setting.origin, style=_faint(setting.origin))]
        for setting in items
    ]
    rows = [row[: len(headings)] for row in rows]
    return table(headings, rows, whole=("SETTING", "VALUE"), free="FROM")


def _value(setting: Any) -> str:
    return (
        f"{setting.value} (no effect: {setting.no_effect})" if setting.no_effect else setting.value
    )


def _faint(origin: str) -> str:
    return "dim" if origin == "default" else ""
