"""Catalogs through the client."""

from __future__ import annotations

from pathlib import Path

import pytest
from gravitino import Catalog, GravitinoAdminClient, GravitinoClient, SchemaChange
from gravitino.api.catalog_change import CatalogChange
from gravitino.exceptions.base import (
    CatalogAlreadyExistsException,
    CatalogInUseException,
    CatalogNotInUseException,
    ConnectionFailedException,
    IllegalArgumentException,
    NoSuchCatalogException,
    NoSuchMetalakeException,
    NotEmptyException,
    UnsupportedOperationException,
)

FILESET, MODEL = Catalog.Type.FILESET, Catalog.Type.MODEL


def test_the_old_word_for_the_fileset_provider_is_understood_and_answered_with_the_new(
    metalake: GravitinoClient, tmp_path: Path
) -> None:
    """The location comes back as it was written, without a scheme; only filesets qualify theirs."""
    given = {"location": str(tmp_path)}
    created = metalake.create_catalog("files", FILESET, "hadoop", "a comment", given)
    assert (created.name(), created.type(), created.provider()) == ("files", FILESET, "fileset")
    assert (created.comment(), created.properties()) == ("a comment", {**given, "in-use": "true"})
    loaded = metalake.load_catalog("files")
    assert (loaded.provider(), loaded.comment(), loaded.properties()) == (
        "fileset",
        "a comment",
        {**given, "in-use": "true"},
    )
    assert loaded.audit_info() == created.audit_info()


def test_the_audit_of_a_catalog_has_a_modifier_from_its_creation_on(metalake: GravitinoClient) -> None:
    """Catalogs are the exception: every other kind has none until its first alter."""
    audit = metalake.create_catalog("models", MODEL, None, None, {}).audit_info()
    assert (audit.creator(), audit.last_modifier()) == ("anonymous", "anonymous")
    assert audit.create_time() and audit.last_modified_time()


@pytest.mark.parametrize(("catalog_type", "provider"), [(FILESET, "fileset"), (MODEL, "model")])
def test_a_managed_catalog_needs_no_provider_no_comment_and_no_properties(
    metalake: GravitinoClient, catalog_type: Catalog.Type, provider: str
) -> None:
    created = metalake.create_catalog("bare", catalog_type, None, None, None)
    assert (created.type(), created.provider(), created.comment()) == (catalog_type, provider, None)
    assert created.properties() == {"in-use": "true"}
    assert metalake.create_catalog("named", catalog_type, provider, None, None).provider() == provider


def test_an_empty_comment_of_a_catalog_stays_an_empty_comment(metalake: GravitinoClient) -> None:
    assert metalake.create_catalog("models", MODEL, None, "", {}).comment() == ""
    assert metalake.load_catalog("models").comment() == ""


@pytest.mark.parametrize(
    ("catalog_type", "provider"),
    [
        (FILESET, "no-such-provider"),
        (FILESET, "model"),
        (MODEL, "fileset"),
        (Catalog.Type.UNSUPPORTED, "fileset"),
    ],
)
def test_a_provider_that_is_unknown_or_of_another_type_is_refused(
    metalake: GravitinoClient, catalog_type: Catalog.Type, provider: str
) -> None:
    with pytest.raises(IllegalArgumentException):
        metalake.create_catalog("wrong", catalog_type, provider, None, {})
    assert metalake.list_catalogs() == []


def test_a_second_catalog_of_the_name_is_refused_whatever_its_type(metalake: GravitinoClient) -> None:
    metalake.create_catalog("taken", MODEL, None, "the first", {})
    for catalog_type in (MODEL, FILESET):
        with pytest.raises(CatalogAlreadyExistsException):
            metalake.create_catalog("taken", catalog_type, None, "the second", {})
    assert metalake.load_catalog("taken").comment() == "the first"


@pytest.mark.parametrize("name", ["system", "*", "a b", "a=b", "a/b", "-a", "a" * 65])
def test_a_reserved_or_ill_formed_catalog_name_is_refused(metalake: GravitinoClient, name: str) -> None:
    with pytest.raises(IllegalArgumentException):
        metalake.create_catalog(name, MODEL, None, None, {})


def test_sixty_four_characters_and_a_dash_are_a_catalog_name(metalake: GravitinoClient) -> None:
    name = "a-b_c".ljust(64, "9")
    metalake.create_catalog(name, MODEL, None, None, {})
    assert metalake.load_catalog(name).name() == name


@pytest.mark.parametrize(
    "properties",
    [
        {"in-use": "false"},
        {"metalake-in-use": "false"},
        {"gravitino.identifier": "x"},
        {"location-unknown": "/x"},
        {"cloud.name": "moon"},
        {"disable-filesystem-ops": "maybe"},
    ],
)
def test_a_reserved_property_and_a_value_that_means_nothing_are_refused(
    metalake: GravitinoClient, properties: dict[str, str]
) -> None:
    with pytest.raises(IllegalArgumentException):
        metalake.create_catalog("files", FILESET, None, None, properties)


def test_what_is_fixed_at_creation_cannot_be_altered(metalake: GravitinoClient, tmp_path: Path) -> None:
    given = {"package": "p", "location-archive": str(tmp_path / "archive")}
    metalake.create_catalog("files", FILESET, None, None, given)
    for key in (*given, "in-use", "metalake-in-use", "gravitino.identifier"):
        for change in (CatalogChange.set_property(key, "/other"), CatalogChange.remove_property(key)):
            with pytest.raises(IllegalArgumentException):
                metalake.alter_catalog("files", change)
    assert metalake.load_catalog("files").properties() == {**given, "in-use": "true"}


def test_catalogs_are_listed_by_name_and_in_full(
    metalake: GravitinoClient, files: Catalog, models: Catalog
) -> None:
    assert sorted(metalake.list_catalogs()) == ["files", "models"]
    listed = {catalog.name(): catalog for catalog in metalake.list_catalogs_info()}
    assert sorted(listed) == ["files", "models"]
    assert (listed["files"].type(), listed["files"].provider()) == (FILESET, "fileset")
    assert (listed["models"].type(), listed["models"].provider()) == (MODEL, "model")
    assert listed["files"].properties() == files.properties()
    assert listed["models"].as_schemas().list_schemas() == ["prod"]


def test_each_change_of_a_catalog_does_its_work_alone(metalake: GravitinoClient) -> None:
    metalake.create_catalog("models", MODEL, None, "before", {"kept": "1", "removed": "1"})
    assert metalake.alter_catalog("models", CatalogChange.update_comment("after")).comment() == "after"
    assert metalake.alter_catalog("models", CatalogChange.update_comment(None)).comment() is None
    assert metalake.alter_catalog("models", CatalogChange.set_property("set", "2")).properties()["set"] == "2"
    altered = metalake.alter_catalog("models", CatalogChange.remove_property("removed"))
    assert altered.properties() == {"kept": "1", "set": "2", "in-use": "true"}
    assert metalake.alter_catalog("models", CatalogChange.rename("renamed")).name() == "renamed"
    assert metalake.list_catalogs() == ["renamed"]


def test_one_request_may_rename_a_catalog_and_change_the_rest_of_it(
    metalake: GravitinoClient, models: Catalog
) -> None:
    altered = metalake.alter_catalog(
        "models",
        CatalogChange.rename("renamed"),
        CatalogChange.update_comment("after"),
        CatalogChange.set_property("a", "1"),
    )
    assert (altered.name(), altered.comment()) == ("renamed", "after")
    loaded = metalake.load_catalog("renamed")
    assert loaded.properties() == {"a": "1", "in-use": "true"}
    assert loaded.as_schemas().list_schemas() == ["prod"]
    with pytest.raises(NoSuchCatalogException):
        metalake.load_catalog("models")


def test_a_catalog_cannot_take_the_name_of_another(
    metalake: GravitinoClient, files: Catalog, models: Catalog
) -> None:
    with pytest.raises(CatalogAlreadyExistsException):
        metalake.alter_catalog("models", CatalogChange.rename("files"))
    assert sorted(metalake.list_catalogs()) == ["files", "models"]


def test_disabling_and_enabling_a_catalog_is_idempotent(metalake: GravitinoClient, models: Catalog) -> None:
    for switch, value in (
        (metalake.disable_catalog, "false"),
        (metalake.disable_catalog, "false"),
        (metalake.enable_catalog, "true"),
        (metalake.enable_catalog, "true"),
    ):
        switch("models")
        assert metalake.load_catalog("models").properties()["in-use"] == value


def test_a_disabled_catalog_can_be_loaded_and_listed_and_not_used(
    metalake: GravitinoClient, files: Catalog
) -> None:
    metalake.disable_catalog("files")
    schemas = files.as_schemas()
    for use in (
        lambda: metalake.alter_catalog("files", CatalogChange.update_comment("after")),
        schemas.list_schemas,
        lambda: schemas.load_schema("sales"),
        lambda: schemas.create_schema("more", None, {}),
        lambda: schemas.alter_schema("sales", SchemaChange.set_property("a", "1")),
        lambda: schemas.drop_schema("sales", True),
    ):
        with pytest.raises(CatalogNotInUseException):
            use()
    assert metalake.list_catalogs() == ["files"]
    assert metalake.load_catalog("files").comment() == files.comment()
    metalake.enable_catalog("files")
    assert schemas.list_schemas() == ["sales"]


def test_an_enabled_catalog_is_dropped_by_force_alone(metalake: GravitinoClient, files: Catalog) -> None:
    with pytest.raises(CatalogInUseException):
        metalake.drop_catalog("files")
    assert metalake.drop_catalog("files", force=True) is True
    assert metalake.list_catalogs() == []


def test_a_disabled_catalog_is_dropped_without_force_once_it_is_empty(
    metalake: GravitinoClient, files: Catalog
) -> None:
    metalake.disable_catalog("files")
    with pytest.raises(NotEmptyException):
        metalake.drop_catalog("files")
    metalake.enable_catalog("files")
    assert files.as_schemas().drop_schema("sales", False) is True
    metalake.disable_catalog("files")
    assert metalake.drop_catalog("files") is True


def test_dropping_a_catalog_again_says_that_there_was_none(
    metalake: GravitinoClient, models: Catalog
) -> None:
    assert metalake.drop_catalog("models", force=True) is True
    assert metalake.drop_catalog("models", force=True) is False
    assert metalake.drop_catalog("models") is False


def test_the_name_of_a_dropped_catalog_is_free_for_another_type(
    metalake: GravitinoClient, models: Catalog
) -> None:
    metalake.drop_catalog("models", force=True)
    assert metalake.create_catalog("models", FILESET, None, None, {}).as_schemas().list_schemas() == []


def test_a_missing_catalog_is_named_by_every_operation_on_it(metalake: GravitinoClient) -> None:
    for use in (
        lambda: metalake.load_catalog("missing"),
        lambda: metalake.alter_catalog("missing", CatalogChange.update_comment("x")),
        lambda: metalake.enable_catalog("missing"),
        lambda: metalake.disable_catalog("missing"),
        lambda: metalake.test_connection("missing"),
    ):
        with pytest.raises(NoSuchCatalogException):
            use()


def test_below_a_missing_metalake_a_collection_names_the_metalake_and_a_catalog_names_itself(
    admin: GravitinoAdminClient, metalake: GravitinoClient
) -> None:
    admin.drop_metalake(metalake.get_metalake().name(), force=True)
    for use in (
        metalake.list_catalogs,
        metalake.list_catalogs_info,
        lambda: metalake.create_catalog("models", MODEL, None, None, {}),
    ):
        with pytest.raises(NoSuchMetalakeException):
            use()
    for use in (
        lambda: metalake.load_catalog("models"),
        lambda: metalake.alter_catalog("models", CatalogChange.update_comment("x")),
    ):
        with pytest.raises(NoSuchCatalogException):
            use()
    assert metalake.drop_catalog("models", force=True) is False


def test_a_fileset_catalog_is_tried_out_by_a_look_at_its_places(
    metalake: GravitinoClient, files: Catalog, tmp_path: Path
) -> None:
    """A place that is not there yet will be made; a file in its way is what nobody can write into."""
    (tmp_path / "file").write_text("in the way")
    metalake.test_connection("files")
    metalake.test_connection("files", CatalogChange.set_property("location", str(tmp_path / "other")))
    with pytest.raises(ConnectionFailedException):
        metalake.test_connection("files", CatalogChange.set_property("location", str(tmp_path / "file")))
    with pytest.raises(IllegalArgumentException):
        metalake.test_connection("files", CatalogChange.set_property("in-use", "false"))
    assert metalake.load_catalog("files").properties() == files.properties(), "a test changes nothing"


def test_a_provider_without_a_probe_says_that_it_has_none(metalake: GravitinoClient, models: Catalog) -> None:
    for changes in ([], [CatalogChange.set_property("a", "1")]):
        with pytest.raises(UnsupportedOperationException):
            metalake.test_connection("models", *changes)
    assert metalake.load_catalog("models").properties() == {"in-use": "true"}
