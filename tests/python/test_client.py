"""The client as such: its version check, its principal, its end, and what it can ask that comes later."""

from __future__ import annotations

import re

import pytest
from gravitino import Catalog, GravitinoAdminClient, GravitinoClient
from gravitino.auth.simple_auth_provider import SimpleAuthProvider
from gravitino.exceptions.base import NoSuchMetalakeException, UnsupportedOperationException
from gravitino.namespace import Namespace

from harness import Server, unique


def test_the_server_speaks_at_least_the_version_of_the_client(admin: GravitinoAdminClient) -> None:
    """The client refuses to work with a server that answers an older version than its own."""
    assert not admin.get_client_version() > admin.get_server_version()
    admin.check_version()


def test_a_client_of_a_metalake_that_is_not_there_is_refused(server: Server) -> None:
    with pytest.raises(NoSuchMetalakeException):
        GravitinoClient(server.uri, "never_created")


def test_closing_a_client_is_answered_with_success(server: Server) -> None:
    """The client sends the method CLOSE to `/`, and raises on anything but a success."""
    GravitinoAdminClient(server.uri).close()


def test_without_a_provider_the_principal_is_anonymous(admin: GravitinoAdminClient) -> None:
    audit = admin.create_metalake(unique("metalake"), None, {}).audit_info()
    assert audit.creator() == "anonymous"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z", audit.create_time())


def test_the_user_of_the_simple_provider_is_the_principal(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = unique("metalake")
    monkeypatch.setenv("GRAVITINO_USER", "alice")
    alice = GravitinoAdminClient(server.uri, auth_data_provider=SimpleAuthProvider())
    alice.create_metalake(name, None, {})
    monkeypatch.setenv("GRAVITINO_USER", "bob")
    bob = GravitinoAdminClient(server.uri, auth_data_provider=SimpleAuthProvider())
    bob.disable_metalake(name)
    audit = bob.load_metalake(name).audit_info()
    assert (audit.creator(), audit.last_modifier()) == ("alice", "bob")


def test_what_this_server_does_not_serve_yet_is_unsupported_and_never_an_internal_error(
    metalake: GravitinoClient, files: Catalog
) -> None:
    schema = Namespace.of("sales")
    for later in (
        metalake.list_tags,
        metalake.list_job_templates,
        metalake.list_jobs,
        metalake.list_users,
        metalake.list_groups,
        metalake.list_role_names,
        lambda: files.as_function_catalog().list_functions(schema),
        files.as_fileset_catalog().support_credentials().get_credentials,
        files.supports_tags().list_tags,
        files.as_schemas().load_schema("sales").supports_tags().list_tags,
    ):
        with pytest.raises(UnsupportedOperationException):
            later()
