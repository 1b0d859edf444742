"""Credentials in variables: decoded in memory, written and shown nowhere."""

from __future__ import annotations

import base64
import json

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from holdfast.adapters.google_credentials import (
    ENCODED,
    FIREBASE_ENCODED,
    load_credentials,
    service_account_info,
)
from holdfast.errors import ConfigurationError

CANARY = "canary-7d1e"


def encoded(**fields):
    account = {
        "type": "service_account",
        "client_email": "worker@my-project.iam.gserviceaccount.com",
        "private_key": CANARY,
        "token_uri": "https://oauth2.example.org/token",
        **fields,
    }
    return base64.b64encode(json.dumps(account).encode()).decode()


@pytest.fixture(scope="module")
def private_key():
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


def test_a_service_account_comes_from_the_first_variable_that_is_set(private_key, tmp_path):
    env = {ENCODED: encoded(private_key=private_key)}
    credentials = load_credentials(FIREBASE_ENCODED, ENCODED, environment=env)
    assert credentials.service_account_email == "worker@my-project.iam.gserviceaccount.com"
    assert private_key not in repr(credentials)
    env[FIREBASE_ENCODED] = encoded(client_email="documents@my-project.iam.gserviceaccount.com")
    info = service_account_info(FIREBASE_ENCODED, ENCODED, environment=env)
    assert info["client_email"].startswith("documents@")
    assert list(tmp_path.iterdir()) == []


def test_line_breaks_of_base64_do_no_harm():
    lines = "\n".join([encoded()[:40], encoded()[40:], ""])
    assert service_account_info(ENCODED, environment={ENCODED: lines})["private_key"] == CANARY


@pytest.mark.parametrize(
    "value",
    [
        CANARY,
        base64.b64encode(CANARY.encode()).decode(),
        base64.b64encode(json.dumps([CANARY]).encode()).decode(),
        base64.b64encode(json.dumps({"client_email": CANARY}).encode()).decode(),
        base64.b64encode(b"\xff" + CANARY.encode()).decode(),
        encoded(),
    ],
    ids=["no base64", "no JSON", "no object", "fields missing", "no UTF-8", "no key"],
)
def test_what_is_wrong_is_said_without_showing_it(value):
    with pytest.raises(ConfigurationError) as caught:
        load_credentials(ENCODED, environment={ENCODED: value})
    error: BaseException | None = caught.value
    assert ENCODED in str(error)
    while error is not None:
        assert CANARY not in str(error)
        error = error.__cause__


def test_without_any_credentials_the_error_names_the_ways(monkeypatch, tmp_path):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    with pytest.raises(ConfigurationError, match=f"set {ENCODED} or GOOGLE_APPLICATION_CRED"):
        load_credentials(ENCODED, environment={})


def test_application_default_credentials_are_used(monkeypatch, tmp_path, private_key):
    path = tmp_path / "key.json"
    path.write_bytes(base64.b64decode(encoded(private_key=private_key)))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    assert load_credentials(ENCODED, environment={}).service_account_email.startswith("worker@")
