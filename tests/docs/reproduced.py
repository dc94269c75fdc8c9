"""The verdicts and Table II of the committed reproduction, for the pages."""

from __future__ import annotations

from fedwave.reproduce.items import ITEMS
from fedwave.reproduce.report import markdown_table
from fedwave.reproduce.report_tables import accuracy_table, claims_table
from fedwave.reproduce.tables import SEEDS, Tables, read_rows
from fedwave.reproduce.verdicts import judge
from tests.docs.pages import DOCS

FOLDER = DOCS / "reproduction"


def verdicts() -> str:
    """Return what stands in docs/reproduction.md: both tables, or that there are no results yet."""
    if not (FOLDER / "claims.csv").exists():
        return "No full run is in the repository yet.\n"
    claims = markdown_table(*claims_table(judge(Tables.read(FOLDER, ITEMS))))
    accuracies = markdown_table(*accuracy_table(read_rows(FOLDER / "table-2" / SEEDS)))
    report = (
        "All figures and numbers: [the report](reproduction/README.md), also as one page that opens offline: "
        "[report.html](reproduction/report.html)."
    )
    return "\n\n".join((claims, "Table II:", accuracies, report)) + "\n"
