"""Rewrites what is generated in the documentation.

python -m tools.docs

Numbers in the text of notebooks are filled in, too; python -m tools.notebooks then builds what people open.
"""

from __future__ import annotations

from tools.docs import GENERATED
from tools.docs.pages import NOTEBOOKS, PAGES, write_part
from tools.docs.results_numbers import filled_in

for (page, name), text in GENERATED.items():
    write_part(page, name, text())
for path in [*PAGES, *NOTEBOOKS]:
    path.write_text(filled_in(path.read_text(encoding="utf-8")), encoding="utf-8")
