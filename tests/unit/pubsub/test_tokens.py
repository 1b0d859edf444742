"""Whose pushes are believed."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from holdfast.adapters.pubsub.signing_keys import (
    LONGEST,
    MAX_ANSWER,
    SHORTEST,
    USUAL,
    KeysResponse,
    SigningKeys,
    fetch_keys,
    lifetime,
    parse_keys,
)
from holdfast.adapters.pubsub.tokens import InvalidToken, TokenVerifier
from holdfast.errors import ConfigurationError, Transient
from holdfast.testing.google_tokens import TokenService

AUDIENCE = "https://worker.example.org/pubsub"
ACCOUNT = "pusher@my-project.iam.gserviceaccount.com"
GOOD = {"aud": AUDIENCE, "email": ACCOUNT}


@pytest.fixture(scope="module")
def service():
    with TokenService() as service:
        yield service


def verify(service, authorization):
    verifier = TokenVerifier(SigningKeys(service.url), AUDIENCE, [ACCOUNT, "other@x.example"])
    return asyncio.run(verifier.verify(authorization))


def test_a_token_of_pubsub_is_believed(service):
    assert verify(service, f"Bearer {service.token(**GOOD)}") == ACCOUNT
    assert verify(service, f"bearer {service.token(**GOOD, iss='accounts.google.com')}") == ACCOUNT


def encoded(part) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


def unsigned(service) -> str:
    _, claims, _ = service.token(**GOOD).split(".")
    return f"{encoded({'alg': 'none', 'kid': 'key-1'})}.{claims}."


def signed_with_the_public_key(service) -> str:
    """The classic confusion: the public key taken as the secret of a symmetric signature."""
    _, claims, _ = service.token(**GOOD).split(".")
    secret = service.private_key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    head = encoded({"alg": "HS256", "kid": "key-1"})
    mac = hmac.new(secret, f"{head}.{claims}".encode(), hashlib.sha256).digest()
    return f"{head}.{claims}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def with_other_claims(service) -> str:
    head, _, signature = service.token(**GOOD | {"email": "thief@x.example"}).split(".")
    return f"{head}.{service.token(**GOOD).split('.')[1]}.{signature}"


def in_seconds(count: int) -> int:
    """From the moment at which a token is made: a run of all tests lasts longer than some
    tokens."""
    return int(time.time()) + count


OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
BAD = {
    "nothing": (lambda s: None, "no bearer token"),
    "another scheme": (lambda s: "Basic dXNlcjpwYXNz", "no bearer token"),
    "no token": (lambda s: "Bearer not-a-token", "can't be read"),
    "too long": (lambda s: "Bearer " + "x" * 9000, "more than 8192"),
    "unsigned": (lambda s: f"Bearer {unsigned(s)}", "not signed with RS256"),
    "HS256 with the public key": (
        lambda s: f"Bearer {signed_with_the_public_key(s)}",
        "not signed with RS256",
    ),
    "RS512": (lambda s: f"Bearer {s.token(**GOOD, algorithm='RS512')}", "not signed with RS256"),
    "another key": (lambda s: f"Bearer {s.token(**GOOD, key=OTHER_KEY)}", "signature"),
    "a key that nobody knows": (lambda s: f"Bearer {s.token(**GOOD, kid='key-2')}", "not Google's"),
    "no key named": (lambda s: f"Bearer {s.token(**GOOD, kid=None)}", "does not name its key"),
    "other claims": (lambda s: f"Bearer {with_other_claims(s)}", "signature"),
    "expired": (lambda s: f"Bearer {s.token(**GOOD, exp=in_seconds(-60))}", "expired"),
    "no expiry": (lambda s: f"Bearer {s.token(**GOOD, exp=None)}", "no exp"),
    "from the future": (
        lambda s: f"Bearer {s.token(**GOOD, iat=in_seconds(600))}",
        "not valid yet",
    ),
    "another issuer": (
        lambda s: f"Bearer {s.token(**GOOD, iss='https://evil.example')}",
        "not issued by Google",
    ),
    "another audience": (
        lambda s: f"Bearer {s.token(**GOOD | {'aud': 'https://other.example'})}",
        "audience",
    ),
    "several audiences": (
        lambda s: f"Bearer {s.token(**GOOD | {'aud': [AUDIENCE, 'https://o.example']})}",
        "audience",
    ),
    "another service account": (
        lambda s: f"Bearer {s.token(**GOOD | {'email': 'thief@x.example'})}",
        "another service acc",
    ),
    "no e-mail": (lambda s: f"Bearer {s.token(aud=AUDIENCE)}", "no email"),
    "e-mail not verified": (
        lambda s: f"Bearer {s.token(**GOOD, email_verified=False)}",
        "not verified",
    ),
    "e-mail verified by a word": (
        lambda s: f"Bearer {s.token(**GOOD, email_verified='true')}",
        "not verified",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_token_is_refused_and_not_quoted(service, name):
    make, reason = BAD[name]
    authorization = make(service)
    with pytest.raises(InvalidToken, match=reason) as caught:
        verify(service, authorization)
    assert authorization is None or authorization.split(" ")[1][:20] not in str(caught.value)


def test_at_least_twelve_bad_tokens_are_refused():
    assert len(BAD) >= 12


# --- the keys -------------------------------------------------------------------------------------


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Keys:
    """Answers of a server that is asked as often as `asked` says."""

    def __init__(self, service, cache_control="max-age=600"):
        self.fetches = 0
        self.answer = KeysResponse(service.answer, cache_control)
        self.clock = Clock()
        self.keys = SigningKeys("https://keys.example", fetch=self.fetch, clock=self.clock)

    def fetch(self, url):
        self.fetches += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def get(self, id):
        return asyncio.run(self.keys.get(id))


def test_keys_are_kept_as_long_as_the_answer_says(service):
    server = Keys(service)
    assert server.get("key-1") is not None
    server.clock.now += 599
    server.get("key-1")
    assert server.fetches == 1
    server.clock.now += 1
    server.get("key-1")
    assert server.fetches == 2


def test_invented_names_of_keys_are_asked_for_once_a_minute(service):
    server = Keys(service)
    for number in range(50):
        assert server.get(f"invented-{number}") is None
    assert server.fetches == 1
    server.clock.now += SHORTEST
    for number in range(50):
        server.get(f"invented-{number}")
    assert server.fetches == 2


def test_a_new_key_is_found_before_the_old_ones_expire(service):
    server = Keys(service)
    server.get("key-1")
    both = [service.public_key(), service.public_key("key-2")]
    server.answer = KeysResponse(json.dumps({"keys": both}).encode(), "max-age=600")
    server.clock.now += SHORTEST
    assert server.get("key-2") is not None


def test_while_nobody_answers_keys_are_used_for_another_hour_and_then_nothing_is_believed(service):
    server = Keys(service)
    server.get("key-1")
    server.answer = OSError("away")
    server.clock.now += 600
    while server.clock.now < 1000 + 600 + USUAL - 30:
        assert server.get("key-1") is not None
        server.clock.now += 30
    assert server.fetches <= 2 + USUAL / SHORTEST
    server.clock.now += 2 * SHORTEST
    with pytest.raises(Transient, match="can't be read from"):
        server.get("key-1")


def test_without_any_key_nothing_is_believed(service):
    server = Keys(service)
    server.answer = OSError("away")
    with pytest.raises(Transient, match="away"):
        server.get("key-1")


def test_many_pushes_at_once_ask_once(service):
    server = Keys(service)

    async def story():
        await asyncio.gather(*(server.keys.get("key-1") for _ in range(20)))

    asyncio.run(story())
    assert server.fetches == 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("", USUAL),
        ("no-store", USUAL),
        ("public, max-age=300", 300.0),
        ("max-age=0", SHORTEST),
        ("max-age=999999999", LONGEST),
    ],
)
def test_how_long_keys_are_kept_is_bounded(text, seconds):
    assert lifetime(text) == seconds


def weak_key():
    with TokenService(key_size=1024) as weak:
        return weak.public_key()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"keys": []}',
        b'{"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "a"}]}',
        b'{"keys": [{"kty": "RSA", "kid": "a", "n": "x", "e": "y"}]}',
        b'{"keys": [{"kty": "RSA", "kid": "a"}]}',
        b"\xff",
    ],
)
def test_an_answer_without_a_usable_key_is_an_error(body):
    with pytest.raises(ValueError, match=r"no usable RSA key|no JSON Web Key Set"):
        parse_keys(body)


def test_a_weak_key_is_not_used():
    with pytest.raises(ValueError, match="no usable RSA key"):
        parse_keys(json.dumps({"keys": [weak_key()]}).encode())


def test_too_many_keys_are_not_all_read(service):
    many = [service.public_key(f"key-{number}") for number in range(100)]
    assert len(parse_keys(json.dumps({"keys": many}).encode())) == 20


def test_an_answer_that_is_too_long_or_leads_elsewhere_is_refused():
    with TokenService() as service:
        service.answer = b" " * (MAX_ANSWER + 1)
        with pytest.raises(OSError, match="more than"):
            fetch_keys(service.url)
        service.answer, service.status = b"", 302
        service.headers = {"Location": service.url}
        with pytest.raises(OSError, match="302"):
            fetch_keys(service.url)
        assert service.requests == 2


@pytest.mark.parametrize("url", ["http://keys.example/certs", "file:///etc/keys", "ftp://x"])
def test_keys_are_believed_over_https_only(url):
    with pytest.raises(ConfigurationError, match="https only"):
        SigningKeys(url)
