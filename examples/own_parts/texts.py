"""A text classifier: a dataset of token ids, and a network with ``nn.Embedding`` for them.

``texts.toml`` names both. Whole numbers stay whole numbers on their way to the network.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor, nn

from fedwave.data import Dataset, dataset_from_arrays

WORDS = (
    ["goal", "match", "team", "score", "ball", "player"],
    ["bank", "market", "price", "share", "profit", "loan"],
    ["the", "a", "of", "in", "and", "to", "on", "with", "for", "by"],  # says nothing
)
VOCABULARY = {word: token for token, word in enumerate(word for words in WORDS for word in words)}


def load_texts(seed: int, *, num_texts: int = 400, length: int = 8) -> Dataset:
    """Return headlines on sport and on money, two telling words in each; in the place of a file of yours."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=num_texts)
    headlines = [
        [*rng.choice(WORDS[label], 2), *rng.choice(WORDS[2], length - 2)] for label in labels.tolist()
    ]
    tokens = np.array([[VOCABULARY[word] for word in headline] for headline in headlines])
    return dataset_from_arrays(tokens, labels, name="headlines", class_names=["sport", "money"])


class TextNet(nn.Module):
    """The mean of the words' vectors, and a linear layer; each text on its own."""

    def __init__(self, num_classes: int, *, num_words: int = len(VOCABULARY), width: int = 8) -> None:
        super().__init__()
        self.words = nn.Embedding(num_words, width)
        self.classes = nn.Linear(width, num_classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return (texts, classes) for token ids (texts, length)."""
        scores: Tensor = self.classes(self.words(tokens).mean(1))
        return scores
