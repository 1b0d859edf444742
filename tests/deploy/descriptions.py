"""What is described under deploy/: containers with their arguments and variables, figures,
units."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import hcl2
import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CLOUD_RUN = DEPLOY / "cloudrun"
TERRAFORM = DEPLOY / "terraform"
WORKFLOWS = ROOT / ".github" / "workflows"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
WORKER = ("python", "-m", "holdfast.worker")


class Process(NamedTuple):
    """A process that a description starts: the words behind `holdfast`, and its environment."""

    where: str
    arguments: list[str]
    environment: set[str]


def documents(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def cloud_run(name: str) -> dict[str, Any]:
    [document] = documents(CLOUD_RUN / name)
    return document


def container(description: dict[str, Any]) -> dict[str, Any]:
    """The one container of a Cloud Run service, job or worker pool."""
    spec = description["spec"]["template"]["spec"]
    spec = spec["template"]["spec"] if "template" in spec else spec
    [only] = spec["containers"]
    return only


def terraform() -> dict[str, dict[str, Any]]:
    """Resources by `type.name`."""
    resources: dict[str, dict[str, Any]] = {}
    for path in sorted(TERRAFORM.glob("*.tf")):
        parsed = plain(hcl2.loads(path.read_text()))
        for block in parsed.get("resource", []):
            for kind, entry in block.items():
                for name, body in entry.items():
                    if name != "__is_block__":
                        resources[f"{kind}.{name}"] = body
    return resources


def terraform_locals() -> dict[str, Any]:
    values: dict[str, Any] = {}
    for path in sorted(TERRAFORM.glob("*.tf")):
        for block in plain(hcl2.loads(path.read_text())).get("locals", []):
            values |= block
    return values


def plain(value: Any) -> Any:
    """The parser keeps the quotes of texts."""
    if isinstance(value, dict):
        return {plain(name): plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [plain(part) for part in value]
    if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"':
        return value[1:-1].replace('\\"', '"')
    return value


def processes() -> list[Process]:
    return list(_processes())


def _processes() -> Iterator[Process]:
    yield _of_image()
    for path in sorted(CLOUD_RUN.glob("*.yaml")):
        for document in documents(path):
            yield _of_container(path.name, container(document))
    for document in documents(DEPLOY / "kubernetes" / "holdfast.yaml"):
        if document["kind"] == "Deployment":
            for described in document["spec"]["template"]["spec"]["containers"]:
                yield _of_container(f"kubernetes {document['metadata']['name']}", described)
    [compose] = documents(DEPLOY / "compose.yaml")
    for name, service in compose["services"].items():
        if service["image"].startswith("holdfast"):
            words = [*service.get("entrypoint", []), *service["command"]]
            yield Process(f"compose {name}", _arguments(words), set(service["environment"]))
    for unit in UNITS:
        [line] = re.findall(r"(?m)^ExecStart=(.*)$", unit.read_text())
        environment = re.findall(r"(?m)^Environment=(\w+)=", unit.read_text())
        yield Process(unit.name, shlex.split(line)[1:], set(environment))


def _of_image() -> Process:
    text = (ROOT / "Dockerfile").read_text()
    [command] = re.findall(r"(?m)^CMD (\[.*\])$", text)
    return Process("Dockerfile", yaml.safe_load(command), {"PORT"})


def _of_container(where: str, described: dict[str, Any]) -> Process:
    words = [*described.get("command", []), *described["args"]]
    environment = {variable["name"] for variable in described.get("env", [])}
    return Process(where, _arguments(words), environment)


def _arguments(words: list[str]) -> list[str]:
    if tuple(words[:3]) == WORKER:
        return ["worker", *words[3:]]
    return words
