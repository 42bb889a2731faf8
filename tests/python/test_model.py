"""Models through the client. Their versions are told of in `test_model_version.py`."""

from __future__ import annotations

import pytest
from gravitino import Catalog, GravitinoAdminClient, GravitinoClient, NameIdentifier
from gravitino.api.model_change import ModelChange
from gravitino.client.generic_model_catalog import GenericModelCatalog
from gravitino.exceptions.base import (
    CatalogNotInUseException,
    IllegalArgumentException,
    MetalakeNotInUseException,
    ModelAlreadyExistsException,
    NoSuchModelException,
    NoSuchSchemaException,
    NotFoundException,
)
from gravitino.namespace import Namespace

PROD = Namespace.of("prod")
RANKING = NameIdentifier.of("prod", "ranking")


@pytest.fixture
def catalog(models: Catalog) -> GenericModelCatalog:
    """The catalog, with the model `ranking`."""
    catalog = models.as_model_catalog()
    catalog.register_model(RANKING, "before", {"kept": "1", "removed": "1"})
    return catalog


def test_a_registered_model_comes_back_as_it_was_given_and_has_no_version(models: Catalog) -> None:
    catalog = models.as_model_catalog()
    registered = catalog.register_model(RANKING, "a comment", {"a": "1"})
    assert (registered.name(), registered.comment(), registered.properties()) == (
        "ranking",
        "a comment",
        {"a": "1"},
    )
    assert registered.latest_version() == 0
    assert registered.audit_info().creator() == "anonymous"
    assert registered.audit_info().last_modifier() is None
    loaded = catalog.get_model(RANKING)
    assert (loaded.comment(), loaded.properties(), loaded.latest_version()) == ("a comment", {"a": "1"}, 0)
    assert loaded.audit_info() == registered.audit_info()
    assert catalog.list_model_versions(RANKING) == []


def test_a_model_without_comment_and_properties_has_none_and_an_empty_map(models: Catalog) -> None:
    registered = models.as_model_catalog().register_model(RANKING, None, None)
    assert (registered.comment(), registered.properties()) == (None, {})


def test_a_second_model_of_the_name_is_refused_and_the_first_stays(catalog: GenericModelCatalog) -> None:
    with pytest.raises(ModelAlreadyExistsException):
        catalog.register_model(RANKING, "the second", {})
    assert catalog.get_model(RANKING).comment() == "before"


@pytest.mark.parametrize("name", ["*", "a b", "a.b", "-a", "=a", "a" * 65])
def test_a_reserved_or_ill_formed_model_name_is_refused(catalog: GenericModelCatalog, name: str) -> None:
    with pytest.raises(IllegalArgumentException):
        catalog.register_model(NameIdentifier.of("prod", name), None, {})


@pytest.mark.parametrize("name", ["team/ranking", "stage=1", "a-b", "m" * 64])
def test_slashes_equals_signs_and_dashes_are_let_into_a_model_name(
    catalog: GenericModelCatalog, name: str
) -> None:
    """They travel percent-encoded inside one segment of the path."""
    model = NameIdentifier.of("prod", name)
    catalog.register_model(model, None, {})
    catalog.link_model_version(model, "s3://models/0", ["stable"], None, {})
    assert catalog.get_model(model).name() == name
    assert catalog.get_model_version_by_alias(model, "stable").version() == 0
    assert model in catalog.list_models(PROD)
    assert catalog.alter_model(model, ModelChange.set_property("a", "1")).properties() == {"a": "1"}
    assert catalog.delete_model(model) is True


def test_a_reserved_property_of_a_model_cannot_be_given_set_or_removed(catalog: GenericModelCatalog) -> None:
    key = "gravitino.identifier"
    with pytest.raises(IllegalArgumentException):
        catalog.register_model(NameIdentifier.of("prod", "more"), None, {key: "x"})
    for change in (ModelChange.set_property(key, "x"), ModelChange.remove_property(key)):
        with pytest.raises(IllegalArgumentException):
            catalog.alter_model(RANKING, change)


def test_models_are_listed_by_name(catalog: GenericModelCatalog) -> None:
    other = NameIdentifier.of("prod", "clicks")
    catalog.register_model(other, None, {})
    assert sorted(catalog.list_models(PROD), key=str) == [other, RANKING]


def test_each_change_of_a_model_does_its_work_alone(catalog: GenericModelCatalog) -> None:
    assert catalog.alter_model(RANKING, ModelChange.update_comment("after")).comment() == "after"
    assert catalog.alter_model(RANKING, ModelChange.update_comment(None)).comment() is None
    assert catalog.alter_model(RANKING, ModelChange.set_property("set", "2")).properties()["set"] == "2"
    altered = catalog.alter_model(RANKING, ModelChange.remove_property("removed"))
    assert altered.properties() == {"kept": "1", "set": "2"}
    renamed = catalog.alter_model(RANKING, ModelChange.rename("renamed"))
    assert (renamed.name(), renamed.latest_version()) == ("renamed", 0)
    assert catalog.list_models(PROD) == [NameIdentifier.of("prod", "renamed")]


def test_a_renamed_model_keeps_its_versions_and_aliases(catalog: GenericModelCatalog) -> None:
    catalog.link_model_version(RANKING, "s3://models/0", ["stable"], None, {})
    altered = catalog.alter_model(
        RANKING,
        ModelChange.rename("renamed"),
        ModelChange.update_comment("after"),
        ModelChange.set_property("a", "1"),
    )
    renamed = NameIdentifier.of("prod", "renamed")
    assert (altered.comment(), altered.latest_version()) == ("after", 1)
    assert altered.audit_info().last_modifier() == "anonymous"
    assert catalog.list_model_versions(renamed) == [0]
    assert catalog.get_model_version_by_alias(renamed, "stable").version() == 0
    with pytest.raises(NoSuchModelException):
        catalog.get_model(RANKING)


def test_a_model_cannot_take_the_name_of_another(catalog: GenericModelCatalog) -> None:
    other = NameIdentifier.of("prod", "other")
    catalog.register_model(other, "the other", {})
    with pytest.raises(ModelAlreadyExistsException):
        catalog.alter_model(RANKING, ModelChange.rename("other"))
    assert catalog.get_model(RANKING).comment() == "before"
    assert catalog.get_model(other).comment() == "the other"


def test_a_dropped_model_takes_its_versions_along_and_its_successor_begins_anew(
    catalog: GenericModelCatalog,
) -> None:
    for number in range(2):
        catalog.link_model_version(RANKING, f"s3://models/{number}", [f"alias{number}"], None, {})
    assert catalog.delete_model(RANKING) is True
    assert catalog.delete_model(RANKING) is False
    catalog.register_model(RANKING, "the successor", {})
    assert catalog.get_model(RANKING).latest_version() == 0
    assert catalog.list_model_versions(RANKING) == []
    catalog.link_model_version(RANKING, "s3://models/new", ["alias0"], None, {})
    assert catalog.get_model_version_by_alias(RANKING, "alias0").uris() == {"unknown": "s3://models/new"}


def test_a_missing_model_is_named_by_every_operation_on_it(catalog: GenericModelCatalog) -> None:
    """Also where the schema is missing: a look-up of a leaf names the leaf."""
    for missing in (NameIdentifier.of("prod", "missing"), NameIdentifier.of("missing", "ranking")):
        for use in (
            lambda: catalog.get_model(missing),
            lambda: catalog.alter_model(missing, ModelChange.update_comment("x")),
            lambda: catalog.list_model_versions(missing),
            lambda: catalog.list_model_version_infos(missing),
            lambda: catalog.link_model_version(missing, "s3://x", [], None, {}),
        ):
            with pytest.raises(NoSuchModelException):
                use()
        assert catalog.delete_model(missing) is False


def test_the_collection_of_a_missing_schema_names_the_schema(catalog: GenericModelCatalog) -> None:
    with pytest.raises(NoSuchSchemaException):
        catalog.list_models(Namespace.of("missing"))
    with pytest.raises(NoSuchSchemaException):
        catalog.register_model(NameIdentifier.of("missing", "ranking"), None, {})


def test_below_a_missing_catalog_no_model_is_found(
    metalake: GravitinoClient, catalog: GenericModelCatalog
) -> None:
    """The server names the catalog; the client has no class for that here, and raises the general one."""
    metalake.drop_catalog("models", force=True)
    for use in (
        lambda: catalog.list_models(PROD),
        lambda: catalog.register_model(RANKING, None, {}),
        lambda: catalog.get_model(RANKING),
        lambda: catalog.delete_model(RANKING),
        lambda: catalog.get_model_version(RANKING, 0),
    ):
        with pytest.raises(NotFoundException) as caught:
            use()
        assert type(caught.value) is NotFoundException


def test_no_model_of_a_disabled_catalog_or_metalake_can_be_used(
    admin: GravitinoAdminClient, metalake: GravitinoClient, catalog: GenericModelCatalog
) -> None:
    """The error says which of the two is disabled."""
    catalog.link_model_version(RANKING, "s3://models/0", ["stable"], None, {})
    uses = (
        lambda: catalog.list_models(PROD),
        lambda: catalog.register_model(NameIdentifier.of("prod", "more"), None, {}),
        lambda: catalog.get_model(RANKING),
        lambda: catalog.alter_model(RANKING, ModelChange.update_comment("x")),
        lambda: catalog.delete_model(RANKING),
        lambda: catalog.link_model_version(RANKING, "s3://models/1", [], None, {}),
        lambda: catalog.list_model_versions(RANKING),
        lambda: catalog.get_model_version(RANKING, 0),
        lambda: catalog.get_model_version_by_alias(RANKING, "stable"),
        lambda: catalog.get_model_version_uri(RANKING, 0),
        lambda: catalog.delete_model_version(RANKING, 0),
    )
    metalake.disable_catalog("models")
    for use in uses:
        with pytest.raises(CatalogNotInUseException):
            use()
    metalake.enable_catalog("models")
    admin.disable_metalake(metalake.get_metalake().name())
    for use in uses:
        with pytest.raises(MetalakeNotInUseException):
            use()
    admin.enable_metalake(metalake.get_metalake().name())
    assert catalog.list_model_versions(RANKING) == [0]
