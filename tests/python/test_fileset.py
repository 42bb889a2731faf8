"""Filesets through the client, as entities. Where their files lie is told in `test_fileset_locations.py`."""

from __future__ import annotations

from pathlib import Path

import pytest
from gravitino import Catalog, Fileset, FilesetChange, GravitinoClient, NameIdentifier
from gravitino.client.fileset_catalog import FilesetCatalog
from gravitino.dto.requests.fileset_update_request import FilesetUpdateRequest
from gravitino.dto.requests.fileset_updates_request import FilesetUpdatesRequest
from gravitino.exceptions.base import (
    AlreadyExistsException,
    CatalogNotInUseException,
    IllegalArgumentException,
    NoSuchFilesetException,
    NoSuchSchemaException,
    NotFoundException,
)
from gravitino.exceptions.handlers.fileset_error_handler import FILESET_ERROR_HANDLER
from gravitino.namespace import Namespace

from harness import api

ORDERS = NameIdentifier.of("sales", "orders")
SALES = Namespace.of("sales")
MANAGED, EXTERNAL = Fileset.Type.MANAGED, Fileset.Type.EXTERNAL


@pytest.fixture
def filesets(files: Catalog) -> FilesetCatalog:
    """The catalog, with the fileset `orders`."""
    catalog = files.as_fileset_catalog()
    catalog.create_fileset(ORDERS, "before", MANAGED, None, {"kept": "1", "removed": "1"})
    return catalog


def test_a_created_fileset_comes_back_with_the_name_of_its_only_location(
    files: Catalog, tmp_path: Path
) -> None:
    """A path is qualified with a scheme and one slash, and the only location is the default without being asked."""
    place = tmp_path / "elsewhere"
    created = files.as_fileset_catalog().create_fileset(ORDERS, "a comment", MANAGED, str(place), {"a": "1"})
    assert (created.name(), created.type(), created.comment()) == ("orders", MANAGED, "a comment")
    assert created.properties() == {"a": "1", "default-location-name": "unknown"}
    assert created.storage_location() == f"file:{place}"
    assert created.storage_locations() == {"unknown": f"file:{place}"}
    assert created.audit_info().creator() == "anonymous"
    loaded = files.as_fileset_catalog().load_fileset(ORDERS)
    assert (loaded.comment(), loaded.properties()) == (created.comment(), created.properties())
    assert loaded.storage_locations() == created.storage_locations()
    assert loaded.audit_info() == created.audit_info()


def test_a_fileset_is_managed_unless_it_is_said_to_be_external(files: Catalog, tmp_path: Path) -> None:
    catalog = files.as_fileset_catalog()
    assert catalog.create_fileset(ORDERS, None, None, None, None).type() == MANAGED
    foreign = NameIdentifier.of("sales", "foreign")
    created = catalog.create_fileset(foreign, None, EXTERNAL, str(tmp_path / "foreign"), {})
    assert (created.type(), created.comment()) == (EXTERNAL, None)


def test_a_second_fileset_of_the_name_is_refused_and_the_first_stays(
    filesets: FilesetCatalog, tmp_path: Path
) -> None:
    with pytest.raises(AlreadyExistsException):
        filesets.create_fileset(ORDERS, "the second", EXTERNAL, str(tmp_path / "second"), {})
    assert filesets.load_fileset(ORDERS).comment() == "before"


@pytest.mark.parametrize("name", ["*", "a b", "a/b", "a.b", "-a", "a" * 65])
def test_a_reserved_or_ill_formed_fileset_name_is_refused(filesets: FilesetCatalog, name: str) -> None:
    with pytest.raises(IllegalArgumentException):
        filesets.create_fileset(NameIdentifier.of("sales", name), None, MANAGED, None, {})


@pytest.mark.parametrize("name", ["day=1", "a-b", "f" * 64])
def test_an_equals_sign_a_dash_and_sixty_four_characters_are_let_into_a_fileset_name(
    filesets: FilesetCatalog, name: str
) -> None:
    identifier = NameIdentifier.of("sales", name)
    assert filesets.create_fileset(identifier, None, MANAGED, None, {}).name() == name
    assert filesets.load_fileset(identifier).name() == name
    assert identifier in filesets.list_filesets(SALES)


@pytest.mark.parametrize(
    "key", ["gravitino.identifier", "placeholder-catalog", "placeholder-schema", "placeholder-fileset"]
)
def test_a_reserved_property_of_a_fileset_cannot_be_given_set_or_removed(
    filesets: FilesetCatalog, key: str
) -> None:
    with pytest.raises(IllegalArgumentException):
        filesets.create_fileset(NameIdentifier.of("sales", "more"), None, MANAGED, None, {key: "x"})
    for change in (FilesetChange.set_property(key, "x"), FilesetChange.remove_property(key)):
        with pytest.raises(IllegalArgumentException):
            filesets.alter_fileset(ORDERS, change)


def test_filesets_are_listed_by_name(filesets: FilesetCatalog) -> None:
    returns = NameIdentifier.of("sales", "returns")
    filesets.create_fileset(returns, None, MANAGED, None, {})
    assert sorted(filesets.list_filesets(SALES), key=str) == [ORDERS, returns]


def test_each_change_of_a_fileset_does_its_work_alone(filesets: FilesetCatalog) -> None:
    assert filesets.alter_fileset(ORDERS, FilesetChange.update_comment("after")).comment() == "after"
    assert filesets.alter_fileset(ORDERS, FilesetChange.update_comment(None)).comment() is None
    assert filesets.alter_fileset(ORDERS, FilesetChange.set_property("set", "2")).properties()["set"] == "2"
    altered = filesets.alter_fileset(ORDERS, FilesetChange.remove_property("removed"))
    assert altered.properties() == {"kept": "1", "set": "2", "default-location-name": "unknown"}
    filesets.alter_fileset(ORDERS, FilesetChange.update_comment("again"))
    assert filesets.alter_fileset(ORDERS, FilesetChange.remove_comment()).comment() is None
    assert filesets.alter_fileset(ORDERS, FilesetChange.rename("renamed")).name() == "renamed"
    assert filesets.list_filesets(SALES) == [NameIdentifier.of("sales", "renamed")]


def test_the_client_s_old_request_to_remove_a_comment_is_taken(
    metalake: GravitinoClient, filesets: FilesetCatalog
) -> None:
    """Its API turns this change into another one; the class is still there, and older clients send it."""
    path = api(
        "metalakes",
        metalake.get_metalake().name(),
        "catalogs",
        "files",
        "schemas",
        "sales",
        "filesets",
        "orders",
    )
    request = FilesetUpdatesRequest([FilesetUpdateRequest.RemoveFilesetCommentRequest()])
    request.validate()
    filesets.rest_client.put(path, request, error_handler=FILESET_ERROR_HANDLER)
    assert filesets.load_fileset(ORDERS).comment() is None


def test_the_changes_of_one_request_are_applied_together_or_not_at_all(filesets: FilesetCatalog) -> None:
    altered = filesets.alter_fileset(
        ORDERS,
        FilesetChange.rename("renamed"),
        FilesetChange.update_comment("after"),
        FilesetChange.set_property("a", "1"),
    )
    renamed = NameIdentifier.of("sales", "renamed")
    assert (altered.name(), altered.comment(), altered.properties()["a"]) == ("renamed", "after", "1")
    assert altered.audit_info().last_modifier() == "anonymous"
    with pytest.raises(IllegalArgumentException):
        filesets.alter_fileset(renamed, FilesetChange.update_comment("never"), FilesetChange.rename("a/b"))
    assert filesets.load_fileset(renamed).comment() == "after"


def test_a_fileset_cannot_take_the_name_of_another(filesets: FilesetCatalog) -> None:
    returns = NameIdentifier.of("sales", "returns")
    filesets.create_fileset(returns, "the other", MANAGED, None, {})
    with pytest.raises(AlreadyExistsException):
        filesets.alter_fileset(ORDERS, FilesetChange.rename("returns"))
    assert filesets.load_fileset(ORDERS).comment() == "before"
    assert filesets.load_fileset(returns).comment() == "the other"


def test_dropping_a_fileset_again_says_that_there_was_none(filesets: FilesetCatalog) -> None:
    assert filesets.drop_fileset(ORDERS) is True
    assert filesets.drop_fileset(ORDERS) is False
    assert filesets.list_filesets(SALES) == []


def test_the_name_of_a_dropped_fileset_is_free_at_once(filesets: FilesetCatalog) -> None:
    """Its successor may even have the same place, whatever has become of the old files by then."""
    for round_number in range(3):
        filesets.drop_fileset(ORDERS)
        filesets.create_fileset(ORDERS, f"round {round_number}", MANAGED, None, {})
    assert filesets.load_fileset(ORDERS).comment() == "round 2"


def test_a_missing_fileset_is_named_by_every_operation_on_it(filesets: FilesetCatalog) -> None:
    for missing in (NameIdentifier.of("sales", "missing"), NameIdentifier.of("missing", "orders")):
        for use in (
            lambda: filesets.load_fileset(missing),
            lambda: filesets.alter_fileset(missing, FilesetChange.update_comment("x")),
            lambda: filesets.get_file_location(missing, "/a"),
        ):
            with pytest.raises(NoSuchFilesetException):
                use()
        assert filesets.drop_fileset(missing) is False


def test_the_collection_of_a_missing_schema_names_the_schema(filesets: FilesetCatalog) -> None:
    with pytest.raises(NoSuchSchemaException):
        filesets.list_filesets(Namespace.of("missing"))
    with pytest.raises(NoSuchSchemaException):
        filesets.create_fileset(NameIdentifier.of("missing", "orders"), None, MANAGED, None, {})


def test_below_a_missing_catalog_no_fileset_is_found(
    metalake: GravitinoClient, filesets: FilesetCatalog
) -> None:
    """The server names the catalog; the client has no class for that here, and raises the general one."""
    metalake.drop_catalog("files", force=True)
    for use in (
        lambda: filesets.list_filesets(SALES),
        lambda: filesets.create_fileset(ORDERS, None, MANAGED, None, {}),
        lambda: filesets.load_fileset(ORDERS),
        lambda: filesets.drop_fileset(ORDERS),
    ):
        with pytest.raises(NotFoundException) as caught:
            use()
        assert not isinstance(caught.value, (NoSuchFilesetException, NoSuchSchemaException))


def test_no_fileset_of_a_disabled_catalog_can_be_used(
    metalake: GravitinoClient, filesets: FilesetCatalog
) -> None:
    metalake.disable_catalog("files")
    for use in (
        lambda: filesets.list_filesets(SALES),
        lambda: filesets.create_fileset(NameIdentifier.of("sales", "more"), None, MANAGED, None, {}),
        lambda: filesets.load_fileset(ORDERS),
        lambda: filesets.alter_fileset(ORDERS, FilesetChange.update_comment("x")),
        lambda: filesets.get_file_location(ORDERS, "/a"),
        lambda: filesets.drop_fileset(ORDERS),
    ):
        with pytest.raises(CatalogNotInUseException):
            use()
    metalake.enable_catalog("files")
    assert filesets.load_fileset(ORDERS).comment() == "before"
