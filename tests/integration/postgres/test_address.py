"""The store's URL: ours and libpq's parameters, and what is never shown."""

import asyncio
import traceback

import pytest

from holdfast.adapters.postgres.address import parse
from holdfast.adapters.postgres.database import connect
from holdfast.bootstrap import make_store
from holdfast.errors import ConfigurationError, StoreUnavailable
from holdfast.model.clock import SystemClock


def test_our_parameters_are_taken_out_and_the_rest_goes_to_libpq():
    address = parse("postgres://ann@db:6432/app?pool=7&timeout=1500ms&schema=jobs&sslmode=require")
    assert (address.pool, address.timeout, address.schema) == (7, 1.5, "jobs")
    assert "sslmode=require" in address.conninfo
    assert "pool" not in address.conninfo
    assert "port=6432" in address.conninfo


def test_defaults_are_modest_and_can_be_overruled():
    address = parse("postgresql://db/app?application_name=mine")
    assert (address.pool, address.timeout, address.schema, address.listen) == (
        4,
        10.0,
        "holdfast",
        None,
    )
    assert "application_name=mine" in address.conninfo
    assert "keepalives_idle=15" in address.conninfo


def test_connecting_may_take_another_time():
    assert parse("postgresql://db/app?timeout=3s").connect_timeout == 3.0
    address = parse("postgresql://db/app?timeout=3s&connect=500ms")
    assert (address.timeout, address.connect_timeout) == (3.0, 0.5)


def test_a_password_is_used_and_never_shown():
    address = parse("postgresql://ann:s3cret@db/app?sslpassword=s3cret")
    assert "s3cret" in address.conninfo
    assert "s3cret" not in repr(address) + str(address) + address.shown
    assert address.shown == "postgresql://ann@db/app"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:s3cret@db/app?pool=0",
        "postgresql://ann:s3cret@db/app?pool=many",
        "postgresql://ann:s3cret@db/app?timeout=soon",
        "postgresql://ann:s3cret@db/app?timeout=0",
        "postgresql://ann:s3cret@db/app?schema=",
        "postgresql://ann:s3cret@db/app?listen=nowhere",
        "postgresql://ann:s3cret@db/app?polo=4",
        "postgresql://ann:s3cret%zz@db/app",
    ],
)
def test_what_is_not_understood_is_refused_without_the_password(url):
    with pytest.raises(ConfigurationError) as caught:
        make_store(url, SystemClock())
    assert "s3cret" not in "".join(traceback.format_exception(caught.value)).replace(url, "")
    assert "postgresql://ann@db" in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:s3c/ret@db/app",
        "postgresql://ann:s3c#ret@db",
        "postgresql://a:s3c?r@d",
        "postgresql://a:s3c@d:p/x",
    ],
)
def test_a_password_that_should_have_been_encoded_is_not_shown_either(url):
    with pytest.raises(ConfigurationError) as caught:
        parse(url)
    assert "s3c" not in str(caught.value)


def test_listening_can_lead_past_a_pooler_or_nowhere():
    assert parse("postgresql://db/app?listen=off").listen == ""
    elsewhere = parse("postgresql://ann@pooler:6432/app?listen=db:5432").listen
    assert elsewhere is not None
    assert "host=db" in elsewhere
    assert "port=5432" in elsewhere
    assert "user=ann" in elsewhere


def test_a_url_without_a_host_means_a_socket_of_this_machine():
    assert "dbname=app" in parse("postgresql:///app").conninfo
    assert "host=/tmp" in parse("postgresql:///app?host=/tmp&pool=2").conninfo


def test_several_hosts_are_libpqs_business():
    address = parse(
        "postgresql://ann:pw@one:5432,[::1]:5433,two/app?target_session_attrs=read-write"
    )
    assert "host=one,::1,two" in address.conninfo
    assert "target_session_attrs=read-write" in address.conninfo


def test_a_schema_may_have_any_name():
    assert parse('postgresql://db/app?schema=my "jobs"').quoted_schema == '"my ""jobs"""'


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:p@ssw0rd@127.0.0.1:1/db",
        "postgresql://user:@ssw0rd@127.0.0.1:1/db",
        "postgresql://us@r:ssw0rd@127.0.0.1:1/db",
        "postgresql://ssw0rd@r@127.0.0.1:1/db",
    ],
)
def test_an_unencoded_at_sign_is_part_of_the_login_and_never_shown(url):
    """libpq would take what follows the first one for the host, and name it in its errors."""
    address = parse(url)
    assert "ssw0rd" not in f"{address.shown} {address!r}"
    with pytest.raises(StoreUnavailable) as error:
        asyncio.run(connect(address))
    assert "ssw0rd" not in str(error.value)
    assert "127.0.0.1" in str(error.value)
