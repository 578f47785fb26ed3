"""What would be masked is found, and named with its place alone."""

from __future__ import annotations

import pytest

from spoold.rules.redaction.masking import Mask, Scanner

TOKEN = b"ghp_" + b"a1B2c3D4e5F6g7H8i9J0" + b"k1L2m3N4o5P6q7R8"
KEY = b"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n" + b"MIIEpAIBAAKCAQEA" * 4 + b"\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"nothing", []),
        (b"a " + TOKEN + b" b", [(2, "github-token")]),
        (b"\n" + KEY, [(1, "private-key")]),
        (b'if line == "-----BEGIN RSA PRIVATE KEY-----":', []),
        (b"a\ncorp-123 corp-4\nb\ncorp-5", [(2, "pattern-1"), (20, "pattern-1")]),
    ],
)
def test_tokens_keys_and_patterns_are_found(text: bytes, found: list[tuple[int, str]]) -> None:
    scanner = Scanner({}, patterns=["corp-[0-9]+|x*"])
    assert scanner.tokens(text) == found
    assert scanner.secrets(text) == []
    assert not scanner.knows_secrets


def test_what_is_found_would_be_masked() -> None:
    scanner, mask = Scanner({"K": "secret-word"}), Mask({"K": "secret-word"}, tokens=True)
    for text in (b"a secret-word", TOKEN, KEY):
        assert scanner.secrets(text) or scanner.tokens(text)
        assert "[redacted:" in mask.text(text.decode())
    assert scanner.secrets(b"a secret-word") == [(2, "K")]
    assert scanner.longest >= len(b"secret-word")
    assert Scanner({}, tokens=False).tokens(TOKEN + KEY) == []
