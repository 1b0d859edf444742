"""Every command either works with `--url` and a key, or says why it can't; every command is
covered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acceptance.test_remote_cli import Service
from tests.docs.test_reference import commands

from holdfast.cli.commands import CliCommand

COMMENTS = Path(__file__).parents[2] / "examples" / "data" / "riverside.csv"
LOCAL = {name: command for name, command in commands().items() if getattr(command, "local", "")}

REMOTE = {
    "run": "run greet -i name=Ada",
    "report build": f"report build {COMMENTS} -o out",
    "workers list": "workers list",
    "runs list": "runs list",
    "runs show": "runs show {done}",
    "runs result": "runs result {done}",
    "runs events": "runs events {done}",
    "runs logs": "runs logs {done}",
    "runs watch": "runs watch {done}",
    "runs pause": "runs pause {waiting}",
    "runs resume": "runs resume {waiting}",
    "runs cancel": "runs cancel {unwanted}",
    "runs rerun": "runs rerun {done} --from-step deliver",
    "explain": "explain {failed}",
    "dlq list": "dlq list",
    "dlq show": "dlq show {failed}",
    "dlq redrive": "dlq redrive {failed} --yes",
    "dlq discard": "dlq discard {other_failed} --reason test",
    "locks list": "locks list",
    "locks release": "locks release nothing --yes",
    "lanes list": "lanes list",
    "lanes show": "lanes show line",
    "lanes step-down": "lanes step-down line --yes",
    "tenants create": "tenants create acme",
    "tenants list": "tenants list",
    "tenants show": "tenants show acme",
    "tenants set": "tenants set acme --per-minute 7",
    "tenants keys create": "tenants keys create acme",
    "tenants keys list": "tenants keys list",
    "tenants keys rotate": "tenants keys rotate {key}",
    "tenants keys revoke": "tenants keys revoke {key} --yes",
    "tenants delete": "tenants delete acme --yes",
    "audit list": "audit list",
    "projections list": "projections list",
    "projections rebuild": "projections rebuild nothing --yes",
    "projections drop": "projections drop nothing --yes",
    "webhooks add": "webhooks add https://example.org/hooks",
    "webhooks list": "webhooks list",
    "webhooks deliveries": "webhooks deliveries {webhook}",
    "webhooks rotate": "webhooks rotate {webhook}",
    "webhooks enable": "webhooks enable {webhook}",
    "webhooks replay": "webhooks replay {webhook} nothing:1",
    "webhooks test": "webhooks test {webhook}",
    "webhooks remove": "webhooks remove {webhook} --yes",
    "pipelines list": "pipelines list",
    "pipelines graph": "pipelines graph greet",
    "pipelines schema": "pipelines schema greet",
}
"""One call of each, in an order in which they make sense."""
NOTHING_THERE = {"projections rebuild", "projections drop", "webhooks replay", "locks release"}
"""What the service answers with "there is none": exit code 7."""
NOT_REACHED = {"webhooks test"}
"""The endpoint refuses the connection: exit code 8."""


ARGUMENTS = {
    "report diff": "a b",
    "report estimate": str(COMMENTS),
    "report export": "md a",
    "report validate": "a",
    "transcribe": "x.mp3",
    "promote": "a b",
    "completion": "bash",
}
"""What the others need."""


def test_every_command_is_one_or_the_other() -> None:
    assert set(REMOTE) | set(LOCAL) == set(commands())
    assert not set(REMOTE) & set(LOCAL)
    assert all(isinstance(command, CliCommand) for command in commands().values())


@pytest.mark.parametrize("name", LOCAL)
def test_what_no_service_can_do_says_why(name: str, service: Service) -> None:
    arguments = ARGUMENTS.get(name, "")
    refused = service.here(*name.split(), *arguments.split(), "--url", service.url, code=2)
    assert refused.out == ""
    assert refused.err == f"holdfast: {LOCAL[name].local}: leave out --url\n"  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = Service(tmp_path_factory.mktemp("service"))
    toml = 'store = "sqlite:///runs.db"\napp = ["pipelines.py", "holdfast.apps.report:report"]\n'
    allow = '[webhooks]\nkey = "a key that is long enough for a test"\nallow = ["127.0.0.1"]\n'
    (service.folder / "holdfast.toml").write_text(toml + allow)
    service.key = service.here("tenants", "keys", "create", "--first").out.strip()
    service.serve()
    assert service.process is not None
    try:
        yield service
    finally:
        service.process.process.terminate()
        assert service.process.end().code == 0


def things(service: Service) -> dict[str, str]:
    """What the commands are about, made by commands."""

    def run(*words: str, code: int = 0) -> str:
        answer = service.remote("run", "greet", "--json", "-i", *words, code=code)
        return answer.json["run"]

    service.remote("tenants", "create", "keyholder")
    key = service.remote("tenants", "keys", "create", "keyholder", "--json").json["key"]["id"]
    webhook = service.remote("webhooks", "add", "http://127.0.0.1:9/hooks", "--json").json["id"]
    return {
        "done": run("name=Ada"),
        "waiting": run("name=Bob", "--delay", "1h", "--no-wait"),
        "unwanted": run("name=Max", "--delay", "1h", "--no-wait"),
        "failed": run("name=Eve", "-i", "trouble=fail", code=5),
        "other_failed": run("name=Kay", "-i", "trouble=fail", code=5),
        "key": key,
        "webhook": webhook,
    }


def test_every_other_command_works_from_elsewhere(service: Service) -> None:
    names = things(service)
    for name, call in REMOTE.items():
        words = [word.format(**names) for word in call.split()]
        code = 7 if name in NOTHING_THERE else 8 if name in NOT_REACHED else 0
        answer = service.remote(*words, code=code)
        assert answer.out or answer.err, name
    view = service.remote("runs", "show", names["unwanted"], "--json").json
    assert view["run"]["state"] == "cancelled"
    assert json.loads((service.folder / "elsewhere" / "out" / "report.json").read_bytes())


def test_an_administrator_sees_what_belongs_to_tenants(service: Service) -> None:
    service.remote("tenants", "create", "bolt")
    admin = service.key
    service.key = service.remote("tenants", "keys", "create", "bolt", "--json").json["text"]
    try:
        run = service.remote("run", "greet", "-i", "name=Ada", "--json").json["run"]
        hook = service.remote("webhooks", "add", "https://example.org/bolt", "--json", code=4)
        assert "operate" in hook.err
    finally:
        service.key = admin
    assert service.remote("runs", "show", run, "--json").json["run"]["tenant"] == "bolt"
    assert run in service.remote("runs", "list", "--tenant", "bolt").out
