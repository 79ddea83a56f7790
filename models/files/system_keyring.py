"""Secrets in the system's keyring, each by the service that it is for and a name."""

from __future__ import annotations


def keep_secret(service: str, name: str, secret: str) -> bool:
    """Keep a secret; False if no keyring could keep it."""
    import keyring
    from keyring.errors import KeyringError

    try:
        keyring.set_password(service, name, secret)
    except KeyringError:
        return False
    return True


def kept_secret(service: str, name: str) -> str | None:
    """Return a secret; None without one or a keyring. It may take long: a keyring may ask its owner."""
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:  # a broken keyring must not stop what needs no secret
        return None
    try:
        return keyring.get_password(service, name)
    except KeyringError:  # none there, or locked
        return None


def forget_secret(service: str, name: str) -> bool:
    """Remove a secret; False if there was none, or no keyring."""
    import keyring
    from keyring.errors import KeyringError

    try:
        keyring.delete_password(service, name)
    except KeyringError:
        return False
    return True
