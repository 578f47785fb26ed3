"""What every answer says to a browser.

Law: no answer is without these, also an error and a file. Nothing runs in a page but our own files, and no other site
can frame it, read it or learn its address.
"""

from __future__ import annotations

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
# Of an answer that is no page: a picture, a log, a refusal.
BARE_POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox"

ALWAYS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


def with_always(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer with those that every answer has; its own go before them."""
    there = {name.lower() for name, _ in headers}
    more = ((name.lower().encode(), value.encode()) for name, value in ALWAYS.items())
    return [*headers, *(pair for pair in more if pair[0] not in there)]
