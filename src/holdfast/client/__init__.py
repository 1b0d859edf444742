"""The service of another process, over HTTP: `Client` for programs that block, `AsyncClient` for
the others.

    with Client("http://127.0.0.1:8080") as client:
        accepted = client.submit("report", {"comments": […]}, key="r-123")
        print(client.result(accepted.run.id))

Both have the shapes and the errors of `holdfast` itself. Extra `client`."""

from __future__ import annotations

from holdfast.client.asynchronous import AsyncClient
from holdfast.client.blocking import Client

__all__ = ["AsyncClient", "Client"]
