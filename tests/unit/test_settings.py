"""Settings: many places, one order among them, and every value knows where it came from."""

from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.bootstrap import make_bus, make_store, with_server_settings
from holdfast.errors import ConfigurationError
from holdfast.model.clock import SystemClock
from holdfast.settings import FIELDS, Settings, load, redacted
from holdfast.settings.places import SECRETS


@pytest.fixture
def folders(tmp_path):
    return Folders(tmp_path)


class Folders:
    """A current folder, a home and a secrets folder of its own."""

    def __init__(self, folder: Path):
        self.home = folder / "home"
        self.cwd = folder / "project" / "here"
        self.secrets = folder / "secrets"
        for path in (self.home, self.cwd, self.secrets):
            path.mkdir(parents=True)

    def write(self, name: str, text: str, *, at: Path | None = None) -> Path:
        path = (at or self.cwd) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def load(self, flags=None, **env):
        return load(
            flags, env={"HOME": str(self.home), SECRETS: str(self.secrets), **env}, cwd=self.cwd
        )


def test_without_anything_given_every_setting_has_its_default(folders):
    loaded = folders.load()
    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {"default"}
    assert set(loaded.origins) == {field.name for field in FIELDS}


def test_each_place_wins_over_the_ones_below_it(folders):
    """Give a setting in all places, then take the places away from the top."""
    personal = folders.write(".config/holdfast/config.toml", 'tenant = "personal"', at=folders.home)
    pyproject = folders.write(
        "pyproject.toml", '[tool.holdfast]\ntenant = "pyproject"', at=folders.cwd.parent
    )
    config = folders.write("holdfast.toml", 'tenant = "config"')
    secret = folders.write("holdfast_tenant", "secret\n", at=folders.secrets)
    dotenv = folders.write(".env", "HOLDFAST_TENANT=dotenv")
    assert folders.load({"tenant": "flag"}, HOLDFAST_TENANT="environment").settings.tenant == "flag"
    assert folders.load(HOLDFAST_TENANT="environment").settings.tenant == "environment"
    for path in (dotenv, secret, config, pyproject, personal):
        loaded = folders.load()
        assert loaded.settings.tenant == path.read_text().strip().split("=")[-1].strip(' "')
        assert loaded.origins["tenant"] != "default"
        path.unlink()
    assert folders.load().settings.tenant == "default"


def test_the_origin_names_the_file_or_the_variable(folders):
    path = folders.write("holdfast.toml", "concurrency = 3\n[profiles.big]\nmax_bytes = '2GB'")
    origins = folders.load({"profile": "big"}, HOLDFAST_LEASE_TTL="1m").origins
    assert origins["concurrency"] == str(path)
    assert origins["max_bytes"] == f"{path} profile big"
    assert origins["lease.ttl"] == "environment HOLDFAST_LEASE_TTL"
    assert origins["profile"] == "command line"


def test_holdfast_config_names_another_file(folders):
    folders.write("holdfast.toml", 'tenant = "not-this"')
    folders.write("other.toml", 'tenant = "this"')
    assert folders.load(HOLDFAST_CONFIG="other.toml").settings.tenant == "this"


def test_a_config_file_that_is_named_but_missing_is_an_error(folders):
    with pytest.raises(ConfigurationError, match="there is no such file"):
        folders.load(HOLDFAST_CONFIG="missing.toml")


def test_values_are_read_as_people_write_them(folders):
    folders.write(
        "holdfast.toml",
        'app = ["a.py:x", "b:y"]\nmax_bytes = "1.5MiB"\ngrace = "1m30s"\n'
        '[lease]\nttl = 60\n[retention]\nfinished = "7d"\n[log]\nlevel = "WARN"',
    )
    settings = folders.load(HOLDFAST_CONCURRENCY="8").settings
    assert settings.app == ("a.py:x", "b:y")
    assert settings.max_bytes == 1_572_864
    assert settings.grace == 90.0
    assert settings.lease.ttl == 60.0
    assert settings.retention.finished == 7 * 86_400
    assert settings.log.level == "warning"
    assert settings.concurrency == 8


def test_a_list_in_the_environment_is_separated_by_commas(folders):
    assert folders.load(HOLDFAST_APP="a.py:x, b:y").settings.app == ("a.py:x", "b:y")


def test_an_empty_variable_counts_as_not_given(folders):
    assert folders.load(HOLDFAST_STORE="").origins["store"] == "default"


def test_a_dotenv_file_may_have_comments_quotes_and_names_of_others(folders):
    folders.write(
        ".env", "# ours\nexport HOLDFAST_TENANT='acme'  \nPATH=/x\nHOLDFAST_GRACE=2s # short\n"
    )
    settings = folders.load().settings
    assert (settings.tenant, settings.grace) == ("acme", 2.0)


# --- profiles -------------------------------------------------------------------------------------


def test_a_profile_lies_over_the_file_that_defines_it(folders):
    folders.write(
        "holdfast.toml",
        'tenant = "a"\ngrace = 1\n[profiles.staging]\ntenant = "b"\n[profiles.x.lease]\nttl = 99',
    )
    assert folders.load().settings.tenant == "a"
    profile = folders.load(HOLDFAST_PROFILE="staging").settings
    assert (profile.tenant, profile.grace, profile.profile) == ("b", 1.0, "staging")
    assert folders.load({"profile": "x"}).settings.lease.ttl == 99.0


def test_the_environment_wins_over_a_profile(folders):
    folders.write("holdfast.toml", '[profiles.staging]\ntenant = "b"')
    assert folders.load({"profile": "staging"}, HOLDFAST_TENANT="c").settings.tenant == "c"


def test_a_profile_that_nobody_defines_is_an_error_that_lists_the_known_ones(folders):
    folders.write("holdfast.toml", "[profiles.staging]\ngrace = 1")
    with pytest.raises(ConfigurationError, match="known: staging"):
        folders.load({"profile": "stagign"})


# --- relative paths -------------------------------------------------------------------------------


def test_a_relative_path_in_a_file_belongs_to_the_folder_of_that_file(folders):
    above = folders.cwd.parent
    folders.write(
        "pyproject.toml",
        '[tool.holdfast]\nstore = "sqlite:///runs.db"\nblobs = "file:blobs"\napp = ["p.py:report", '
        '"mod:x"]',
        at=above,
    )
    settings = folders.load().settings
    assert settings.store == f"sqlite:///{above}/runs.db"
    assert settings.blobs == f"file:{above}/blobs"
    assert settings.app == (f"{above}/p.py:report", "mod:x")


def test_a_relative_path_anywhere_else_belongs_to_the_current_folder(folders):
    folders.write("holdfast.toml", 'app = ["p.py"]')
    settings = folders.load(HOLDFAST_STORE="sqlite:///runs.db").settings
    assert (settings.store, settings.app) == ("sqlite:///runs.db", ("p.py",))


# --- aliases --------------------------------------------------------------------------------------


def test_names_that_others_use_work_too(folders):
    settings = folders.load(
        DATABASE_URL="sqlite:///a.db", LOG_LEVEL="ERROR", LOG_FORMAT="json"
    ).settings
    assert settings.store == "sqlite:///a.db"
    assert (settings.log.level, settings.log.format) == ("error", "json")


def test_two_names_that_disagree_are_a_warning_and_ours_wins(folders):
    loaded = folders.load(HOLDFAST_STORE="memory:", DATABASE_URL="postgres://u:geheim@h/x")
    assert loaded.settings.store == "memory:"
    assert loaded.warnings == [
        "environment DATABASE_URL is ignored: store comes from environment HOLDFAST_STORE, which "
        "says something else"
    ]


def test_a_foreign_name_in_a_stronger_place_wins_and_is_a_warning(folders):
    folders.write(".env", "HOLDFAST_STORE=memory:")
    loaded = folders.load(DATABASE_URL="sqlite:///a.db")
    assert loaded.settings.store == "sqlite:///a.db"
    assert "HOLDFAST_STORE is ignored" in loaded.warnings[0]


def test_two_names_that_agree_are_no_warning(folders):
    assert folders.load(HOLDFAST_STORE="memory:", DATABASE_URL="memory:").warnings == []


def test_a_foreign_name_may_have_another_unit(folders):
    loaded = folders.load(
        COMPUTE_QUEUE_LEADER_TTL_MS="30000", COMPUTE_QUEUE_LEADER_RENEW_MS="15000"
    )
    assert (loaded.settings.leader.ttl, loaded.settings.leader.renew) == (30.0, 15.0)
    with pytest.raises(ConfigurationError, match=r"leader\.ttl .*'30s' is not a number of milli"):
        folders.load(COMPUTE_QUEUE_LEADER_TTL_MS="30s")


def test_two_names_are_compared_as_they_are_read(folders):
    env = {"HOLDFAST_LEADER_TTL": "30s", "COMPUTE_QUEUE_LEADER_TTL_MS": "30000"}
    assert folders.load(**env).warnings == []
    [warning] = folders.load(**env | {"COMPUTE_QUEUE_LEADER_TTL_MS": "30"}).warnings
    assert warning.startswith(
        "environment COMPUTE_QUEUE_LEADER_TTL_MS is ignored: leader.ttl comes"
    )


def test_a_lane_may_have_leader_settings_of_its_own(folders):
    folders.write(
        "holdfast.toml",
        '[leader]\nttl = "20s"\n[leader.lanes.deploys]\nkey = "locks:deploy"\nrenew = "2s"',
    )
    leaders = folders.load().settings.leader
    assert (leaders.of("deploys").ttl, leaders.of("deploys").renew) == (20.0, 2.0)
    assert (leaders.key_of("deploys"), leaders.key_of("other")) == ("locks:deploy", "lane:other")
    folders.write("holdfast.toml", "[leader.lanes.deploys]\ntl = 3")
    with pytest.raises(ConfigurationError, match="lane 'deploys': tl is unknown; use key, ttl"):
        folders.load()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("metrics.tenant_label", "off", False),
        ("metrics.llm_budget", "99.5", 99.5),
        ("locks.metrics", "no", False),
        ("locks.alert_threshold", "0.9", 0.9),
        ("traces.exporter", "console", "console"),
        ("traces.endpoint", "http://collector:4318", "http://collector:4318"),
        ("traces.service", "worker", "worker"),
        ("traces.parent_from_message", "true", True),
    ],
)
def test_what_is_set_about_metrics_and_traces_is_what_the_program_sees(folders, name, text, value):
    settings = folders.load(**{"HOLDFAST_" + name.replace(".", "_").upper(): text}).settings
    table, _, field = name.partition(".")
    assert getattr(getattr(settings, table), field) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("METRICS_TENANT_LABEL", "perhaps"),
        ("METRICS_LLM_BUDGET", "-1"),
        ("LOCKS_ALERT_THRESHOLD", "80"),
    ],
)
def test_what_can_not_be_about_metrics_is_refused(folders, name, text):
    with pytest.raises(ConfigurationError, match=text):
        folders.load(**{f"HOLDFAST_{name}": text})


# --- names without effect -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["LOCK_TTL_SECONDS", "HOLDFAST_LOCK_TTL_SECONDS"])
def test_a_name_without_effect_says_why(folders, name, caplog):
    loaded = folders.load(**{name: "true"})
    [useless] = loaded.useless
    assert (useless.name, useless.value) == (name, "true")
    loaded.log_useless()
    assert caplog.messages == [
        f"environment {name} has no effect: leases are short and renewed while a worker lives "
        "(lease.ttl); a long one would only make the run of a crashed worker wait longer"
    ]


def test_an_app_made_from_settings_says_what_has_no_effect(folders, caplog):
    Holdfast.from_settings(folders.load(LOCK_TTL_SECONDS="1"), worker=False)
    assert "LOCK_TTL_SECONDS has no effect" in caplog.text


def test_a_name_without_effect_in_a_dotenv_file_names_the_file(folders):
    path = folders.write(".env", "LOCK_TTL_SECONDS=9")
    assert folders.load().useless[0].origin == f"{path} LOCK_TTL_SECONDS"


# --- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (
            {"HOLDFAST_STOER": "x"},
            "environment HOLDFAST_STOER is not a setting; did you mean HOLDFAST_STORE?",
        ),
        ({"HOLDFAST_XYZZY": "x"}, "known are HOLDFAST_API_KEY, HOLDFAST_APP"),
        (
            {"HOLDFAST_CONCURRENCY": "many"},
            "concurrency (environment HOLDFAST_CONCURRENCY): 'many' is not a whole",
        ),
        ({"HOLDFAST_CONCURRENCY": "0"}, "above zero"),
        ({"HOLDFAST_GRACE": "soon"}, "write '90s', '30m'"),
        ({"HOLDFAST_MAX_BYTES": "large"}, "write '500MiB'"),
        ({"HOLDFAST_LOG_LEVEL": "loud"}, "is not one of debug, info, warning, error"),
        ({"HOLDFAST_LEASE_RENEW": "40s"}, "renew about every third of the ttl"),
    ],
)
def test_a_wrong_variable_is_an_error_with_the_remedy(folders, env, message):
    with pytest.raises(ConfigurationError) as caught:
        folders.load(**env)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("concurency = 3", "'concurency' is not a setting; did you mean concurrency?"),
        ("[lease]\ntl = 3", "'lease.tl' is not a setting; did you mean lease.ttl?"),
        ("lease = 3", "'lease' is not a setting"),
        (
            "[profiles.x]\nstroe = 'memory:'",
            "profile x: 'stroe' is not a setting; did you mean store?",
        ),
        ("store = ", "is not valid TOML"),
        ("store = 3", "store ("),
        ("app = 3", "is not a list of texts"),
        ("concurrency = true", "not a whole number"),
        ("concurrency = 1.5", "not a whole number"),
        ("grace = -1", "negative"),
        ("grace = inf", "endless"),
    ],
)
def test_a_mistake_in_a_file_is_an_error_that_names_the_file(folders, text, message):
    path = folders.write("holdfast.toml", text)
    with pytest.raises(ConfigurationError) as caught:
        folders.load()
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_text_is_an_error(folders):
    (folders.cwd / "holdfast.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match="not UTF-8"):
        folders.load()


# --- secrets --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgres://user:geheim@host:5432/db", "postgres://user:***@host:5432/db"),
        ("postgres://user:ge@he:im@host/db", "postgres://user:***@host/db"),
        ("redis://:geheim@host/0", "redis://:***@host/0"),
        ("redis://host/0?password=geheim&x=1", "redis://host/0?password=***&x=1"),
        ("sqlite:///a.db", "sqlite:///a.db"),
        ("postgres://user@host/db", "postgres://user@host/db"),
    ],
)
def test_passwords_are_never_shown(url, shown):
    assert redacted(url) == shown
    assert "geheim" not in redacted(url)


def test_settings_are_shown_without_passwords_and_durations_as_written(folders):
    loaded = folders.load(HOLDFAST_STORE="postgres://u:geheim@h/x", HOLDFAST_APP="a.py:x,b:y")
    assert loaded.shown("store") == "postgres://u:***@h/x"
    assert loaded.shown("app") == "a.py:x, b:y"
    assert loaded.shown("retention.finished") == "30d"
    assert loaded.shown("lease.ttl") == "30s"
    assert loaded.shown("blobs") == ""


# --- servers --------------------------------------------------------------------------------------


def test_pool_and_time_outs_may_be_given_in_every_place(folders):
    folders.write("holdfast.toml", "[pool]\nsize = 8\n[timeout]\ncommand = '3s'")
    loaded = folders.load(HOLDFAST_TIMEOUT_CONNECT="500ms")
    assert (
        loaded.settings.pool.size,
        loaded.settings.timeout.command,
        loaded.settings.timeout.connect,
    ) == (
        8,
        3.0,
        0.5,
    )
    assert [loaded.shown(name) for name in ("pool.size", "timeout.command", "timeout.connect")] == [
        "8",
        "3s",
        "0.5s",
    ]
    assert folders.load(HOLDFAST_POOL_SIZE="9").settings.pool.size == 9


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("HOLDFAST_POOL_SIZE", "0", "pool.size .*whole number above zero"),
        ("HOLDFAST_POOL_SIZE", "many", "pool.size .*whole number above zero"),
        ("HOLDFAST_POOL_SIZE", "2000", "pool.size .*from 1 to 1000"),
        ("HOLDFAST_TIMEOUT_COMMAND", "soon", "timeout.command .*'soon' is not a duration"),
        ("HOLDFAST_TIMEOUT_COMMAND", "10ms", "timeout.command .*from 100ms to 1h"),
        ("HOLDFAST_TIMEOUT_CONNECT", "2h", "timeout.connect .*from 100ms to 1h"),
        ("HOLDFAST_TIMEOUT_READ", "2s", "HOLDFAST_TIMEOUT_READ is not a setting"),
    ],
)
def test_what_is_wrong_with_them_is_said(folders, variable, value, says):
    with pytest.raises(ConfigurationError, match=says):
        folders.load(**{variable: value})


def test_they_reach_the_adapter_and_the_url_wins(folders):
    settings = folders.load(
        HOLDFAST_POOL_SIZE="8", HOLDFAST_TIMEOUT_CONNECT="500ms", HOLDFAST_TIMEOUT_COMMAND="3s"
    ).settings
    for url in (
        "postgresql://db/app",
        "postgresql://db/app?sslmode=require",
        "redis://h",
        "rediss://h/0?prefix=x:",
    ):
        address = make_store(with_server_settings(url, settings), SystemClock()).address
        assert (address.pool, address.timeout, address.connect_timeout) == (8, 3.0, 0.5)
    address = make_bus(with_server_settings("redis://h/0?pool=3&timeout=2s", settings)).address
    assert (address.pool, address.timeout, address.connect_timeout) == (3, 2.0, 0.5)
    assert with_server_settings("sqlite:///x.db", settings) == "sqlite:///x.db"
    assert with_server_settings("redis://h", Settings()) == "redis://h"


def test_an_app_made_from_settings_has_them(folders):
    env = {"HOLDFAST_STORE": "redis://h", "HOLDFAST_BUS": "redis://h", "HOLDFAST_POOL_SIZE": "7"}
    app = Holdfast.from_settings(folders.load(**env), worker=False)
    assert (app.store.address.pool, app.bus.address.pool) == (7, 7)
    own = Holdfast("redis://h?timeout=2s", worker=False)
    app = Holdfast.from_settings(folders.load(HOLDFAST_POOL_SIZE="7"), like=own, worker=False)
    assert (app.store.address.pool, app.store.address.timeout) == (7, 2.0)


@pytest.mark.parametrize(
    "url",
    [
        "redis://ann:s3cret@h/0",
        "redis://:s3cret@h/0",
        "redis://ann:s3/s3cret@h/0",
        "redis://ann:s3?s3cret@h/0",
        "redis://ann:s3#s3cret@h/0",
        "redis://ann:s3@s3cret@h/0",
        "redis://ann:s3 s3cret@h/0",
        "redis://s3@s3cret@h/0",
        "redis://an@n:s3cret@h/0",
        "redis:/ann:s3cret@h/0",
        "postgresql:ann:s3/s3cret@h/app",
        "postgresql://db/app?sslpassword=s3cret&pool=3",
        "postgresql://db/app?user=ann&password=s3cret",
    ],
)
def test_no_password_is_shown_however_it_is_written(url):
    assert "s3cret" not in redacted(url)
    assert "s3cret" not in redacted(f"store = {url!r} is wrong")
    assert redacted(url).startswith(url.partition(":")[0])


SAMPLES = {"text": ("x", "x"), "texts": ("a,b", ("a", "b")), "size": ("77MiB", 77 * 1024**2)}


@pytest.mark.parametrize(
    "field", [field for field in FIELDS if field.parse.__name__ in SAMPLES], ids=lambda f: f.name
)
def test_a_setting_that_is_given_arrives(field, tmp_path: Path) -> None:
    text, expected = SAMPLES[field.parse.__name__]
    env = {"HOME": str(tmp_path), field.environment: text}
    try:
        value = load(env=env, cwd=tmp_path).settings
    except ConfigurationError:
        return  # looked at, and refused
    for part in field.name.split("."):
        value = getattr(value, part)
    assert value == expected or str(value).endswith("x")
