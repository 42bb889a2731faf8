"""Schemas through the client."""

from __future__ import annotations

from pathlib import Path

import pytest
from gravitino import Catalog, Fileset, GravitinoClient, NameIdentifier, SchemaChange
from gravitino.exceptions.base import (
    IllegalArgumentException,
    NonEmptySchemaException,
    NoSuchCatalogException,
    NoSuchFilesetException,
    NoSuchModelException,
    NoSuchSchemaException,
    SchemaAlreadyExistsException,
)

PROPERTIES = {"owner": "sales", "tier": "gold"}


def test_a_schema_comes_back_exactly_as_it_was_given(files: Catalog, models: Catalog) -> None:
    for catalog in (files, models):
        schemas = catalog.as_schemas()
        created = schemas.create_schema("fresh", "a comment", PROPERTIES)
        assert (created.name(), created.comment(), created.properties()) == ("fresh", "a comment", PROPERTIES)
        assert created.audit_info().creator() == "anonymous"
        assert created.audit_info().last_modifier() is None
        loaded = schemas.load_schema("fresh")
        assert (loaded.comment(), loaded.properties()) == ("a comment", PROPERTIES)
        assert loaded.audit_info() == created.audit_info()


def test_a_schema_needs_neither_comment_nor_properties(files: Catalog) -> None:
    created = files.as_schemas().create_schema("bare", None, None)
    assert created.comment() is None
    assert not created.properties()


def test_a_second_schema_of_the_name_is_refused_and_the_first_stays(files: Catalog) -> None:
    with pytest.raises(SchemaAlreadyExistsException):
        files.as_schemas().create_schema("sales", "the second", {})
    assert files.as_schemas().load_schema("sales").comment() == "a schema"


def test_catalogs_do_not_share_the_names_of_their_schemas(files: Catalog, models: Catalog) -> None:
    models.as_schemas().create_schema("sales", "another", {})
    assert files.as_schemas().load_schema("sales").comment() == "a schema"
    assert models.as_schemas().load_schema("sales").comment() == "another"


@pytest.mark.parametrize("name", ["a.b", "-a", "a~b", "a" * 65])
def test_an_ill_formed_schema_name_is_refused(files: Catalog, models: Catalog, name: str) -> None:
    """Only names that percent-encoding leaves alone: the client encodes the name inside the body, and then cannot
    show an error message with a percent sign in it. The others are in `test_http_requests.py`."""
    for catalog in (files, models):
        with pytest.raises(IllegalArgumentException):
            catalog.as_schemas().create_schema(name, None, {})


def test_sixty_four_characters_are_a_schema_name(files: Catalog) -> None:
    name = "s" * 64
    files.as_schemas().create_schema(name, None, {})
    assert files.as_schemas().load_schema(name).name() == name


def test_schemas_are_listed_by_name(files: Catalog) -> None:
    for name in ("beta", "alpha"):
        files.as_schemas().create_schema(name, None, {})
    assert sorted(files.as_schemas().list_schemas()) == ["alpha", "beta", "sales"]


def test_whether_a_schema_exists_is_told_from_whether_it_loads(files: Catalog) -> None:
    schemas = files.as_schemas()
    assert schemas.schema_exists("sales") is True
    assert schemas.schema_exists("missing") is False
    assert schemas.schema_exists("a name that no schema can have") is False


def test_each_change_of_a_schema_does_its_work(files: Catalog) -> None:
    schemas = files.as_schemas()
    assert schemas.alter_schema("sales", SchemaChange.set_property("a", "1")).properties() == {"a": "1"}
    assert schemas.alter_schema("sales", SchemaChange.set_property("a", "2")).properties() == {"a": "2"}
    assert schemas.alter_schema("sales", SchemaChange.remove_property("missing")).properties() == {"a": "2"}
    altered = schemas.alter_schema(
        "sales", SchemaChange.remove_property("a"), SchemaChange.set_property("b", "1")
    )
    assert (altered.comment(), altered.properties()) == ("a schema", {"b": "1"})
    assert altered.audit_info().last_modifier() == "anonymous"
    assert schemas.load_schema("sales").properties() == {"b": "1"}


def test_properties_that_say_where_files_lie_are_fixed_with_the_schema(
    files: Catalog, tmp_path: Path
) -> None:
    schemas = files.as_schemas()
    given = {"location-archive": str(tmp_path / "archive")}
    schemas.create_schema("fresh", None, given)
    for change in (
        SchemaChange.set_property("location-archive", "/other"),
        SchemaChange.remove_property("location-archive"),
        SchemaChange.set_property("location-unknown", "/other"),
        SchemaChange.set_property("gravitino.identifier", "x"),
    ):
        with pytest.raises(IllegalArgumentException):
            schemas.alter_schema("fresh", change)
    with pytest.raises(IllegalArgumentException):
        schemas.create_schema("wrong", None, {"location-unknown": str(tmp_path)})
    assert schemas.load_schema("fresh").properties() == given


def test_an_empty_schema_is_dropped_with_and_without_cascade(files: Catalog) -> None:
    schemas = files.as_schemas()
    schemas.create_schema("other", None, {})
    assert schemas.drop_schema("sales", False) is True
    assert schemas.drop_schema("other", True) is True
    assert schemas.list_schemas() == []


def test_dropping_a_schema_again_says_that_there_was_none(files: Catalog) -> None:
    for cascade in (False, True):
        assert files.as_schemas().drop_schema("never", cascade) is False
    assert files.as_schemas().drop_schema("sales", False) is True
    assert files.as_schemas().drop_schema("sales", False) is False


def test_a_schema_with_a_fileset_is_dropped_by_cascade_alone(files: Catalog) -> None:
    fileset = NameIdentifier.of("sales", "orders")
    files.as_fileset_catalog().create_fileset(fileset, None, Fileset.Type.MANAGED, None, {})
    with pytest.raises(NonEmptySchemaException):
        files.as_schemas().drop_schema("sales", False)
    assert files.as_fileset_catalog().load_fileset(fileset).name() == "orders"
    assert files.as_schemas().drop_schema("sales", True) is True
    with pytest.raises(NoSuchFilesetException):
        files.as_fileset_catalog().load_fileset(fileset)


def test_a_schema_with_a_model_and_its_versions_is_dropped_by_cascade_alone(models: Catalog) -> None:
    model = NameIdentifier.of("prod", "ranking")
    catalog = models.as_model_catalog()
    catalog.register_model(model, None, {})
    catalog.link_model_version(model, "s3://models/0", ["stable"], None, {})
    with pytest.raises(NonEmptySchemaException):
        models.as_schemas().drop_schema("prod", False)
    assert models.as_schemas().drop_schema("prod", True) is True
    models.as_schemas().create_schema("prod", "the successor", {})
    with pytest.raises(NoSuchModelException):
        catalog.get_model(model)


def test_a_missing_schema_is_named_by_every_operation_on_it(files: Catalog) -> None:
    for use in (
        lambda: files.as_schemas().load_schema("missing"),
        lambda: files.as_schemas().alter_schema("missing", SchemaChange.set_property("a", "1")),
    ):
        with pytest.raises(NoSuchSchemaException):
            use()


def test_below_a_missing_catalog_every_operation_names_the_catalog(
    metalake: GravitinoClient, files: Catalog
) -> None:
    metalake.drop_catalog("files", force=True)
    schemas = files.as_schemas()
    for use in (
        schemas.list_schemas,
        lambda: schemas.create_schema("sales", None, {}),
        lambda: schemas.load_schema("sales"),
        lambda: schemas.alter_schema("sales", SchemaChange.set_property("a", "1")),
        lambda: schemas.drop_schema("sales", True),
    ):
        with pytest.raises(NoSuchCatalogException):
            use()
