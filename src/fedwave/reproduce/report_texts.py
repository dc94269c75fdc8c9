"""What the report says about how it was made, and how to read it."""

from __future__ import annotations

TITLE = "Efficient federated meta-learning over wireless networks, reproduced"
PAPER_LINK = "https://arxiv.org/abs/2108.06453"
INTRODUCTION = (
    "Every table and figure of [Efficient Federated Meta-Learning over Multi-Access Wireless "
    "Networks](https://arxiv.org/abs/2108.06453) (Yue et al.), made again by `fedwave reproduce`. "
    "Verdicts follow from the numbers by a stated test; none is written by hand."
)
QUICK = (
    "**A quick look** on the embedded digits, with few seeds and rounds: it shows that everything works, "
    "and says nothing about the paper."
)
TEST = (
    "Each seed is one partition, one first model and one cell, the same for all schemes. A part of a "
    "claim is a number for each seed, of which four things are asked. **Is there an effect?** Student's "
    "t-test of the mean against the claim's threshold, two-sided, 2.5 % on each side (“within”: two "
    "one-sided tests). **Is it too small to matter?** Two one-sided tests against a smallest effect of "
    "interest: half of the paper's lead, at least 1 point; where the paper gives no size, one of ours, "
    "stated with each part. **Is it as large as the paper's?** Student's t-test of the mean against the "
    "paper's number. These three are corrected by Holm's method, each over all parts of "
    "the paper's claims (C8d, a sweep of ours, among its own), at 5 %. **Could this have been the "
    "paper's run?** The paper shows one run, so its number is compared with "
    "the 95 % interval of one more run of ours, t s √(1 + 1/n), each by itself and not corrected."
)
WORDS = (
    "A verdict is how many parts hold; parts beside the claim's point are marked. Beside a part that is "
    "open stands which effects its seeds leave; all others are excluded. A number that is the same for "
    "all seeds is “exact” and not tested, and what was never seen in n trials has a share below 3/n. C2 "
    "to C4 are judged on two losses: of the held-out devices, and of the training devices, which the "
    "paper's F is about; where runs of before lack the latter, the loss that the computing devices report "
    "stands in, and parts over the whole curve have held-out devices alone. Times in the paper's cell "
    "have no mean (their tail has index 1): they are compared by logarithms of ratios and shown as "
    "medians. Ratios are geometric means. `claims.csv` also has the exact sign-flip test of each part."
)
STUDIED = (
    "Comparisons on the same seeds, two-sided (2.5 % on each side), Holm's correction over all of this "
    "table; “no effect of interest”: surely smaller than the smallest effect of interest, either way."
)
MEDIANS_NOTE = (
    "Medians over seeds and, in parentheses, the lowest and the highest, where a mean does not exist; "
    "else means with 95 % intervals."
)
MISSING = "No seed is complete yet. Run: `{}`."
TINY = "Where the paper says ImageNet, this is Tiny ImageNet (64 × 64 pixels, 200 classes)."
TABLE_2 = (
    "The interval after ± is that of the mean: is there an effect? The one after “one run ±” is that of "
    "one more run: could this have been the paper's, whose number is in parentheses? Each is at 95 % by "
    "itself; of twenty such numbers one lies outside by chance. Accuracies vary with a seed's partition, "
    "which all schemes share; leads are taken seed by seed, so that only their intervals compare schemes."
)
TESTED = "The same models, tested otherwise: what the paper leaves open about its test."
TRAINED = "Trained otherwise: what the paper leaves open about its training."
STEPPED = (
    "Accuracies in round 19 beside the losses of the figure: with how many local steps is the order of "
    "Table II seen? The paper's own table is for τ = 1, after all rounds. Seed by seed, “paper's order” "
    "as under Table II."
)
READINGS = (
    "One reading is changed at a time, on the same seeds. “Paper's order” is of all three: yes or no if "
    "Holm's correction over all readings of this table and all datasets leaves it sure (both neighbours "
    "apart; one pair the other way), else “in the means” or unclear. “One run's first lead” is the 95 % "
    "interval of NUFM − Per-FedAvg in one more run, not corrected, and “paper's lead” says whether the "
    "paper's lies in it. Intervals after ± are of means, not corrected."
)
READ_AS = {"table-2": f"{TESTED} {READINGS}", "readings": f"{TRAINED} {READINGS}", "fig-3": STEPPED}
