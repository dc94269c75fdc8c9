"""The paper's analysis in numbers: constants, bounds and penalties, as printed and corrected, and estimates.

The formulas need numpy alone; what is estimated on devices needs torch and is loaded when it is first used.
"""

from fedwave.theory.bounds import (
    corollary_1_bound,
    largest_meta_lr,
    similarity_penalty,
    theorem_1_bound,
    variance_penalty,
)
from fedwave.theory.constants import (
    BatchSizes,
    Constants,
    bias_bound,
    first_order_variance,
    hessian_free_variance,
    meta_dissimilarity,
    meta_smoothness,
    meta_variance,
)

__all__ = [
    "BatchSizes",
    "Constants",
    "bias_bound",
    "corollary_1_bound",
    "first_order_variance",
    "hessian_free_variance",
    "largest_meta_lr",
    "meta_dissimilarity",
    "meta_smoothness",
    "meta_variance",
    "similarity_penalty",
    "theorem_1_bound",
    "variance_penalty",
]
