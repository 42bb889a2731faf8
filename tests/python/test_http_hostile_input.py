"""Bodies that no client of good will sends: each gets the protocol's envelope, and changes nothing."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest
from gravitino import GravitinoClient

from harness import Http, api, unique

DEEP = 100_000


@pytest.fixture
def path(metalake: GravitinoClient) -> str:
    """The path of the test's own metalake."""
    return api("metalakes", metalake.get_metalake().name())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"text"',
        b"7",
        b"{}",
        b'{"name":null}',
        b'{"name":7}',
        b'{"name":["a"]}',
        b'{"name":"a","properties":[]}',
        b'{"name":"a","properties":{"a":1}}',
        b'{"name":"a","properties":{"a":null}}',
        b'{"name":"a","properties":{"":"x"}}',
        b'{"name":"a","comment":{}}',
        b'{"name":"a","surprise":1}',
        b'{"name":"a"} trailing',
        b'{"name":"\xff"}',
        b'{"name":"\\ud800"}',
        b'{"name":"a\\u0000b"}',
        b"\xef\xbb\xbf{",
        b'{"name":"a","name":"b"',
        b"[" * DEEP,
        b'{"name":"a","properties":' + b'{"a":' * DEEP,
    ],
    ids=lambda body: repr(body[:40]),
)
def test_a_create_with_a_malformed_body_is_refused(http: Http, body: bytes) -> None:
    before = len(http.get(api("metalakes")).ok()["metalakes"])
    http.post(api("metalakes"), body).fails(400, 1001)
    assert len(http.get(api("metalakes")).ok()["metalakes"]) == before


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"updates": None},
        {"updates": {}},
        {"updates": [None]},
        {"updates": ["rename"]},
        {"updates": [{}]},
        {"updates": [{"@type": None}]},
        {"updates": [{"@type": "explode"}]},
        {"updates": [{"@type": "rename"}]},
        {"updates": [{"@type": "rename", "newName": None}]},
        {"updates": [{"@type": "rename", "newName": ""}]},
        {"updates": [{"@type": "setProperty", "property": "a"}]},
        {"updates": [{"@type": "setProperty", "property": None, "value": "b"}]},
        {"updates": [{"@type": "setProperty", "property": " ", "value": "b"}]},
        {"updates": [{"@type": "setProperty", "property": "a", "value": 7}]},
        {"updates": [{"@type": "removeProperty"}]},
        {"updates": [{"@type": "updateComment", "newComment": "x"}, {"@type": "explode"}]},
        {"updates": [{"@type": "addUri", "uriName": "a", "uri": "b"}]},
    ],
    ids=json.dumps,
)
def test_an_alter_with_an_update_that_means_nothing_is_refused_as_a_whole(
    http: Http, path: str, body: dict[str, Any]
) -> None:
    before = http.get(path)
    http.send("PUT", path, body).fails(400, 1001)
    after = http.get(path)
    assert (after.body, after.headers["ETag"]) == (before.body, before.headers["ETag"])


@pytest.mark.parametrize(
    "body", [b"", {}, {"inUse": None}, {"inUse": "true"}, {"inUse": 1}, [], {"in_use": True}]
)
def test_a_switch_that_is_neither_on_nor_off_is_refused(http: Http, path: str, body: Any) -> None:
    http.send("PATCH", path, body).fails(400, 1001)
    assert http.get(path).ok()["metalake"]["properties"]["in-use"] == "true"


def test_an_update_may_carry_fields_that_are_not_known(http: Http, path: str) -> None:
    """Later clients add fields to updates; a create is strict about them."""
    update = {"@type": "updateComment", "newComment": "after", "surprise": True}
    assert http.put(path, update).ok()["metalake"]["comment"] == "after"


def test_a_null_comment_clears_it(http: Http, path: str) -> None:
    assert "comment" not in http.put(path, {"@type": "updateComment", "newComment": None}).ok()["metalake"]
    http.put(path, {"@type": "updateComment", "newComment": "again"}).ok()
    assert "comment" not in http.put(path, {"@type": "updateComment"}).ok()["metalake"]


def test_a_body_over_the_limit_is_refused_before_it_is_read_to_its_end(http: Http) -> None:
    body = json.dumps({"name": unique("metalake"), "comment": "x" * 64_000_000}).encode()
    try:
        reply = http.post(api("metalakes"), body)
    except (BrokenPipeError, ConnectionResetError):
        # It may hang up while we still write, which says the same; that it lives on is asserted below.
        pass
    else:
        reply.fails(413, 1001)
    http.get(api("version")).ok()


def test_ten_thousand_properties_come_back_as_they_were(http: Http) -> None:
    properties = {f"key-{number:05}": f"value {number}" for number in range(10_000)}
    name = unique("metalake")
    http.post(api("metalakes"), {"name": name, "properties": properties}).ok()
    assert http.get(api("metalakes", name)).ok()["metalake"]["properties"] == {**properties, "in-use": "true"}


def test_text_of_any_script_comes_back_as_it_was(http: Http) -> None:
    text = 'größe 名前 🦀 \u202e\u0301 "quoted" \\ line\nline\ttab'
    name = unique("metalake")
    http.post(api("metalakes"), {"name": name, "comment": text, "properties": {text: text}}).ok()
    loaded = http.get(api("metalakes", name)).ok()["metalake"]
    assert (loaded["comment"], loaded["properties"][text]) == (text, text)


def test_a_request_that_ends_in_the_middle_leaves_nothing_behind(http: Http) -> None:
    """The body is announced longer than it comes, with all of the JSON in it."""
    name = unique("metalake")
    body = json.dumps({"name": name}).encode()
    head = (
        f"POST {api('metalakes')} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body) + 10}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", http.port), timeout=10) as connection:
        connection.sendall(head.encode() + body)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):
            pass
    http.get(api("metalakes", name)).fails(404, 1003, "NoSuchMetalakeException")


@pytest.mark.parametrize(
    "line", [b"\x00\xff\xfe\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"A" * 100_000]
)
def test_what_is_no_http_is_hung_up_on_and_the_next_request_is_served(http: Http, line: bytes) -> None:
    with socket.create_connection(("127.0.0.1", http.port), timeout=10) as connection:
        try:
            connection.sendall(line)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(4096):
                pass
        except OSError:
            # Being cut off while writing is one of the ways to be hung up on.
            pass
    http.get(api("version")).ok()
