"""SHA-256 without `hashlib`, which takes longer to load than a room takes to read."""

from __future__ import annotations


def sha256_hex(data: bytes) -> str:
    """Return the SHA-256 of some bytes in hexadecimal digits."""
    try:
        from _sha256 import sha256  # type: ignore[import-not-found]  # CPython's own, up to 3.11
    except ImportError:
        try:
            from _sha2 import sha256  # type: ignore[import-not-found]  # from 3.12 on
        except ImportError:
            from hashlib import sha256
    digest: str = sha256(data).hexdigest()
    return digest
