"""Who the bearer of a token is, read from the token itself."""

from __future__ import annotations

import base64
import binascii
import json

from airflow_handoff.client.errors import InvalidUse


def user_of(token: str) -> str:
    """Return the user id (claim ``sub``) of a JSON Web Token, unverified.

    Good enough to filter a list; the server alone decides what its bearer may do.

    :raises InvalidUse: if the token has no such claim.
    """
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return str(claims["sub"])
    except (IndexError, KeyError, TypeError, ValueError, binascii.Error):
        raise InvalidUse("the token does not say who its bearer is: name yourself with --user") from None
