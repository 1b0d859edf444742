"""A double of Google's token service: signs tokens as a push carries them, and serves the keys.

with TokenService() as service:
    token = service.token(email="pusher@p.iam.gserviceaccount.com", aud="https://me.example")
    # push.certificates = service.url"""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

KEY_ID = "key-1"


class TokenService:
    """Signs with its own keys and serves them at a local address."""

    def __init__(self, key_size: int = 2048) -> None:
        self.private_key = rsa.generate_private_key(public_exponent=65537, key_size=key_size)
        self.answer: bytes = json.dumps({"keys": [self.public_key()]}).encode()
        self.status = 200
        self.headers = {"Cache-Control": "public, max-age=19845, must-revalidate"}
        self.requests = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/certs"

    def public_key(self, kid: str = KEY_ID) -> dict[str, Any]:
        key = RSAAlgorithm.to_jwk(self.private_key.public_key(), as_dict=True)
        return {**key, "kid": kid, "alg": "RS256", "use": "sig"}

    def token(
        self,
        *,
        key: Any = None,
        algorithm: str = "RS256",
        kid: str | None = KEY_ID,
        **claims: Any,
    ) -> str:
        """A token as Pub/Sub sends it, with what is given in its place; None leaves a claim out."""
        now = int(time.time())
        usual = {
            "iss": "https://accounts.google.com",
            "sub": "113774264463038321964",
            "email_verified": True,
            "iat": now,
            "exp": now + 3600,
        }
        content = {name: claim for name, claim in (usual | claims).items() if claim is not None}
        headers = {"kid": kid} if kid is not None else {}
        signing = self.private_key if key is None else key
        return jwt.encode(content, signing, algorithm=algorithm, headers=headers)

    def __enter__(self) -> TokenService:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(service: TokenService) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            service.requests += 1
            self.send_response(service.status)
            for name, value in service.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(service.answer)))
            self.end_headers()
            self.wfile.write(service.answer)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    return Handler
