"""The paper's tables and figures, made again from one command, with verdicts that follow from the numbers."""
