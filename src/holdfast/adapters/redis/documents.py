"""Documents as plain Redis keys: `GET <prefix><key>` gives the document and nothing else. Its
version stands beside it, under `<prefix>holdfast:version:<key>`, and a script compares the two."""

from __future__ import annotations

from math import ceil

from holdfast.adapters.redis import address as addresses
from holdfast.adapters.redis import server
from holdfast.adapters.redis.link import Links
from holdfast.adapters.redis.scripts import document_script
from holdfast.adapters.redis.wire import ReplyError
from holdfast.errors import Transient
from holdfast.ports.documents import REMEMBERED


class RedisDocuments:
    """`Documents` on a server, shared by any number of processes. A server that evicts keys may
    take a document or its version away; the run's next event or a rebuild writes it again."""

    def __init__(self, url: str) -> None:
        self.address = addresses.parse(url)
        self._script = document_script()
        self._links = Links(self.address, [self._script])

    async def put(self, key: str, body: bytes, *, version: str, ttl: float | None = None) -> bool:
        expiry = 0 if ttl is None else max(1, ceil(ttl * 1000))
        return await self._write(key, version, "put", body, expiry)

    async def delete(self, key: str, *, version: str) -> bool:
        return await self._write(key, version, "delete", b"", 0)

    async def close(self) -> None:
        self._links.close()

    async def _write(self, key: str, version: str, what: str, body: bytes, expiry: int) -> bool:
        prefix, link = self.address.prefix, self._links.here()
        names = (f"{prefix}{key}", f"{prefix}holdfast:version:{key}")
        arguments = (version, what, body, expiry, ceil(REMEMBERED * 1000))
        try:
            wire = await link.command_wire()
            return bool(await link.run(wire, self._script, *names, *arguments))
        except (OSError, ReplyError) as error:
            raise Transient(str(server.explain(error, self.address))) from error
