"""A fast layer of the CNN for stacks of devices: products for each device, and compiled kernels beside them.

``convolve_and_pool`` is the only door; what is behind it computes what torch's own layers compute, faster.
"""

from fedwave.learning.models.fast_cnn.layer import convolve_and_pool

__all__ = ["convolve_and_pool"]
