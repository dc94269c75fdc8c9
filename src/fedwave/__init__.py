"""fedwave: federated meta-learning over wireless networks.

``import fedwave`` is light: no deep-learning framework is loaded until something needs it.
"""

from __future__ import annotations

__version__ = "0.1.0"

__all__ = ["__version__"]
