"""Requests to Firestore: one client per event loop, made inside of it, each request with a
timeout, none retried here, and errors in our own words."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

from google.api_core import exceptions as google_errors
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import GoogleAuthError
from google.cloud.firestore_v1 import AsyncClient
from google.cloud.firestore_v1.async_batch import AsyncWriteBatch
from google.cloud.firestore_v1.async_document import AsyncDocumentReference
from google.cloud.firestore_v1.async_query import AsyncQuery
from google.cloud.firestore_v1.base_document import DocumentSnapshot

from holdfast.adapters.firestore.address import Address
from holdfast.adapters.google_credentials import ENCODED, FIREBASE_ENCODED, load_credentials
from holdfast.errors import InvalidInput, Transient

EMULATOR = "FIRESTORE_EMULATOR_HOST"
CONFLICTS = (
    google_errors.AlreadyExists,
    google_errors.FailedPrecondition,
    google_errors.Aborted,
    google_errors.NotFound,
)
"""Errors which say that the precondition of a write does not hold."""


class Client:
    """Firestore, from whatever loop it is used in."""

    def __init__(self, address: Address, error_class: type[Transient]) -> None:
        self.address = address
        self._error_class = error_class
        self._by_loop: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncClient] = (
            weakref.WeakKeyDictionary()
        )

    @property
    def here(self) -> AsyncClient:
        loop = asyncio.get_running_loop()
        if loop not in self._by_loop:
            self._by_loop[loop] = self._make()
        return self._by_loop[loop]

    def _make(self) -> AsyncClient:
        emulated = bool(os.environ.get(EMULATOR))
        credentials: Any = (
            AnonymousCredentials() if emulated else load_credentials(FIREBASE_ENCODED, ENCODED)
        )
        return AsyncClient(self.address.project, credentials, self.address.database)

    def document(self, collection: str, id: str) -> AsyncDocumentReference:
        return self.here.collection(collection).document(id)

    async def get(self, reference: AsyncDocumentReference) -> DocumentSnapshot[Any]:
        with self._translated():
            return await reference.get(retry=None, timeout=self.address.timeout)

    async def stream(self, query: AsyncQuery) -> AsyncIterator[DocumentSnapshot[Any]]:
        with self._translated():
            async for snapshot in query.stream(retry=None, timeout=self.address.timeout):
                yield snapshot

    async def commit(self, batch: AsyncWriteBatch) -> float | None:
        """All of it or nothing. The server's time of it, or None if a document is not what the
        writer took it for."""
        with self._translated():
            try:
                await batch.commit(retry=None, timeout=self.address.timeout)
            except CONFLICTS as error:
                if "database" in str(error) and isinstance(error, google_errors.NotFound):
                    raise
                return None
            committed: Any = batch.commit_time
            return committed.timestamp()

    async def close(self) -> None:
        """Close the client of this loop; each loop closes its own."""
        client = self._by_loop.pop(asyncio.get_running_loop(), None)
        api: Any = getattr(client, "_firestore_api_internal", None)
        if api is not None:
            await api.transport.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except CONFLICTS:
            raise
        except google_errors.InvalidArgument as error:
            raise InvalidInput(f"{self.address} does not take this: {error.message}") from error
        except (google_errors.GoogleAPIError, GoogleAuthError) as error:
            raise self._error_class(f"{self.address} failed: {_explained(error)}") from error


def _explained(error: Exception) -> str:
    if isinstance(error, google_errors.PermissionDenied | google_errors.Unauthenticated):
        return (
            f"this account may not do that ({error.message}): give it the role "
            "roles/datastore.user in the project"
        )
    if isinstance(error, google_errors.DeadlineExceeded):
        return "no answer within the timeout; check the network, or raise timeout="
    return str(error)[:500]
