"""Tables that leave the program, read as LaTeX, Markdown and browsers read them."""

from __future__ import annotations

from fedwave.runs.text_table import Best, TextTable, latex_text

TABLE = TextTable(
    ("run", "Δ points", "× seconds"),
    (("50% & <b>_me_|", Best("-1.5 ± 0.2"), "2.0 × (1.5–2.7) *"), ("b", "", "1,200")),
    ("* is chance's doing",),
)


def test_latex_has_the_rules_of_booktabs_and_every_sign_is_set() -> None:
    assert TABLE.to_latex().splitlines() == [
        r"% \usepackage{booktabs}",
        "% * is chance's doing",
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"run & $\Delta$ points & $\times$ seconds \\",
        r"\midrule",
        r"50\% \& <b>\_me\_| & \textbf{$-$1.5 $\pm$ 0.2} & 2.0 $\times$ (1.5--2.7) * \\",
        r"b &  & 1,200 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_latex_takes_no_sign_of_a_name_for_a_command() -> None:
    assert latex_text(r"\a{b}$#^~") == r"\textbackslash{}a\{b\}\$\#\textasciicircum{}\textasciitilde{}"
    assert latex_text("Per-FedAvg 3-4, -5") == "Per-FedAvg 3-4, $-$5"


def test_markdown_keeps_a_name_in_its_cell() -> None:
    assert TABLE.to_markdown().splitlines() == [
        "| run | Δ points | × seconds |",
        "| --- | ---: | ---: |",
        r"| 50% & \<b\>\_me\_\| | **-1.5 ± 0.2** | 2.0 × (1.5–2.7) \* |",
        "| b |  | 1,200 |",
        "",
        r"- \* is chance's doing",
    ]


def test_columns_of_names_stand_left() -> None:
    named = TextTable(("run", "dataset", "rounds"), (("a", "cifar-10", "-3"), ("b", "2nd set", "–")))
    assert r"\begin{tabular}{lrr}" in named.to_latex()  # a name that begins like a number counts as one
    named = TextTable(("run", "dataset", "rounds"), (("7", "cifar-10", "-3"), ("8", "digits", "–")))
    assert r"\begin{tabular}{llr}" in named.to_latex()
    assert "| --- | --- | ---: |" in named.to_markdown()
    assert r"\begin{tabular}{lr}" in TextTable(("run", "rounds"), ()).to_latex()


def test_html_escapes_every_name() -> None:
    shown = TABLE._repr_html_()
    assert "<td>50% &amp; &lt;b&gt;_me_|</td><td><b>-1.5 ± 0.2</b></td>" in shown
    assert shown.endswith("<p><small>* is chance&#x27;s doing</small></p>")
