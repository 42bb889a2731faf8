"""Versions of a model through the client: their numbers, aliases and URIs."""

from __future__ import annotations

import pytest
from gravitino import Catalog, NameIdentifier
from gravitino.api.model_change import ModelChange
from gravitino.api.model_version_change import ModelVersionChange
from gravitino.client.generic_model_catalog import GenericModelCatalog
from gravitino.exceptions.base import (
    IllegalArgumentException,
    ModelAlreadyExistsException,
    ModelVersionAliasesAlreadyExistException,
    NoSuchModelVersionException,
    NoSuchModelVersionURINameException,
)

MODEL = NameIdentifier.of("prod", "ranking")
MISSING = NameIdentifier.of("prod", "missing")


@pytest.fixture
def catalog(models: Catalog) -> GenericModelCatalog:
    """The catalog, with the model `ranking`, which has no version yet."""
    catalog = models.as_model_catalog()
    catalog.register_model(MODEL, None, {})
    return catalog


@pytest.fixture
def linked(catalog: GenericModelCatalog) -> GenericModelCatalog:
    """The catalog, with version 0 of the model."""
    catalog.link_model_version(
        MODEL, "s3://models/0", ["alias1", "alias2"], "before", {"kept": "1", "removed": "1"}
    )
    return catalog


def test_a_linked_version_comes_back_by_number_and_by_each_alias(linked: GenericModelCatalog) -> None:
    for version in (
        linked.get_model_version(MODEL, 0),
        linked.get_model_version_by_alias(MODEL, "alias1"),
        linked.get_model_version_by_alias(MODEL, "alias2"),
    ):
        assert (version.version(), version.comment()) == (0, "before")
        assert version.aliases() == ["alias1", "alias2"]
        assert version.uris() == {"unknown": "s3://models/0"}
        assert version.uri() == "s3://models/0"
        assert version.properties() == {"kept": "1", "removed": "1"}
        assert version.audit_info().creator() == "anonymous"
        assert version.audit_info().last_modifier() is None


def test_a_version_needs_neither_aliases_nor_comment_nor_properties(catalog: GenericModelCatalog) -> None:
    catalog.link_model_version(MODEL, "s3://models/0", None, None, None)
    version = catalog.get_model_version(MODEL, 0)
    assert (version.aliases(), version.comment(), version.properties()) == ([], None, {})


def test_numbers_count_from_zero_and_the_model_counts_its_links(catalog: GenericModelCatalog) -> None:
    for number in range(3):
        catalog.link_model_version(MODEL, f"s3://models/{number}", [], None, {})
        assert catalog.get_model(MODEL).latest_version() == number + 1
    assert catalog.list_model_versions(MODEL) == [0, 1, 2]


def test_twelve_versions_are_listed_in_the_order_of_their_numbers(catalog: GenericModelCatalog) -> None:
    """As names, 10 and 11 would come before 2."""
    for number in range(12):
        catalog.link_model_version(MODEL, f"s3://models/{number}", [], f"comment {number}", {})
    assert catalog.list_model_versions(MODEL) == list(range(12))
    infos = catalog.list_model_version_infos(MODEL)
    assert [(info.version(), info.comment()) for info in infos] == [(n, f"comment {n}") for n in range(12)]


def test_the_number_of_a_dropped_version_is_never_given_again(catalog: GenericModelCatalog) -> None:
    for number in range(2):
        catalog.link_model_version(MODEL, f"s3://models/{number}", [], None, {})
    assert catalog.delete_model_version(MODEL, 1) is True
    catalog.link_model_version(MODEL, "s3://models/2", [], None, {})
    assert catalog.list_model_versions(MODEL) == [0, 2]
    assert catalog.get_model(MODEL).latest_version() == 3


def test_a_version_with_several_uris_has_exactly_those(catalog: GenericModelCatalog) -> None:
    uris = {"n1": "s3://models/a", "n2": "hdfs://models/b"}
    catalog.link_model_version_with_multiple_uris(MODEL, uris, ["alias1"], None, {})
    assert catalog.get_model_version(MODEL, 0).uris() == uris
    for name, uri in uris.items():
        assert catalog.get_model_version_uri(MODEL, 0, name) == uri
        assert catalog.get_model_version_uri_by_alias(MODEL, "alias1", name) == uri


def test_registering_a_model_with_its_first_version_does_both(catalog: GenericModelCatalog) -> None:
    clicks, views = NameIdentifier.of("prod", "clicks"), NameIdentifier.of("prod", "views")
    catalog.register_model_version(clicks, "s3://clicks/0", ["first"], "a comment", {"a": "1"})
    assert catalog.get_model(clicks).latest_version() == 1
    assert catalog.get_model_version_by_alias(clicks, "first").uri() == "s3://clicks/0"
    catalog.register_model_version_with_multiple_uris(views, {"n1": "s3://views/0"}, [], None, {})
    assert catalog.get_model_version(views, 0).uris() == {"n1": "s3://views/0"}
    with pytest.raises(ModelAlreadyExistsException):
        catalog.register_model_version(clicks, "s3://clicks/1", [], None, {})


def test_an_alias_that_another_version_has_is_refused_and_gives_no_number_away(
    linked: GenericModelCatalog,
) -> None:
    with pytest.raises(ModelVersionAliasesAlreadyExistException):
        linked.link_model_version(MODEL, "s3://models/1", ["fresh", "alias1"], None, {})
    assert linked.list_model_versions(MODEL) == [0]
    assert linked.get_model(MODEL).latest_version() == 1
    with pytest.raises(NoSuchModelVersionException):
        linked.get_model_version_by_alias(MODEL, "fresh")


@pytest.mark.parametrize("alias", ["1", "-1", "007", " x", "x ", "x" * 300])
def test_a_number_is_no_alias_and_neither_is_what_no_database_keeps(
    catalog: GenericModelCatalog, alias: str
) -> None:
    with pytest.raises(IllegalArgumentException):
        catalog.link_model_version(MODEL, "s3://models/0", [alias], None, {})
    assert catalog.list_model_versions(MODEL) == []


@pytest.mark.parametrize("alias", ["a/b", "stage=prod", "v1.0", "größte", "a b"])
def test_an_alias_may_hold_any_sign_that_a_path_must_encode(catalog: GenericModelCatalog, alias: str) -> None:
    catalog.link_model_version(MODEL, "s3://models/0", [alias], None, {})
    assert catalog.get_model_version_by_alias(MODEL, alias).aliases() == [alias]
    assert catalog.get_model_version_uri_by_alias(MODEL, alias) == "s3://models/0"
    assert catalog.delete_model_version_by_alias(MODEL, alias) is True


def test_each_change_of_a_version_does_its_work_alone(linked: GenericModelCatalog) -> None:
    change = ModelVersionChange
    assert linked.alter_model_version(MODEL, 0, change.update_comment("after")).comment() == "after"
    assert linked.alter_model_version(MODEL, 0, change.update_comment(None)).comment() is None
    assert linked.alter_model_version(MODEL, 0, change.set_property("set", "2")).properties()["set"] == "2"
    altered = linked.alter_model_version(MODEL, 0, change.remove_property("removed"))
    assert altered.properties() == {"kept": "1", "set": "2"}
    assert linked.alter_model_version(MODEL, 0, change.update_uri("s3://new")).uris() == {
        "unknown": "s3://new"
    }
    added = linked.alter_model_version(MODEL, 0, change.add_uri("backup", "s3://backup"))
    assert added.uris() == {"unknown": "s3://new", "backup": "s3://backup"}
    named = linked.alter_model_version(MODEL, 0, change.update_uri("s3://moved", "backup"))
    assert named.uris()["backup"] == "s3://moved"
    removed = linked.alter_model_version(MODEL, 0, change.remove_uri("unknown"))
    assert removed.uris() == {"backup": "s3://moved"}
    assert removed.audit_info().last_modifier() == "anonymous"
    assert linked.get_model_version(MODEL, 0).uris() == {"backup": "s3://moved"}


def test_altering_a_version_leaves_its_model_and_the_other_versions_alone(
    linked: GenericModelCatalog,
) -> None:
    linked.link_model_version(MODEL, "s3://models/1", [], "the other", {})
    linked.alter_model_version(MODEL, 0, ModelVersionChange.update_comment("after"))
    assert linked.get_model_version(MODEL, 1).comment() == "the other"
    assert linked.get_model(MODEL).latest_version() == 2


def test_a_version_is_altered_by_alias_too_and_all_changes_of_a_request_go_together(
    linked: GenericModelCatalog,
) -> None:
    altered = linked.alter_model_version_by_alias(
        MODEL,
        "alias2",
        ModelVersionChange.update_comment("after"),
        ModelVersionChange.set_property("a", "1"),
        ModelVersionChange.update_aliases(["fresh"], ["alias2"]),
    )
    assert (altered.version(), altered.comment(), altered.aliases()) == (0, "after", ["alias1", "fresh"])
    with pytest.raises(IllegalArgumentException):
        linked.alter_model_version_by_alias(
            MODEL,
            "fresh",
            ModelVersionChange.update_comment("never"),
            ModelVersionChange.remove_uri("unknown"),
        )
    assert linked.get_model_version(MODEL, 0).comment() == "after"


def test_an_alias_in_both_lists_stays_as_it_was(linked: GenericModelCatalog) -> None:
    """Aliases travel as a set, so the answer has them in byte order."""
    change = ModelVersionChange.update_aliases(["alias2", "alias3"], ["alias1", "alias2"])
    assert linked.alter_model_version(MODEL, 0, change).aliases() == ["alias2", "alias3"]
    assert linked.get_model_version_by_alias(MODEL, "alias3").version() == 0
    with pytest.raises(NoSuchModelVersionException):
        linked.get_model_version_by_alias(MODEL, "alias1")


def test_aliases_are_given_to_a_version_that_had_none_and_taken_from_one_that_has_some(
    catalog: GenericModelCatalog,
) -> None:
    catalog.link_model_version(MODEL, "s3://models/0", None, None, {})
    both = ModelVersionChange.update_aliases(["b", "a"], [])
    assert catalog.alter_model_version(MODEL, 0, both).aliases() == ["a", "b"]
    none = ModelVersionChange.update_aliases(None, ["a", "b", "unknown"])
    assert catalog.alter_model_version(MODEL, 0, none).aliases() == []


def test_an_alias_moves_to_another_version_only_once_the_first_has_let_it_go(
    linked: GenericModelCatalog,
) -> None:
    linked.link_model_version(MODEL, "s3://models/1", [], None, {})
    take = ModelVersionChange.update_aliases(["alias1"], [])
    with pytest.raises(ModelVersionAliasesAlreadyExistException):
        linked.alter_model_version(MODEL, 1, take)
    assert linked.get_model_version_by_alias(MODEL, "alias1").version() == 0
    linked.alter_model_version(MODEL, 0, ModelVersionChange.update_aliases([], ["alias1"]))
    assert linked.alter_model_version(MODEL, 1, take).aliases() == ["alias1"]
    assert linked.get_model_version_by_alias(MODEL, "alias1").version() == 1


def test_models_do_not_share_their_aliases(linked: GenericModelCatalog) -> None:
    other = NameIdentifier.of("prod", "other")
    linked.register_model_version(other, "s3://other/0", ["alias1"], None, {})
    assert linked.get_model_version_by_alias(MODEL, "alias1").uri() == "s3://models/0"
    assert linked.get_model_version_by_alias(other, "alias1").uri() == "s3://other/0"


def test_adding_a_uri_under_a_name_that_is_taken_keeps_the_old_one(linked: GenericModelCatalog) -> None:
    altered = linked.alter_model_version(MODEL, 0, ModelVersionChange.add_uri("unknown", "s3://other"))
    assert altered.uris() == {"unknown": "s3://models/0"}


def test_updating_or_removing_a_uri_that_is_not_there_changes_nothing(linked: GenericModelCatalog) -> None:
    for change in (
        ModelVersionChange.update_uri("s3://x", "missing"),
        ModelVersionChange.remove_uri("missing"),
    ):
        assert linked.alter_model_version(MODEL, 0, change).uris() == {"unknown": "s3://models/0"}


def test_the_last_uri_of_a_version_stays(linked: GenericModelCatalog) -> None:
    with pytest.raises(IllegalArgumentException):
        linked.alter_model_version(MODEL, 0, ModelVersionChange.remove_uri("unknown"))
    swapped = linked.alter_model_version(
        MODEL, 0, ModelVersionChange.remove_uri("unknown"), ModelVersionChange.add_uri("n1", "s3://n1")
    )
    assert swapped.uris() == {"n1": "s3://n1"}


def test_a_uri_is_looked_up_by_name_alone_or_by_the_defaults_of_version_and_model(
    catalog: GenericModelCatalog,
) -> None:
    """The order is: the name, the only one, the version's default, the model's default, and then no guess."""
    uris = {"n1": "s3://n1", "n2": "s3://n2"}
    catalog.link_model_version_with_multiple_uris(MODEL, uris, ["alias1"], None, {})
    with pytest.raises(IllegalArgumentException):
        catalog.get_model_version_uri(MODEL, 0)
    catalog.alter_model(MODEL, ModelChange.set_property("default-uri-name", "n1"))
    assert catalog.get_model_version_uri(MODEL, 0) == "s3://n1"
    catalog.alter_model_version(MODEL, 0, ModelVersionChange.set_property("default-uri-name", "n2"))
    assert catalog.get_model_version_uri(MODEL, 0) == "s3://n2"
    assert catalog.get_model_version_uri_by_alias(MODEL, "alias1") == "s3://n2"
    assert catalog.get_model_version_uri(MODEL, 0, "n1") == "s3://n1"
    catalog.alter_model_version(MODEL, 0, ModelVersionChange.remove_uri("n2"))
    assert catalog.get_model_version_uri(MODEL, 0) == "s3://n1"


def test_a_uri_name_that_is_not_there_is_named(linked: GenericModelCatalog) -> None:
    for look_up in (
        lambda: linked.get_model_version_uri(MODEL, 0, "missing"),
        lambda: linked.get_model_version_uri_by_alias(MODEL, "alias1", "missing"),
    ):
        with pytest.raises(NoSuchModelVersionURINameException):
            look_up()


def test_a_dropped_version_takes_its_aliases_along(linked: GenericModelCatalog) -> None:
    assert linked.delete_model_version(MODEL, 0) is True
    assert linked.delete_model_version(MODEL, 0) is False
    assert linked.delete_model_version_by_alias(MODEL, "alias1") is False
    assert linked.list_model_versions(MODEL) == []
    linked.link_model_version(MODEL, "s3://models/1", ["alias1"], None, {})
    assert linked.get_model_version_by_alias(MODEL, "alias1").version() == 1


def test_a_version_is_dropped_by_alias_too(linked: GenericModelCatalog) -> None:
    assert linked.delete_model_version_by_alias(MODEL, "alias2") is True
    assert linked.delete_model_version_by_alias(MODEL, "alias2") is False
    with pytest.raises(NoSuchModelVersionException):
        linked.get_model_version(MODEL, 0)


def test_a_missing_version_is_named_also_where_its_model_is_missing(linked: GenericModelCatalog) -> None:
    comment = ModelVersionChange.update_comment("x")
    for model in (MODEL, MISSING, NameIdentifier.of("missing", "ranking")):
        for use in (
            lambda: linked.get_model_version(model, 7),
            lambda: linked.get_model_version_by_alias(model, "missing"),
            lambda: linked.get_model_version_uri(model, 7),
            lambda: linked.get_model_version_uri_by_alias(model, "missing"),
            lambda: linked.alter_model_version(model, 7, comment),
            lambda: linked.alter_model_version_by_alias(model, "missing", comment),
        ):
            with pytest.raises(NoSuchModelVersionException):
                use()
        assert linked.delete_model_version(model, 7) is False
        assert linked.delete_model_version_by_alias(model, "missing") is False
