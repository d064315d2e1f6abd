"""What an attacker tries, and is refused."""

import gzip
import hashlib
import socket
import stat
import time

import numpy as np
import pytest

import streamgp as sgp
from streamgp.cli import main
from streamgp.errors import ConfigurationError
from streamgp.service import Listening, Settings, new_token, read_tokens, server
from streamgp.service.tokens import owner_of
from tests.service.running import rows, serving, specification
from tests.service.test_routes import is_problem, refused_by_protocol


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A service with one token per scope, by scope."""
    secrets, tokens = {}, []
    for scope in ("read", "write", "admin"):
        secrets[scope], token = new_token(f"the-{scope}", [scope])
        tokens.append(token)
    where = tmp_path_factory.mktemp("guarded") / "models.db"
    with serving(where, tokens=tuple(tokens), body=200_000, rows=500, body_seconds=1.0) as client:
        client.headers["Authorization"] = f"Bearer {secrets['admin']}"
        assert client.post("/v1/models", json=specification("plant")).status_code == 201
        del client.headers["Authorization"]
        client.secrets = secrets
        yield client


def bearer(guarded, scope):
    return {"Authorization": f"Bearer {guarded.secrets[scope]}"}


REQUESTS = [
    ("read", "GET", "/v1/models", None),
    ("read", "GET", "/v1/events", None),
    ("read", "GET", "/v1/fleets", None),
    ("read", "GET", "/metrics", None),
    ("read", "GET", "/v1/models/plant", None),
    ("read", "GET", "/v1/models/plant/file", None),
    ("read", "GET", "/v1/models/plant/history", None),
    ("read", "POST", "/v1/models/plant/predict", {"inputs": [1.0]}),
    ("read", "POST", "/v2/models/plant/infer", {"inputs": []}),
    ("write", "POST", "/v1/models/plant/observations", rows()),
    ("write", "POST", "/v1/fleets/none/key/observations", rows()),
    ("admin", "POST", "/v1/models", specification("other")),
    ("admin", "DELETE", "/v1/models/absent", None),
    ("admin", "PUT", "/v1/models/absent/file", None),
    ("admin", "POST", "/v1/fleets", specification("other")),
    ("admin", "DELETE", "/v1/fleets/absent", None),
]


@pytest.mark.parametrize(("scope", "method", "path", "body"), REQUESTS)
def test_a_token_opens_what_its_scope_says_and_nothing_else(guarded, scope, method, path, body):
    missing = guarded.request(method, path, json=body)
    refused = refused_by_protocol if path.startswith("/v2") else is_problem
    refused(missing, 401)
    assert missing.headers["www-authenticate"].startswith("Bearer")
    for wrong in ("Bearer wrong", "Basic cmVhZA==", "bearer", "Bearer \xff"):
        headers = {"Authorization": wrong.encode("latin-1")}
        refused(guarded.request(method, path, json=body, headers=headers), 401)
    for other in {"read", "write", "admin"} - {scope}:
        headers = bearer(guarded, other)
        refused(guarded.request(method, path, json=body, headers=headers), 403)
    if not path.endswith("events"):
        answer = guarded.request(method, path, json=body, headers=bearer(guarded, scope))
        assert answer.status_code not in (401, 403)


def test_every_route_but_health_and_the_page_asks_for_a_token(guarded):
    description = guarded.get("/openapi.json").json()
    free = {"/healthz", "/readyz", "/v2", "/v2/health/live", "/v2/health/ready"}
    for path, methods in description["paths"].items():
        for method in methods:
            asked = path.replace("{name}", "plant").replace("{key}", "key")
            answer = guarded.request(method, asked, json={})
            assert (answer.status_code == 401) == (path not in free), path


def test_only_hashes_of_tokens_are_kept(tmp_path, capsys):
    path = tmp_path / "tokens.txt"
    main(["token", str(path), "--name", "plant", "--scopes", "read,write"])
    secret = capsys.readouterr().out.strip()
    text = path.read_text()
    assert secret not in text
    assert hashlib.sha256(secret.encode()).hexdigest() in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (token,) = read_tokens(path)
    assert owner_of(secret, [token]) is token
    assert owner_of(secret[:-1], [token]) is None
    for bad in ("plant all sha256:00", "plant read", f"a b read sha256:{'0' * 64}"):
        path.write_text(bad)
        with pytest.raises(ConfigurationError, match="streamgp token"):
            read_tokens(path)


def test_tokens_are_compared_in_constant_time(monkeypatch):
    """Every hash is compared, by the function that is made for it."""
    import hmac

    seen, usual = [], hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: seen.append(1) or usual(a, b))
    tokens = [new_token(f"t{i}", ["read"]) for i in range(5)]
    assert owner_of(tokens[0][0], [token for _, token in tokens]) is tokens[0][1]
    assert len(seen) == 5


def test_a_service_without_tokens_is_for_this_machine_alone(tmp_path, capsys):
    settings = Settings(tmp_path / "models.db", open=True)
    for host in ("0.0.0.0", "::", "192.168.1.1", "example.com"):
        with pytest.raises(ConfigurationError, match="other machines can reach"):
            server(settings, Listening(host))
    with pytest.raises(SystemExit, match="a file of tokens"):
        main(["serve", "--store", str(tmp_path / "models.db")])


def test_large_bodies_are_refused_before_they_are_read(guarded):
    where, headers = "/v1/models/plant/observations", bearer(guarded, "write")
    is_problem(guarded.post(where, content=b" " * 300_000, headers=headers), 413)

    def endless():
        for _ in range(1000):
            yield b" " * 1000

    is_problem(guarded.post(where, content=endless(), headers=headers), 413)
    reading = {**bearer(guarded, "read"), "Content-Type": "application/json"}
    answer = guarded.post("/v1/models/plant/predict", content=endless(), headers=reading)
    is_problem(answer, 413)


def test_zip_bombs_are_refused(guarded):
    where = "/v1/models/plant/observations"
    kind = {"Content-Type": "application/json"}
    headers = {**bearer(guarded, "write"), **kind, "Content-Encoding": "gzip"}
    bomb = gzip.compress(b" " * 50_000_000)
    assert len(bomb) < 200_000
    begin = time.process_time()
    is_problem(guarded.post(where, content=bomb, headers=headers), 413)
    assert time.process_time() - begin < 1
    is_problem(guarded.post(where, content=b"no gzip", headers=headers), 400)
    is_problem(guarded.post(where, content=gzip.compress(b"[]")[:-4], headers=headers), 400)
    other = {**headers, "Content-Encoding": "br"}
    is_problem(guarded.post(where, content=b"x", headers=other), 415)
    fine = gzip.compress(b'[{"hour": 1.0, "level": 2.0}]')
    assert guarded.post(where, content=fine, headers=headers).status_code == 200


def test_too_many_rows_are_refused(guarded):
    where, headers = "/v1/models/plant/observations", bearer(guarded, "write")
    is_problem(guarded.post(where, json=[{"hour": 1}] * 501, headers=headers), 422)
    lines = {**headers, "Content-Type": "application/x-ndjson"}
    is_problem(guarded.post(where, content=b'{"hour":1}\n' * 501, headers=lines), 422)
    table = {**headers, "Content-Type": "text/csv"}
    is_problem(guarded.post(where, content=b"hour\n" + b"1\n" * 501, headers=table), 422)


def test_there_is_a_largest_number_of_models(tmp_path):
    with serving(tmp_path / "models.db", models=2) as service:
        for name in "ab":
            assert service.post("/v1/models", json=specification(name)).status_code == 201
        is_problem(service.post("/v1/models", json=specification("c")), 409)


@pytest.mark.parametrize(
    "name",
    ["..", "../etc", "a/b", ".hidden", "a b", "a\nb", "a\x00b", "%2e%2e", "é", "a" * 101, "", "-a"],
)
def test_names_are_names_and_never_paths(service, name):
    is_problem(service.post("/v1/models", json=specification(name)), 422)
    assert service.get("/v1/models").json()["total"] == 0


def test_paths_lead_nowhere_else(service):
    for path in (
        "/page/../app.py", "/page/..%2fapp.py", "/page/%2e%2e/app.py", "/page//etc/passwd",
        "/page/index.html/..", "/v1/models/..%2f..", "/v1/models/%2e%2e/file",
    ):  # fmt: skip
        assert service.get(path).status_code in (404, 422), path


def test_a_model_file_with_foreign_classes_is_refused(service):
    model = sgp.ContinualGP(sgp.Gaussian())
    data = model.to_bytes()
    for foreign in (b"streamgp.Wrong___", b"builtins.eval____", b"os.system________"):
        known = b"streamgp.Gaussian"
        assert known in data
        damaged = data.replace(known, foreign)
        is_problem(service.put("/v1/models/bad/file", content=damaged), 422)
        document = is_problem(service.put("/v1/models/bad/file", content=resealed(damaged)), 422)
        assert "names that are known" in document["detail"]
    is_problem(service.put("/v1/models/bad/file", content=b"\x80\x04K\x01."), 422)
    is_problem(service.put("/v1/models/bad/file", content=b""), 422)


@pytest.mark.parametrize(
    "kept",
    [
        3,
        {},
        {"specification": {}, "names": ["a"], "table": 3, "alarms": []},
        {"specification": {}, "names": ["a"], "table": np.zeros((1, 2)), "alarms": []},
        {"specification": {}, "names": [], "table": np.zeros((0, 0)), "alarms": ["x"]},
        {"specification": {"data": 1}, "names": [], "table": np.zeros((0, 0)), "alarms": []},
        {"specification": [], "names": [1], "table": np.zeros((0, 1)), "alarms": []},
    ],
)
def test_a_model_file_with_foreign_bookkeeping_is_refused(shared, kept):
    model = sgp.ContinualGP(sgp.Gaussian())
    model._bookkeeping["service"] = kept
    is_problem(shared.put("/v1/models/bad/file", content=model.to_bytes()), 422)


def test_pages_of_other_sites_cannot_use_a_service_without_tokens(service):
    """Neither by a name of their own that stands for this machine, nor without a content type."""
    is_problem(service.get("/v1/models", headers={"Host": "evil.example"}), 403)
    assert service.get("/v1/models", headers={"Host": "localhost:1"}).status_code == 200
    service.post("/v1/models", json=specification("plant"))
    is_problem(service.post("/v1/models/plant/observations", content=b"[]"), 415)
    plain = {"Content-Type": "text/plain"}
    is_problem(service.post("/v1/models/plant/observations", content=b"[]", headers=plain), 415)
    for path in ("/v1/models", "/v1/fleets", "/v1/models/plant/predict"):
        is_problem(service.post(path, content=b"{}", headers=plain), 415)
        is_problem(service.post(path, content=b"{}"), 415)
    assert "access-control-allow-origin" not in service.get("/v1/models").headers


def resealed(data):
    """The same bytes with a digest that fits: whoever writes a file can write the digest."""
    blank = b"0" * 64
    at = data.index(b'digest\\": \\"') + len(b'digest\\": \\"')
    zeroed = data[:at] + blank + data[at + 64 :]
    return zeroed.replace(blank, hashlib.sha256(zeroed).hexdigest().encode(), 1)


def test_headers_cannot_be_injected(guarded):
    for given in ("a\r\nSet-Cookie: x=1", "a b", "<script>", "é", "x" * 65):
        headers = {"X-Request-Id": given.encode("latin-1")}
        try:
            answer = guarded.get("/healthz", headers=headers)
        except Exception:  # the client itself may refuse to send it
            continue
        assert "set-cookie" not in answer.headers
        assert answer.headers.get("x-request-id") != given


def test_security_headers_are_on_every_answer(guarded):
    for path in ("/", "/healthz", "/v1/models", "/nowhere", "/page/dashboard.js"):
        headers = guarded.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers


def test_slow_clients_are_cut_off_and_hold_up_nobody(guarded):
    secret = guarded.secrets["write"]
    with socket.create_connection(("127.0.0.1", guarded.base_url.port), timeout=10) as slow:
        slow.sendall(
            b"POST /v1/models/plant/observations HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
            b"Authorization: Bearer " + secret.encode() + b"\r\n\r\n[{"
        )
        assert guarded.get("/healthz").status_code == 200
        assert slow.recv(1000).startswith(b"HTTP/1.1 408")
