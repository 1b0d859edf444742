"""Messages that are pushed: answered with 204 once they are durable, refused without a token that
is believed, and with 503 while the store is away."""

from __future__ import annotations

import base64
import json

import pytest
from tests.integration.api.live import LiveApi
from tests.redis_server import RedisServer
from tests.unit.pubsub.test_tokens import BAD

from holdfast import Pipeline
from holdfast.adapters.pubsub.signing_keys import SigningKeys
from holdfast.adapters.pubsub.tokens import TokenVerifier
from holdfast.api import create_app
from holdfast.api.routes.pubsub import push_router
from holdfast.bootstrap.push import has_push, make_verifier
from holdfast.engine.pushed import Pushed
from holdfast.engine.unmatched import REGISTER_EVERY
from holdfast.errors import ConfigurationError
from holdfast.model.receive import Receive
from holdfast.ports.store import RunFilter
from holdfast.settings import load
from holdfast.testing.google_tokens import TokenService

AUDIENCE = "https://worker.example.org/pubsub"
ACCOUNT = "pusher@my-project.iam.gserviceaccount.com"
WORK = "job-processing"
METADATA = Receive(WORK, "metadata", "worker-metadata", "NOT attributes:worker-type")
ELSEWHERE = Receive(WORK, "second", "worker-second", 'attributes.worker-type = "second"')
"""Of a pipeline that another service serves."""
JOBS = Receive("jobs", "metadata", "jobs-sub")
MAX_BODY = 100_000

metadata = Pipeline("metadata", input=dict, key=lambda job: job["id"])


@metadata.step
async def enrich(request: dict) -> dict:
    return {**request, "title": "A talk"}


class PushService(LiveApi):
    """A service that takes in pushes."""

    def __init__(self, verifier=None, store="memory:"):
        self.verifier = verifier
        self.token = ""
        super().__init__(store, pipelines=(metadata,), make=self.make_api)

    def make_api(self, app):
        self.holdfast = app
        self.pushed = Pushed(app.runtime, [METADATA, ELSEWHERE, JOBS], app.pipelines)
        router = push_router(self.pushed, self.verifier)
        return create_app(app, routers=[router], max_body=MAX_BODY)

    def push(self, body, *, path="/pubsub", **headers):
        authorization = {"authorization": f"Bearer {self.token}"} if self.token else {}
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.post(path, content=data, headers={**authorization, **headers})

    def runs(self):
        return self.call(self.holdfast.store.runs(RunFilter(), limit=100))

    def letters(self):
        return self.call(self.holdfast.store.dead_letters(limit=100))


def envelope(job="job-1", subscription="jobs-sub", id="1", **attributes):
    data = job if isinstance(job, bytes) else json.dumps({"id": job}).encode()
    return {
        "message": {
            "data": base64.b64encode(data).decode(),
            "attributes": attributes,
            "messageId": id,
        },
        "subscription": f"projects/my-project/subscriptions/{subscription}",
    }


@pytest.fixture(scope="module")
def tokens():
    with TokenService() as service:
        yield service


@pytest.fixture
def service(tokens):
    verifier = TokenVerifier(SigningKeys(tokens.url), AUDIENCE, [ACCOUNT])
    with PushService(verifier) as service:
        service.call(service.pushed.start())
        service.token = tokens.token(aud=AUDIENCE, email=ACCOUNT)
        yield service


# --- what is taken in -----------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/pubsub", "/pubsub/push"])
def test_a_push_is_a_run_before_it_is_answered(service, path):
    answer = service.push(envelope(requestId="req-1"), path=path)
    assert (answer.status_code, answer.content) == (204, b"")
    [run] = service.runs()
    assert (run.key, run.attributes["requestId"], run.attributes["message-id"]) == (
        "job-1", "req-1", "1",
    )  # fmt: skip


def test_the_unwrapped_form(service):
    headers = {
        "x-goog-pubsub-subscription-name": "projects/my-project/subscriptions/jobs-sub",
        "x-goog-pubsub-message-id": "7",
        "requestid": "req-7",
    }
    assert service.push({"id": "job-7"}, **headers).status_code == 204
    [run] = service.runs()
    assert (run.key, run.attributes["message-id"]) == ("job-7", "7")
    assert "authorization" not in run.attributes


def test_a_push_that_comes_again_is_the_same_run(service):
    for _ in range(3):
        assert service.push(envelope()).status_code == 204
    assert service.push(envelope(id="2")).status_code == 204
    assert len(service.runs()) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"\xff\xfe", envelope(b"no json"), envelope(b'{"name": 1}'),
        {"message": {"data": "???", "messageId": "1"}, "subscription": "x/jobs-sub"},
        {"message": {"messageId": "1"}, "subscription": ""},
    ],
)  # fmt: skip
def test_poison_is_one_dead_letter_and_is_not_pushed_again(service, body):
    for _ in range(2):
        assert service.push(body).status_code == 204
    [letter] = service.letters()
    assert letter.reason
    assert service.runs() == []


def test_what_a_filter_does_not_want_is_answered_and_forgotten(service):
    unwanted = envelope(subscription="worker-metadata", **{"worker-type": "transcription"})
    assert service.push(unwanted).status_code == 204
    assert service.push(envelope(subscription="worker-metadata")).status_code == 204
    assert [run.key for run in service.runs()] == ["job-1"]
    assert service.letters() == []


def test_what_no_subscription_wants_is_buried(service):
    attributes = {"subscription": f"holdfast-unmatched.{WORK}"}
    assert service.push(envelope(**attributes)).status_code == 204  # wanted by worker-metadata
    other = envelope(id="3", **attributes, **{"worker-type": "second"})
    assert service.push(other).status_code == 204  # wanted by a service that may not run yet
    unmatched = envelope(id="2", **attributes, **{"worker-type": "nobody"})
    assert service.push(unmatched).status_code == 204
    [letter] = service.letters()
    assert "no subscription of topic job-processing wants it" in letter.reason


def test_a_subscription_that_is_not_received_here_is_not_acknowledged(service):
    answer = service.push(envelope(subscription="somebody-elses"))
    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
    assert "jobs-sub" in answer.json()["detail"]


def test_what_another_service_receives_is_not_received_here(service):
    answer = service.push(envelope(subscription="worker-second"))
    assert answer.status_code == 404


def test_filters_are_made_known_again_while_messages_come(service):
    key = f"receive:{WORK}:worker-metadata"
    [before] = service.call(service.holdfast.runtime.records.get(key)).records
    service.push(envelope())
    service.pushed._registered -= REGISTER_EVERY
    service.push(envelope())
    [after] = service.call(service.holdfast.runtime.records.get(key)).records
    assert before.version != after.version


def test_a_body_that_is_too_large_is_not_read(service):
    answer = service.push(envelope(b"x" * MAX_BODY))
    assert (answer.status_code, answer.json()["code"]) == (413, "too-large")


def test_other_methods_are_refused(service):
    assert service.get("/pubsub").status_code == 405


# --- whose pushes are believed --------------------------------------------------------------------


def test_bad_tokens_are_refused_and_leave_nothing(service, tokens):
    service.token = ""
    for name, (make, reason) in BAD.items():
        authorization = make(tokens)
        headers = {"authorization": authorization} if authorization else {}
        for path in ("/pubsub", "/pubsub/push"):
            answer = service.push(envelope(), path=path, **headers)
            assert (answer.status_code, answer.json()["code"]) == (401, "invalid-token"), name
            assert reason in answer.json()["detail"]
            assert answer.headers["www-authenticate"].startswith("Bearer")
    assert (service.runs(), service.letters()) == ([], [])


def test_while_the_keys_of_tokens_are_away_nothing_is_believed(tokens):
    verifier = TokenVerifier(SigningKeys("http://127.0.0.1:9/certs"), AUDIENCE, [ACCOUNT])
    with PushService(verifier) as service:
        service.token = tokens.token(aud=AUDIENCE, email=ACCOUNT)
        answer = service.push(envelope())
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
        assert service.runs() == []


def test_an_emulator_sends_no_token():
    with PushService(None) as service:
        assert service.push(envelope()).status_code == 204


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"HOLDFAST_PUSH_ENDPOINT": AUDIENCE}, "push.service_account is not"),
        ({"HOLDFAST_PUSH_SERVICE_ACCOUNT": ACCOUNT}, "push.endpoint is not"),
        (
            {
                "HOLDFAST_PUSH_ENDPOINT": AUDIENCE,
                "HOLDFAST_PUSH_SERVICE_ACCOUNT": ACCOUNT,
                "HOLDFAST_PUSH_CERTIFICATES": "http://keys.example",
            },
            "https only",
        ),
    ],
)
def test_settings_that_would_believe_too_much_are_refused(settings, reason, tmp_path):
    loaded = load(env={"HOME": str(tmp_path), **settings}, cwd=tmp_path)
    assert has_push(loaded.settings)
    with pytest.raises(ConfigurationError, match=reason):
        make_verifier(loaded.settings)


def test_believing_everybody_has_to_be_said(tmp_path):
    env = {"HOLDFAST_PUSH_ENDPOINT": AUDIENCE, "HOLDFAST_PUSH_SERVICE_ACCOUNT": "none"}
    loaded = load(env={"HOME": str(tmp_path), **env}, cwd=tmp_path)
    assert make_verifier(loaded.settings) is None
    assert not has_push(load(env={"HOME": str(tmp_path)}, cwd=tmp_path).settings)


# --- the store is away ----------------------------------------------------------------------------


def test_while_the_store_is_away_a_push_is_answered_with_503_and_comes_again():
    server = RedisServer("--appendonly", "yes", "--appendfsync", "always").start()
    try:
        with PushService(None, server.url(timeout="1s")) as service:
            assert service.push(envelope()).status_code == 204
            server.kill()
            for body in (envelope("job-2", id="2"), b"poison"):
                answer = service.push(body)
                assert answer.status_code == 503
                assert int(answer.headers["retry-after"]) >= 1
            server.start()
            assert service.push(envelope("job-2", id="2")).status_code == 204
            assert service.push(b"poison").status_code == 204
            assert sorted(run.key for run in service.runs()) == ["job-1", "job-2"]
            assert len(service.letters()) == 1
    finally:
        server.end()
