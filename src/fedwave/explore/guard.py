"""Who may talk to the explorer: this computer, this page, with this token. Everybody else gets a 403.

A page from elsewhere can send requests to a server on this computer. So the Host must be ours (a foreign name
that resolves to 127.0.0.1 is refused), an Origin must be ours, and whatever reads or computes needs the token
of the address that the command line printed, which no other page and no other user of this computer knows.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

HEADERS = {
    # No inline script or style, nothing from elsewhere: a name that looks like HTML cannot become any.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",  # the address has the token
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
TOKEN_HEADER = "x-fedwave-token"


@dataclass(frozen=True)
class Guard:
    """The checks for one server."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def refusal(self, *, host: str | None, origin: str | None, fetch_site: str | None) -> str | None:
        """Return why a request is refused by where it comes from, or None."""
        ours = {f"127.0.0.1:{self.port}", f"localhost:{self.port}", f"[::1]:{self.port}"}
        if host not in ours:
            return "This server answers to its own address only."
        if origin is not None and origin != f"http://{host}":
            return "Another page may not use this server."
        if fetch_site not in (None, "same-origin", "none"):
            return "Another page may not use this server."
        return None

    def knows(self, token: str | None) -> bool:
        """Return whether a request has the token."""
        return token is not None and secrets.compare_digest(token.encode(), self.token.encode())
