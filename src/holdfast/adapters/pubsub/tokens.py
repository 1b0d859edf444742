"""Whether a push comes from Pub/Sub: it carries a token that Google has signed for one service
account and one audience (OpenID Connect)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import jwt

from holdfast.adapters.pubsub.signing_keys import SigningKeys
from holdfast.errors import Fix

ISSUERS: Final = ("https://accounts.google.com", "accounts.google.com")
ALGORITHM: Final = "RS256"
MAX_TOKEN: Final = 8 * 1024
LEEWAY: Final = 10
"""Seconds by which clocks may differ."""
REQUIRED: Final = ("iss", "aud", "exp", "iat", "email", "email_verified")


class InvalidToken(Fix):
    """The token is missing or not accepted. Says why, and quotes nothing of it."""


class TokenVerifier:
    """Accepts tokens for one audience, from given service accounts."""

    def __init__(self, keys: SigningKeys, audience: str, service_accounts: Collection[str]) -> None:
        self._keys = keys
        self._audience = audience
        self._service_accounts = frozenset(service_accounts)

    async def verify(self, authorization: str | None) -> str:
        """The e-mail address of who sent it. Raises InvalidToken, or Transient while the keys
        can't be had."""
        token = _bearer(authorization)
        key = await self._keys.get(_key_id(token))
        if key is None:
            raise InvalidToken("the token is signed with a key that is not Google's")
        return self._account(self._claims(token, key))

    def _claims(self, token: str, key: Any) -> Mapping[str, Any]:
        try:
            return jwt.decode(
                token,
                key,
                algorithms=[ALGORITHM],
                audience=self._audience,
                issuer=ISSUERS,
                leeway=LEEWAY,
                options={"require": list(REQUIRED), "strict_aud": True},
            )
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise InvalidToken(_reason(error)) from error

    def _account(self, claims: Mapping[str, Any]) -> str:
        if claims["email_verified"] is not True:
            raise InvalidToken("the token's e-mail address is not verified")
        if claims["email"] not in self._service_accounts:
            raise InvalidToken("the token belongs to another service account")
        return claims["email"]


def _bearer(authorization: str | None) -> str:
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise InvalidToken("there is no bearer token")
    if len(token) > MAX_TOKEN:
        raise InvalidToken(f"the token has more than {MAX_TOKEN} characters")
    return token.strip()


def _key_id(token: str) -> str:
    """Of a token whose head says that it is signed as we want it."""
    try:
        head = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        raise InvalidToken("the token can't be read") from error
    if head.get("alg") != ALGORITHM:
        raise InvalidToken(f"the token is not signed with {ALGORITHM}")
    id = head.get("kid")
    if not isinstance(id, str) or not 0 < len(id) <= 200:
        raise InvalidToken("the token does not name its key")
    return id


REASONS: Mapping[type[Exception], str] = {
    jwt.ExpiredSignatureError: "the token has expired",
    jwt.ImmatureSignatureError: "the token is not valid yet",
    jwt.InvalidAudienceError: "the token was made for another audience",
    jwt.InvalidIssuerError: "the token was not issued by Google",
    jwt.InvalidSignatureError: "the signature of the token is wrong",
}


def _reason(error: Exception) -> str:
    if isinstance(error, jwt.MissingRequiredClaimError):
        return f"the token has no {error.claim}"
    return REASONS.get(type(error), "the token can't be read")
