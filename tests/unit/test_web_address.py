"""Addresses that other people give us: what is called, and what never is."""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_address

import pytest

from holdfast.adapters.web.client import GuardedWeb
from holdfast.errors import InvalidInput
from holdfast.model.web_address import is_public, parse_web_address

REFUSED = [
    "http://example.org/",  # not encrypted
    "ftp://example.org/",
    "file:///etc/passwd",
    "gopher://example.org/",
    "javascript:alert(1)",
    "data:text/plain,x",
    "//example.org/",
    "example.org",
    "",
    "https://",
    "https:///path",
    "https://user@example.org/",
    "https://user:password@example.org/",
    "https://example.org@127.0.0.1/",
    "https://example.org:0/",
    "https://example.org:99999/",
    "https://example.org:x/",
    "https://example.org\\@127.0.0.1/",
    "https://exa mple.org/",
    "https://example.org/\r\nHost: evil",
    "https://example.org\x00/",
    "https://2130706433/",  # 127.0.0.1 as one number
    "https://0x7f000001/",
    "https://0x7f.0.0.1/",
    "https://0177.0.0.1/",
    "https://127.1/",
    "https://127.0.1/",
    "https://0/",
    "https://00000000177.0.0.1/",
    "https://127.0.0.1.%31/",
    "https://%31%32%37.0.0.1/",
    "https://[fe80::1%25eth0]/",
    "https://[::1/",
    "https://-example.org/",
    "https://" + "a" * 300 + ".org/",
    "https://example.org/" + "a" * 3000,
]
PRIVATE = [
    "127.0.0.1", "127.255.255.254", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255",
    "192.168.1.1", "169.254.169.254", "100.64.0.1", "192.0.0.192", "198.18.0.1", "203.0.113.5",
    "224.0.0.1", "240.0.0.1", "255.255.255.255", "168.63.129.16", "::", "::1", "fe80::1",
    "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1", "::ffff:127.0.0.1",
    "::ffff:169.254.169.254", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::a00:1", "2002:7f00:1::", "2002:a9fe:a9fe::", "2001:0:4136:e378:8000:63bf:80ff:fffe",
]  # fmt: skip
PUBLIC = ["93.184.215.14", "8.8.8.8", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "::ffff:8.8.8.8"]


@pytest.mark.parametrize("url", REFUSED)
def test_what_is_no_plain_https_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        parse_web_address(url)


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://Example.ORG", "https://example.org/"),
        ("https://example.org.:443/a?b=c#d", "https://example.org/a?b=c"),
        ("https://example.org:8443/", "https://example.org:8443/"),
        ("https://münchen.example/", "https://xn--mnchen-3ya.example/"),
        ("https://[2606:2800::1]:444/x", "https://[2606:2800::1]:444/x"),
    ],
)
def test_an_address_is_written_in_one_way(url: str, expected: str) -> None:
    assert str(parse_web_address(url)) == expected


def test_plain_http_is_for_hosts_that_are_allowed() -> None:
    assert parse_web_address("http://127.0.0.1:80/x", {"127.0.0.1"}).port == 80


@pytest.mark.parametrize("address", PRIVATE)
def test_a_name_that_leads_to_a_private_address_is_not_called(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when only one of its addresses is private."""

    def resolve(host: str, port: int, *_: object, **__: object) -> list[object]:
        kind = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.8", port)),
            (kind, socket.SOCK_STREAM, 6, "", (address, port)),
        ]

    async def call() -> None:
        web = GuardedWeb()
        monkeypatch.setattr(web._client, "send", None)  # nothing leaves, whatever the guard does
        try:
            with pytest.raises(InvalidInput, match="is no public address"):
                await web.post("https://rebinding.example/", {}, b"", 5.0)
        finally:
            await web.close()

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    asyncio.run(call())
