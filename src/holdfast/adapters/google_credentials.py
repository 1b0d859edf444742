"""Credentials of Google Cloud, for every adapter that talks to it.

A variable may hold a service account's JSON, base64-encoded, as secret managers hand it out; each
service may have one of its own. Without one, application default credentials are used:
`GOOGLE_APPLICATION_CREDENTIALS`, `gcloud auth application-default login`, or the metadata server.
What a variable holds is decoded in memory, and is neither written nor shown."""

from __future__ import annotations

import binascii
import os
from base64 import b64decode
from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.errors import ConfigurationError

ENCODED = "GOOGLE_CREDENTIALS_ENCODED"
FIREBASE_ENCODED = "FIREBASE_CREDENTIALS_ENCODED"
CLOUD = "https://www.googleapis.com/auth/cloud-platform"


def service_account_info(
    *variables: str, environment: Mapping[str, str] | None = None
) -> dict[str, Any] | None:
    """The service account in the first variable that is set; None if none is. Errors name the
    variable, never what it holds."""
    environment = os.environ if environment is None else environment
    for variable in variables:
        if encoded := "".join(environment.get(variable, "").split()):
            return _decoded(encoded, variable)
    return None


def _decoded(encoded: str, variable: str) -> dict[str, Any]:
    remedy = f"write the service account's JSON file with `base64 -w0 FILE` into {variable}"
    try:
        info = msgspec.json.decode(b64decode(encoded, validate=True), type=dict[str, Any])
    except (binascii.Error, msgspec.DecodeError, UnicodeDecodeError, ValueError):
        # `from None`: the cause would quote what the variable holds.
        raise ConfigurationError(f"{variable} is not base64 of a JSON object: {remedy}") from None
    missing = [name for name in ("client_email", "private_key", "token_uri") if not info.get(name)]
    if missing:
        raise ConfigurationError(
            f"{variable} is not a service account's key: it has no {', '.join(missing)}; {remedy}"
        )
    return info


def load_credentials(*variables: str, environment: Mapping[str, str] | None = None) -> Any:
    """Credentials for Google's client libraries. Raises ConfigurationError."""
    import google.auth
    from google.auth.exceptions import GoogleAuthError
    from google.oauth2 import service_account

    info = service_account_info(*variables, environment=environment)
    if info is not None:
        try:
            return service_account.Credentials.from_service_account_info(info, scopes=[CLOUD])
        except (ValueError, GoogleAuthError):
            raise ConfigurationError(
                f"the service account in {' or '.join(variables)} can't be used: its private_key "
                "can't be read; download a new key"
            ) from None
    try:
        credentials, _ = google.auth.default(scopes=[CLOUD])
    except GoogleAuthError as error:
        raise ConfigurationError(
            f"there are no credentials for Google Cloud: set {' or '.join(variables)} or "
            "GOOGLE_APPLICATION_CREDENTIALS, or run `gcloud auth application-default login`"
        ) from error
    return credentials
