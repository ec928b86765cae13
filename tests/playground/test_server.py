"""The server as the page and strangers meet it: headers, refusals, limits, and what is left behind."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playground_server import PATIENCE, Server, problem
from selection import spread

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("typer")
JSON = {"Content-Type": "application/json"}
HOSTILE = '<img src=x onerror="alert(1)">'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server("--timeout", "3", environment={"TMPDIR": str(tmp_path_factory.mktemp("scratch"))})
    yield made
    made.stop()


def hard_rules(labels: int = 150, clauses: int = 400) -> str:
    """One rule over random clauses, whose circuit is out of reach."""
    rng = random.Random(0)
    lines = []
    for _ in range(clauses):
        literals = [("~" if rng.random() < 0.5 else "") + f"v{v}" for v in rng.sample(range(labels), 3)]
        lines.append(f"({' | '.join(literals)})")
    return " ^ ".join(lines)


# answers ------------------------------------------------------------------------------------------------------------


def test_page_and_files(server: Server) -> None:
    status, headers, body = server.request("GET", "/")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    for name in ("app.js", "style.css", "icon.svg"):
        assert f"/static/{name}".encode() in body
        assert server.request("GET", f"/static/{name}")[0] == 200


def test_every_answer_is_locked_down(server: Server) -> None:
    for method, path in (("GET", "/"), ("GET", "/static/app.js"), ("GET", "/nothing"), ("POST", "/api/answer")):
        headers = server.request(method, path)[1]
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in headers
        assert "access-control-allow-origin" not in headers


def test_files_name_nothing_outside(server: Server) -> None:
    """No asset from the network, no inline code, and nothing that parses HTML."""
    folder = Path(str(importlib.util.find_spec("semprola.playground").submodule_search_locations[0])) / "static"  # type: ignore[union-attr,index]
    for path in folder.iterdir():
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        for forbidden in ("http:", "https:", "innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "document.write"):
            assert forbidden not in text, (path.name, forbidden)
        assert "@import" not in text
        if path.suffix == ".html":
            assert " style=" not in text
            assert " onclick=" not in text


def test_describe_and_answer(server: Server) -> None:
    source = problem("cat -> animal\ndog -> animal")
    described = server.ask("describe", source=source)["result"]
    assert described["labels"] == ["cat", "animal", "dog"]
    assert described["models"] == "5"
    assert described["rules"] == ["cat -> animal", "dog -> animal"]
    assert described["picture"]["kind"] == "graph"
    answer = server.ask("answer", source=source, beliefs=[0.9, 0.2, 0.1], evidence="---")["result"]
    assert answer["independent"]["broken"] == [{"rule": "cat -> animal", "values": {"cat": 1, "animal": 0}}]
    # by hand: weights .9·.2, .1·.2, .1·.8 for (cat, animal), with dog free where animal holds and 0 elsewhere
    total = 0.9 * 0.2 + 0.1 * 0.2 + 0.1 * 0.8 * 0.9
    assert answer["marginals"][0] == pytest.approx(0.9 * 0.2 / total, abs=1e-5)
    assert answer["chance"] == pytest.approx(total)
    assert answer["mode"]["state"] == [1, 1, 0]
    fixed = server.ask("answer", source=source, beliefs=[0.9, 0.2, 0.1], evidence="-0-")["result"]
    assert fixed["marginals"] == [0, 0, 0]
    assert server.ask("sample", source=source)["result"]["sample"]


def test_evidence_without_model_names_the_culprits(server: Server) -> None:
    answer = server.ask("answer", source=problem("a -> b\nc | d"), beliefs=[0.5] * 4, evidence="10-1")["result"]
    assert answer["impossible"] == [0, 1]


@pytest.mark.parametrize(
    ("text", "line", "column", "excerpt"),
    [
        ("cat -> & animal", 1, 8, "cat -> & animal\n       ^"),
        ("a -> b\nb ->", 2, 5, "b ->\n    ^"),
        ("(a &\n b &\n & c)", 3, 2, " & c)\n ^"),
    ],
)
def test_parse_errors_point_into_the_text(server: Server, text: str, line: int, column: int, excerpt: str) -> None:
    error = server.ask("describe", source=problem(text))["error"]
    assert (error["kind"], error["line"], error["column"]) == ("parse", line, column)
    assert error["excerpt"] == excerpt


def test_contradictions_are_told(server: Server) -> None:
    error = server.ask("describe", source=problem("a\na -> b\n~b"))["error"]
    assert error["kind"] == "unsatisfiable"
    assert len(error["rules"]) == 3


def test_text_is_never_a_path_or_markup(server: Server, tmp_path: Path) -> None:
    secret = tmp_path / "rules.txt"
    secret.write_text("secret_label")
    answer = server.ask("describe", source=problem(str(secret)))
    assert "secret_label" not in json.dumps(answer)
    described = server.ask("describe", source=problem(f"'{HOSTILE}' -> b"))["result"]
    assert described["labels"][0] == HOSTILE  # the page shows it as text


# refusals -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "0.0.0.0", ""])
def test_foreign_hosts_are_refused(server: Server, host: str) -> None:
    assert server.request("GET", "/", headers={"Host": host})[0] == 403


def test_localhost_is_served_and_another_port_is_not(server: Server) -> None:
    assert server.request("GET", "/", headers={"Host": f"localhost:{server.port}"})[0] == 200
    assert server.request("GET", "/", headers={"Host": f"localhost:{server.port + 1}"})[0] == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1"])
def test_foreign_origins_are_refused(server: Server, origin: str) -> None:
    body = json.dumps({"source": problem("a")}).encode()
    assert server.request("POST", "/api/describe", body, {**JSON, "Origin": origin})[0] == 403
    own = {**JSON, "Origin": server.url.rstrip("/")}
    assert server.request("POST", "/api/describe", body, own)[0] == 200


def test_cross_site_requests_are_refused(server: Server) -> None:
    for site in ("cross-site", "same-site"):
        assert server.request("GET", "/api/about", headers={"Sec-Fetch-Site": site})[0] == 403


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{}", {"Content-Type": "text/plain"}, 415),
        (b"{", JSON, 400),
        (b"[]", JSON, 400),
        (b'{"beliefs": NaN}', JSON, 400),
        (b'{"beliefs": ' + b"9" * 1000 + b"}", JSON, 400),
        (b'{"source": {"problem": {"structure": "none", "size": 0, "text": "\\"\\ud800\\" -> b"}}}', JSON, 400),
        (b"[" * 100_000, JSON, 400),
        (b" " * 300_000, JSON, 413),
        (b"{}", JSON, 400),
        (json.dumps({"source": {"model": "../../etc"}}).encode(), JSON, 400),
        (json.dumps({"source": {"problem": {"structure": "grid", "size": 99, "text": ""}}}).encode(), JSON, 400),
        (
            json.dumps({"source": {"problem": {"structure": "none", "size": 0, "text": "a" * 20_001}}}).encode(),
            JSON,
            400,
        ),
        (json.dumps({"source": {"problem": 7}}).encode(), JSON, 400),
    ],
)
def test_what_is_no_request_is_refused(server: Server, body: bytes, headers: dict[str, str], status: int) -> None:
    assert server.request("POST", "/api/describe", body, headers)[0] == status


@pytest.mark.parametrize(
    "wrong",
    [
        {"beliefs": [0.5], "evidence": "--"},
        {"beliefs": [0.5, 2], "evidence": "--"},
        {"beliefs": [0.5, "0.5"], "evidence": "--"},
        {"beliefs": [0.5, True], "evidence": "--"},
        {"beliefs": [0.5, 0.5], "evidence": "-"},
        {"beliefs": [0.5, 0.5], "evidence": "-2"},
        {"beliefs": [0.5, 0.5], "evidence": None},
        {},
    ],
)
def test_wrong_beliefs_and_evidence_are_refused(server: Server, wrong: dict[str, object]) -> None:
    assert server.ask("answer", source=problem("a | b"), **wrong)["error"]["kind"] == "request"


@pytest.mark.parametrize(
    "path",
    ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static/", "/static/app.py", "//etc/passwd"],
)
def test_no_path_leads_out_of_the_page(server: Server, path: str) -> None:
    assert server.request("GET", path)[0] == 404


# limits -------------------------------------------------------------------------------------------------------------


def test_too_many_labels(server: Server) -> None:
    error = server.ask("describe", source=problem("at_most(1, " + ", ".join(f"v{i}" for i in range(600)) + ")"))[
        "error"
    ]
    assert error["kind"] == "input"
    assert "512" in error["message"]


def test_compilation_is_bounded_and_others_are_answered_meanwhile(server: Server) -> None:
    """A hard problem runs out of its budget; while it runs, another tab gets its answers."""
    hard: list[dict[str, object]] = []
    thread = threading.Thread(target=lambda: hard.append(server.ask("describe", source=problem(hard_rules()))))
    thread.start()
    time.sleep(0.3)
    assert server.ask("describe", source=problem("a | b"))["result"]["models"] == "3"
    thread.join(PATIENCE)
    error = hard[0]["error"]
    assert isinstance(error, dict)
    assert (error["kind"], error["resource"] in ("time", "nodes", "memory")) == ("budget", True)


NASTY = {
    "parentheses": "(" * 19_000,
    "negations": "~" * 19_000 + "a",
    "implications": " -> ".join(["a", "b"] * 2_000),
    "a wide xor": " ^ ".join(f"v{i}" for i in range(500)),
    "equivalences": " <-> ".join(f"v{i}" for i in range(500)),
    "half of many": "exactly(250, " + ", ".join(f"v{i}" for i in range(500)) + ")",
    "counts of counts": "at_least(2, " + ", ".join(f"at_most(1, a{i}, b{i}, c{i})" for i in range(160)) + ")",
    "pigeons": "\n".join(
        [f"exactly(1, {', '.join(f'p{i}.h{j}' for j in range(11))})" for i in range(12)]
        + [f"at_most(1, {', '.join(f'p{i}.h{j}' for i in range(12))})" for j in range(11)]
    ),
}


@pytest.mark.parametrize("name", NASTY)
def test_nasty_rules_get_an_answer(server: Server, name: str) -> None:
    """A description or an error that the page can show; and the server goes on."""
    reply = server.ask("describe", source=problem(NASTY[name]))
    assert "result" in reply or reply["error"]["kind"] in ("parse", "budget", "unsatisfiable", "input"), reply
    assert server.ask("describe", source=problem("a | b"))["result"]["models"] == "3"


def test_a_worker_that_dies_is_replaced(server: Server) -> None:
    server.ask("describe", source=problem("a | b"))
    workers = server.workers()
    if not workers:
        pytest.skip("needs /proc")
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
    while any(map(alive, workers)):
        time.sleep(0.01)
    for _ in range(50):  # until the server has noticed
        reply = server.ask("describe", source=problem("a | b"))
        if "result" in reply:
            break
        time.sleep(0.2)
    assert reply["result"]["models"] == "3"


def test_a_worker_that_hangs_is_killed(server: Server) -> None:
    """Whatever a process does, or fails to do, a request ends."""
    server.ask("describe", source=problem("a | b"))
    workers = server.workers()
    if not workers:
        pytest.skip("needs /proc")
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)
    reply = server.ask("describe", source=problem("a | b"))
    assert (reply["error"]["kind"], reply["error"]["resource"]) == ("budget", "time")
    for worker in workers[1:]:
        os.kill(worker, signal.SIGCONT)
    assert server.ask("describe", source=problem("a | b"))["result"]["models"] == "3"
    assert len([worker for worker in workers if alive(worker)]) == len(workers) - 1


def test_abandoned_requests_free_their_worker(server: Server) -> None:
    """Clients that go away (as the page does on every key) do not keep the server busy."""
    body = json.dumps({"source": problem(hard_rules(140))}).encode()
    head = f"POST /api/describe HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\n"
    for _ in range(4):
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            time.sleep(0.2)
    assert server.ask("describe", source=problem("a | b"))["result"]["models"] == "3"


# start and stop -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("how", spread([signal.SIGINT, signal.SIGTERM, signal.SIGKILL], 1))
def test_nothing_is_left_behind(tmp_path: Path, how: signal.Signals) -> None:
    """Also in the middle of a compilation with a child process of its own: no process, no file, no port."""
    server = Server(environment={"TMPDIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)})
    server.ask("describe", source=problem("a | b"))
    threading.Thread(target=lambda: quietly_ask(server), daemon=True).start()
    time.sleep(1)
    family = descendants(server.process.pid)
    assert family
    status, errors = server.stop(how)
    assert "Traceback" not in errors
    if how is signal.SIGINT:
        assert (status, errors.strip()) == (130, "interrupted: the playground has stopped")
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and (any(map(alive, family)) or list(tmp_path.iterdir())):
        time.sleep(0.05)
    assert not [process for process in family if alive(process)]
    assert list(tmp_path.iterdir()) == []
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", server.port))


def test_only_loopback_is_listened_on(server: Server) -> None:
    listening = Path("/proc/net/tcp")
    if not listening.exists():
        pytest.skip("needs /proc")
    port = f"{server.port:04X}"
    addresses = [line.split()[1] for line in listening.read_text().splitlines()[1:] if line.split()[3] == "0A"]
    assert [address for address in addresses if address.endswith(f":{port}")] == [f"0100007F:{port}"]
    six = Path("/proc/net/tcp6")
    assert not six.exists() or f":{port} " not in six.read_text()


def test_taken_port_is_one_line(server: Server) -> None:
    command = [sys.executable, "-m", "semprola", "playground", "--no-open", "--port", str(server.port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: port {server.port} cannot be used (")
    assert len(done.stderr.splitlines()) == 1


def test_missing_extra_is_named() -> None:
    code = """
import sys
sys.modules["starlette"] = None
from semprola.playground.server import serve
serve(0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stderr.splitlines()[-1].endswith("pip install 'semprola[playground]'")


def test_missing_model_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "semprola", "playground", "--no-open", "--port", "0", "--model", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "no model here" in done.stderr


def quietly_ask(server: Server) -> None:
    with contextlib.suppress(OSError, ValueError):
        server.ask("describe", source=problem(hard_rules()))


def descendants(process: int) -> list[int]:
    found = []
    pending = [process]
    while pending:
        for task in Path(f"/proc/{pending.pop()}/task").glob("*/children"):
            children = [int(word) for word in task.read_text().split()]
            found += children
            pending += children
    return found


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False
