"""The blob store: immutable objects, created once and never changed."""

from __future__ import annotations

from typing import Protocol


class BlobStore(Protocol):
    """Put-if-absent, get, list, delete. Keys are relative paths of safe segments
    (`tenant/run/step/name`).

    Who may call: any task of any event loop; calls may overlap. Who retries: the caller; a client
    of a service may also repeat what is refused for the moment, within its timeout. `put` is
    idempotent: what is there already stays as it is. An object is complete or absent, also after a
    crash. Errors: `StoreUnavailable`."""

    async def put(self, key: str, data: bytes, *, durable: bool = True) -> bool:
        """Create the object durably. False if it was there already (its bytes are left alone).

        What can be had again (`durable=False`) may be lost or damaged in a power cut, and in
        nothing less."""
        ...

    async def get(self, key: str) -> bytes | None:
        """The object's bytes, or None if there is no such object."""
        ...

    async def list(self, prefix: str) -> list[str]:
        """The keys below a prefix that ends in `/`, sorted."""
        ...

    async def delete(self, prefix: str) -> int:
        """Remove all objects below a prefix that ends in `/`: only retention does this. Returns how
        many."""
        ...
