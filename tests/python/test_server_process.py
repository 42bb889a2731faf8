"""The server as a process: how it starts, how it ends, and what is still there when it starts again."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

from gravitino import Catalog, GravitinoAdminClient, GravitinoClient, NameIdentifier

from harness import Server, api, binary, unique


def test_what_was_written_is_there_after_a_restart_on_another_port(tmp_path: Path) -> None:
    first = Server(tmp_path / "data", tmp_path / "first.log").wait_until_ready()
    GravitinoAdminClient(first.uri).create_metalake("kept", "a comment", {"a": "1"})
    catalog = GravitinoClient(first.uri, "kept").create_catalog("models", Catalog.Type.MODEL, None, None, {})
    catalog.as_schemas().create_schema("prod", None, {})
    model = NameIdentifier.of("prod", "ranking")
    catalog.as_model_catalog().register_model_version(model, "s3://models/0", ["stable"], None, {})
    tag = first.http.get(api("metalakes", "kept")).headers["ETag"]
    first.stop()
    second = Server(tmp_path / "data", tmp_path / "second.log").wait_until_ready()
    assert second.http.get(api("metalakes", "kept")).headers["ETag"] == tag
    models = GravitinoClient(second.uri, "kept").load_catalog("models").as_model_catalog()
    assert models.get_model_version_by_alias(model, "stable").uri() == "s3://models/0"
    second.stop()
    second.check()


def test_two_servers_on_one_data_directory_see_each_other_s_writes(tmp_path: Path) -> None:
    one = Server(tmp_path / "data", tmp_path / "one.log").wait_until_ready()
    two = Server(tmp_path / "data", tmp_path / "two.log").wait_until_ready()
    for writer, reader in ((one, two), (two, one)):
        name = unique("metalake")
        GravitinoAdminClient(writer.uri).create_metalake(name, "shared", {})
        assert GravitinoAdminClient(reader.uri).load_metalake(name).comment() == "shared"
    one.stop()
    two.stop()
    two.check()


def test_a_port_that_is_taken_is_named_and_nothing_is_served(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        server = Server(tmp_path / "data", tmp_path / "server.log", port)
        assert server.wait() == 1
    assert f"127.0.0.1:{port}" in server.tail()


def test_a_data_directory_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a directory")
    server = Server(tmp_path / "data", tmp_path / "server.log")
    assert server.wait() == 1
    assert str(tmp_path / "data") in server.tail()
    assert (tmp_path / "data").read_text() == "not a directory"


def test_the_version_of_the_program_is_its_own_and_not_that_of_the_protocol() -> None:
    printed = subprocess.run(
        [binary(), "--version"], capture_output=True, text=True, timeout=30, check=True
    ).stdout
    assert printed.startswith("treeline ")
    assert "1.3.1" not in printed


def test_an_option_that_is_not_known_is_named_and_refused() -> None:
    refused = subprocess.run([binary(), "serve", "--surprise"], capture_output=True, text=True, timeout=30)
    assert refused.returncode != 0
    assert "--surprise" in refused.stderr
