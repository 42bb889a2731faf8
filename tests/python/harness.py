"""What the suite needs of the outside world: a server, its port, its answers, and a record of what was sent.

The tests see the server as its users do. They start the binary that `TREELINE_BIN` names, talk HTTP to it, and look at
the files that it makes. Nothing here knows how it works inside.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
import os
import pkgutil
import re
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPMessage
from pathlib import Path
from typing import Any, Callable
from urllib.parse import quote

import gravitino.dto.requests
from gravitino.rest.rest_message import RESTRequest
from gravitino.utils import HTTPClient

READY_WITHIN_S = 30.0
STOPPED_WITHIN_S = 15.0

_numbers = itertools.count(1)


def unique(stem: str) -> str:
    """A name that no other test of this session has."""
    return f"{stem}_{next(_numbers)}"


def poll(what: str, within_s: float, is_done: Callable[[], bool]) -> None:
    """Asks again and again until it is done, and fails with `what` at the deadline: the one place that rests."""
    deadline = time.monotonic() + within_s
    while not is_done():
        assert time.monotonic() < deadline, f"not within {within_s} s: {what}"
        time.sleep(0.02)


def free_port() -> int:
    """A port of the loopback address that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def binary() -> str:
    """The server to test; a suite that silently found another one would prove nothing."""
    path = os.environ.get("TREELINE_BIN")
    assert path, "TREELINE_BIN must name the server's binary; `cargo xtask python` builds it and sets this"
    return path


def api(*segments: str) -> str:
    """The path of a resource, each segment percent-encoded as the client does it: `/` and `=` too."""
    return "/api/" + "/".join(quote(segment, safe="") for segment in segments)


def environment() -> dict[str, str]:
    """This process's environment without a developer's own settings of the server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("TREELINE_")}


@dataclass(frozen=True)
class Reply:
    """One answer, taken as it came."""

    status: int
    headers: HTTPMessage
    body: bytes

    def json(self) -> Any:
        """The body, which the protocol promises to be JSON on every status."""
        assert self.headers.get_content_type() == "application/json", (self.headers.items(), self.body)
        return json.loads(self.body)

    def ok(self) -> Any:
        """The body of a success: always 200, and code 0."""
        assert self.status == 200, (self.status, self.body)
        answer = self.json()
        assert answer["code"] == 0, answer
        return answer

    def fails(self, status: int, code: int, kind: str | None = None) -> Any:
        """The body of a failure, after a look at all that clients rely on in it."""
        answer = self.json()
        assert (self.status, answer["code"]) == (status, code), answer
        assert isinstance(answer["type"], str) and answer["type"].strip(), answer
        assert isinstance(answer["message"], str) and answer["message"].strip(), answer
        assert isinstance(answer["stack"], list) and answer["stack"], answer
        if kind is not None:
            assert answer["type"] == kind, answer
        return answer


class Http:
    """Requests by hand, for what the client cannot send. `http.client` leaves a path exactly as it is given."""

    def __init__(self, port: int) -> None:
        self.port = port

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """Sends one request. A `bytes` body goes out as it is, everything else as JSON; `If_Match` becomes `If-Match`."""
        payload = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        if payload is not None:
            named.setdefault("Content-Type", "application/json")
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body=payload, headers=named)
            response = connection.getresponse()
            return Reply(response.status, response.headers, response.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Reply:
        """Sends a GET."""
        return self.send("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Reply:
        """Sends a POST."""
        return self.send("POST", path, body, **headers)

    def put(self, path: str, *updates: dict[str, Any], **headers: str) -> Reply:
        """Sends a PUT with these updates."""
        return self.send("PUT", path, {"updates": list(updates)}, **headers)

    def delete(self, path: str, **headers: str) -> Reply:
        """Sends a DELETE."""
        return self.send("DELETE", path, **headers)


class Server:
    """One server process of our own. It is stopped by its own process id and nothing else."""

    def __init__(self, data: Path, log: Path, port: int | None = None) -> None:
        self.port = port or free_port()
        self.data = data
        self.log = log
        self.http = Http(self.port)
        self.uri = f"http://127.0.0.1:{self.port}"
        command = [binary(), "serve", "--listen", f"127.0.0.1:{self.port}", "--data-dir", str(data)]
        # One line a request, for the reader of a failure.
        command += ["--log-level", "info,treeline_server=debug"]
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                command,
                cwd=log.parent,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def wait_until_ready(self) -> Server:
        """Returns once the readiness probe says that the store answers, too."""
        poll(f"the server is ready; its log:\n{self.tail()}", READY_WITHIN_S, self._is_ready)
        return self

    def stop(self) -> None:
        """Asks it to end, as a supervisor does, and demands that it ends cleanly."""
        self.process.send_signal(signal.SIGTERM)
        assert self.wait() == 0, f"the server did not end cleanly:\n{self.tail()}"

    def wait(self) -> int:
        """The exit code, once it has ended by itself."""
        try:
            return self.process.wait(STOPPED_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(
                f"the server did not end within {STOPPED_WITHIN_S} s:\n{self.tail()}"
            ) from None

    def check(self) -> None:
        """Has the server's own audit look for anything broken in what it left behind."""
        command = [binary(), "check", "--data-dir", str(self.data)]
        audit = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60)
        assert audit.returncode == 0, audit.stdout + audit.stderr

    def tail(self, since: int = 0) -> str:
        """What it logged from this byte on, or the end of it."""
        return self.log.read_bytes()[since:].decode(errors="replace")[-8000:]

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, f"the server ended with {self.process.returncode}:\n{self.tail()}"
        try:
            return self.http.get("/api/health/ready").status == 200
        except OSError:
            return False


# The kinds that this server has, and the sorts of requests that change something.
_MODULES = re.compile(
    r"(metalake|catalog|schema|fileset|model|model_version)_(create|register|link|set|update|updates)_request"
)


def request_classes() -> set[type]:
    """Every class of the client that stands for a body, or a part of one, which changes an entity of these kinds."""
    found: set[type] = set()
    for module in pkgutil.iter_modules(gravitino.dto.requests.__path__):
        if _MODULES.fullmatch(module.name):
            full_name = f"{gravitino.dto.requests.__name__}.{module.name}"
            outer = [c for c in vars(importlib.import_module(full_name)).values() if inspect.isclass(c)]
            own = [c for c in outer if c.__module__ == full_name]
            nested = [c for holder in own for c in vars(holder).values() if inspect.isclass(c)]
            found.update(
                c for c in own + nested if issubclass(c, RESTRequest) and not c.__name__.endswith("Base")
            )
    return found


class Recorder:
    """Notes the class of every body, and of every update in it, that the client sends and the server takes."""

    def __init__(self) -> None:
        self.taken: set[type] = set()
        self._original = HTTPClient._request

    def install(self) -> None:
        """Puts itself between the client and its HTTP layer."""
        original, taken = self._original, self.taken

        def request(client: HTTPClient, method: str, endpoint: str, **arguments: Any) -> Any:
            response = original(client, method, endpoint, **arguments)
            body = arguments.get("json")
            taken.add(type(body))
            taken.update(type(update) for update in getattr(body, "_updates", None) or [])
            return response

        HTTPClient._request = request

    def remove(self) -> None:
        """Leaves the client as it was."""
        HTTPClient._request = self._original
