"""One server for the session, and a metalake of its own for every test that asks for one."""

from __future__ import annotations

from pathlib import Path
from typing import Iterator

import pytest
from gravitino import Catalog, GravitinoAdminClient, GravitinoClient

from harness import Http, Recorder, Server, binary, unique

LAST = "test_every_request_was_sent.py"
SERVER = pytest.StashKey[Server]()
LOG_BEGAN = pytest.StashKey[int]()


@pytest.fixture(scope="session", autouse=True)
def recorder() -> Iterator[Recorder]:
    """What the client sent in this session, for the test that runs last."""
    recorder = Recorder()
    recorder.install()
    yield recorder
    recorder.remove()


@pytest.fixture(scope="session")
def server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server of the session. It must end cleanly and leave a sound database, whatever the tests did to it."""
    directory = tmp_path_factory.mktemp("server")
    server = Server(directory / "data", directory / "server.log").wait_until_ready()
    pytestconfig.stash[SERVER] = server
    yield server
    server.stop()
    server.check()


@pytest.fixture
def http(server: Server) -> Http:
    """Requests by hand."""
    return server.http


@pytest.fixture
def admin(server: Server) -> GravitinoAdminClient:
    """The client of somebody who manages metalakes."""
    return GravitinoAdminClient(server.uri)


@pytest.fixture
def metalake(server: Server, admin: GravitinoAdminClient) -> GravitinoClient:
    """The client of somebody who works in a metalake of their own."""
    name = unique("metalake")
    admin.create_metalake(name, "for one test", {})
    return GravitinoClient(server.uri, name)


@pytest.fixture
def files(metalake: GravitinoClient, tmp_path: Path) -> Catalog:
    """A fileset catalog that keeps its files under the test's own directory, with the schema `sales`."""
    catalog = metalake.create_catalog(
        "files", Catalog.Type.FILESET, None, "files of one test", {"location": str(tmp_path / "files")}
    )
    catalog.as_schemas().create_schema("sales", "a schema", {})
    return catalog


@pytest.fixture
def models(metalake: GravitinoClient) -> Catalog:
    """A model catalog with the schema `prod`."""
    catalog = metalake.create_catalog("models", Catalog.Type.MODEL, None, "models of one test", {})
    catalog.as_schemas().create_schema("prod", "a schema", {})
    return catalog


def pytest_sessionstart() -> None:
    """Says once, before the first test, that there is nothing to test."""
    try:
        binary()
    except AssertionError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What the whole session sent is known only after all the others have run."""
    items.sort(key=lambda item: item.path.name == LAST)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Remembers how far the server's log had come when the test began."""
    server = item.config.stash.get(SERVER, None)
    item.stash[LOG_BEGAN] = server.log.stat().st_size if server else 0
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[pytest.TestReport]:
    """Shows beside a failure what the server logged during it."""
    report = yield
    server = item.config.stash.get(SERVER, None)
    if server is not None and report.failed:
        report.sections.append(("server's log", server.tail(item.stash[LOG_BEGAN])))
    return report
