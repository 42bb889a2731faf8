"""Metalakes through the client."""

from __future__ import annotations

import pytest
from gravitino import Catalog, GravitinoAdminClient, GravitinoClient, MetalakeChange
from gravitino.exceptions.base import (
    IllegalArgumentException,
    MetalakeAlreadyExistsException,
    MetalakeInUseException,
    MetalakeNotInUseException,
    NoSuchMetalakeException,
    NotEmptyException,
    NotInUseException,
)

from harness import Server, unique

PROPERTIES = {"team": "data", "region": "north"}


def test_a_created_metalake_echoes_what_was_given_and_a_loaded_one_adds_its_switch(
    admin: GravitinoAdminClient,
) -> None:
    """The create answers the properties as given; `in-use` appears from the first load on."""
    name = unique("metalake")
    created = admin.create_metalake(name, "a comment", PROPERTIES)
    assert (created.name(), created.comment(), created.properties()) == (name, "a comment", PROPERTIES)
    assert created.audit_info().last_modifier() is None
    loaded = admin.load_metalake(name)
    assert (loaded.name(), loaded.comment()) == (name, "a comment")
    assert loaded.properties() == {**PROPERTIES, "in-use": "true"}
    assert loaded.audit_info() == created.audit_info()


def test_a_metalake_needs_neither_comment_nor_properties(admin: GravitinoAdminClient) -> None:
    name = unique("metalake")
    created = admin.create_metalake(name, None, None)
    assert created.comment() is None
    assert not created.properties()
    assert admin.load_metalake(name).properties() == {"in-use": "true"}


def test_an_empty_comment_of_a_metalake_arrives_as_none(admin: GravitinoAdminClient) -> None:
    """The client strips the comment and sends null for what is left."""
    assert admin.create_metalake(unique("metalake"), "", {}).comment() is None


def test_a_second_metalake_of_the_name_is_refused_and_the_first_stays(admin: GravitinoAdminClient) -> None:
    name = unique("metalake")
    admin.create_metalake(name, "the first", {})
    with pytest.raises(MetalakeAlreadyExistsException):
        admin.create_metalake(name, "the second", {})
    assert admin.load_metalake(name).comment() == "the first"


@pytest.mark.parametrize("name", ["system", "a-b", "a b", "a.b", "a/b", "-a", "ä", "a" * 65])
def test_a_reserved_or_ill_formed_metalake_name_is_refused(admin: GravitinoAdminClient, name: str) -> None:
    with pytest.raises(IllegalArgumentException):
        admin.create_metalake(name, None, {})


def test_sixty_four_characters_are_a_metalake_name(admin: GravitinoAdminClient) -> None:
    name = unique("m").ljust(64, "x")
    assert admin.create_metalake(name, None, {}).name() == name
    assert admin.load_metalake(name).name() == name


def test_names_of_metalakes_tell_upper_from_lower_case(admin: GravitinoAdminClient) -> None:
    name = unique("metalake")
    admin.create_metalake(name, "lower", {})
    admin.create_metalake(name.upper(), "upper", {})
    assert admin.load_metalake(name).comment() == "lower"


@pytest.mark.parametrize("key", ["in-use", "gravitino.identifier"])
def test_a_reserved_property_of_a_metalake_cannot_be_given_set_or_removed(
    admin: GravitinoAdminClient, key: str
) -> None:
    name = unique("metalake")
    with pytest.raises(IllegalArgumentException):
        admin.create_metalake(name, None, {key: "false"})
    admin.create_metalake(name, None, {})
    for change in (MetalakeChange.set_property(key, "false"), MetalakeChange.remove_property(key)):
        with pytest.raises(IllegalArgumentException):
            admin.alter_metalake(name, change)
    assert admin.load_metalake(name).properties() == {"in-use": "true"}


def test_the_list_has_every_metalake_in_full(admin: GravitinoAdminClient) -> None:
    names = {unique("metalake") for _ in range(3)}
    for name in names:
        admin.create_metalake(name, f"comment of {name}", PROPERTIES)
    listed = {metalake.name(): metalake for metalake in admin.list_metalakes()}
    for name in names:
        assert listed[name].comment() == f"comment of {name}"
        assert listed[name].properties() == {**PROPERTIES, "in-use": "true"}


def test_each_change_of_a_metalake_does_its_work_alone(admin: GravitinoAdminClient) -> None:
    name, renamed = unique("metalake"), unique("metalake")
    admin.create_metalake(name, "before", {"kept": "1", "removed": "1"})
    assert admin.alter_metalake(name, MetalakeChange.update_comment("after")).comment() == "after"
    assert admin.alter_metalake(name, MetalakeChange.update_comment(None)).comment() is None
    assert admin.alter_metalake(name, MetalakeChange.set_property("set", "2")).properties()["set"] == "2"
    assert admin.alter_metalake(name, MetalakeChange.set_property("set", "3")).properties()["set"] == "3"
    assert "removed" not in admin.alter_metalake(name, MetalakeChange.remove_property("removed")).properties()
    assert admin.alter_metalake(name, MetalakeChange.rename(renamed)).name() == renamed
    assert admin.load_metalake(renamed).properties() == {"kept": "1", "set": "3", "in-use": "true"}


def test_the_changes_of_one_request_are_applied_in_order_and_together(admin: GravitinoAdminClient) -> None:
    name, renamed = unique("metalake"), unique("metalake")
    admin.create_metalake(name, "before", {"a": "1"})
    altered = admin.alter_metalake(
        name,
        MetalakeChange.rename(renamed),
        MetalakeChange.update_comment("after"),
        MetalakeChange.remove_property("a"),
        MetalakeChange.set_property("b", "1"),
        MetalakeChange.set_property("b", "2"),
    )
    assert (altered.name(), altered.comment(), altered.properties()) == (renamed, "after", {"b": "2"})
    assert altered.audit_info().last_modifier() == "anonymous"
    assert altered.audit_info().last_modified_time() >= altered.audit_info().create_time()
    with pytest.raises(NoSuchMetalakeException):
        admin.load_metalake(name)


def test_one_refused_change_undoes_its_whole_request(admin: GravitinoAdminClient) -> None:
    name = unique("metalake")
    admin.create_metalake(name, "before", {})
    with pytest.raises(IllegalArgumentException):
        admin.alter_metalake(name, MetalakeChange.update_comment("after"), MetalakeChange.rename("system"))
    assert admin.load_metalake(name).comment() == "before"


def test_removing_a_property_that_is_not_there_changes_nothing(admin: GravitinoAdminClient) -> None:
    name = unique("metalake")
    admin.create_metalake(name, None, {"a": "1"})
    assert admin.alter_metalake(name, MetalakeChange.remove_property("b")).properties() == {"a": "1"}


def test_a_metalake_cannot_take_the_name_of_another(admin: GravitinoAdminClient) -> None:
    """The predecessor answers an internal error here; a clash is a clash."""
    first, second = unique("metalake"), unique("metalake")
    admin.create_metalake(first, "first", {})
    admin.create_metalake(second, "second", {})
    with pytest.raises(MetalakeAlreadyExistsException):
        admin.alter_metalake(second, MetalakeChange.rename(first))
    assert admin.load_metalake(first).comment() == "first"
    assert admin.load_metalake(second).comment() == "second"


def test_a_renamed_metalake_keeps_what_is_below_it(
    server: Server, admin: GravitinoAdminClient, metalake: GravitinoClient, files: Catalog
) -> None:
    renamed = unique("metalake")
    admin.alter_metalake(metalake.get_metalake().name(), MetalakeChange.rename(renamed))
    catalog = GravitinoClient(server.uri, renamed).load_catalog(files.name())
    assert catalog.as_schemas().list_schemas() == ["sales"]


def test_disabling_and_enabling_a_metalake_is_idempotent(admin: GravitinoAdminClient) -> None:
    name = unique("metalake")
    admin.create_metalake(name, None, {})
    for switch, value in (
        (admin.disable_metalake, "false"),
        (admin.disable_metalake, "false"),
        (admin.enable_metalake, "true"),
        (admin.enable_metalake, "true"),
    ):
        switch(name)
        assert admin.load_metalake(name).properties()["in-use"] == value


def test_a_disabled_metalake_can_be_loaded_and_listed_and_not_altered(admin: GravitinoAdminClient) -> None:
    name = unique("metalake")
    admin.create_metalake(name, "before", {})
    admin.disable_metalake(name)
    with pytest.raises(MetalakeNotInUseException):
        admin.alter_metalake(name, MetalakeChange.update_comment("after"))
    assert admin.load_metalake(name).comment() == "before"
    assert name in [metalake.name() for metalake in admin.list_metalakes()]
    admin.enable_metalake(name)
    assert admin.alter_metalake(name, MetalakeChange.update_comment("after")).comment() == "after"


def test_nothing_below_a_disabled_metalake_can_be_used(
    admin: GravitinoAdminClient, metalake: GravitinoClient, files: Catalog
) -> None:
    """Its catalogs cannot even be listed, and come back with it."""
    name = metalake.get_metalake().name()
    admin.disable_metalake(name)
    for use in (
        metalake.list_catalogs,
        metalake.list_catalogs_info,
        lambda: metalake.load_catalog("files"),
        lambda: metalake.create_catalog("more", Catalog.Type.MODEL, None, None, {}),
        lambda: metalake.disable_catalog("files"),
        lambda: files.as_schemas().list_schemas(),
        lambda: files.as_schemas().create_schema("more", None, {}),
    ):
        with pytest.raises(NotInUseException):
            use()
    admin.enable_metalake(name)
    assert metalake.list_catalogs() == ["files"]
    assert metalake.load_catalog("files").properties()["in-use"] == "true"


def test_an_enabled_metalake_is_dropped_by_force_alone(
    admin: GravitinoAdminClient, metalake: GravitinoClient, files: Catalog
) -> None:
    """That it is enabled is said before that it is not empty."""
    name = metalake.get_metalake().name()
    with pytest.raises(MetalakeInUseException):
        admin.drop_metalake(name)
    assert files.name() in metalake.list_catalogs()
    assert admin.drop_metalake(name, force=True) is True
    with pytest.raises(NoSuchMetalakeException):
        admin.load_metalake(name)


def test_a_disabled_metalake_that_is_not_empty_is_dropped_by_force_alone(
    admin: GravitinoAdminClient, metalake: GravitinoClient, files: Catalog
) -> None:
    name = metalake.get_metalake().name()
    admin.disable_metalake(name)
    with pytest.raises(NotEmptyException):
        admin.drop_metalake(name)
    assert admin.load_metalake(name).name() == name
    assert admin.drop_metalake(name, force=True) is True


def test_a_disabled_empty_metalake_is_dropped_without_force(admin: GravitinoAdminClient) -> None:
    name = unique("metalake")
    admin.create_metalake(name, None, {})
    admin.disable_metalake(name)
    assert admin.drop_metalake(name) is True
    assert name not in [metalake.name() for metalake in admin.list_metalakes()]


def test_dropping_what_is_not_there_says_so_without_an_error(admin: GravitinoAdminClient) -> None:
    name = unique("metalake")
    assert admin.drop_metalake(name) is False
    assert admin.drop_metalake(name, force=True) is False
    admin.create_metalake(name, None, {})
    assert admin.drop_metalake(name, force=True) is True
    assert admin.drop_metalake(name, force=True) is False


def test_the_name_of_a_dropped_metalake_is_free_and_its_successor_is_empty(
    server: Server, admin: GravitinoAdminClient, metalake: GravitinoClient, files: Catalog
) -> None:
    name = metalake.get_metalake().name()
    admin.drop_metalake(name, force=True)
    successor = admin.create_metalake(name, "the successor", {})
    assert successor.comment() == "the successor"
    assert GravitinoClient(server.uri, name).list_catalogs() == []


def test_every_operation_on_a_missing_metalake_names_the_metalake(admin: GravitinoAdminClient) -> None:
    name = unique("metalake")
    for use in (
        lambda: admin.load_metalake(name),
        lambda: admin.alter_metalake(name, MetalakeChange.update_comment("x")),
        lambda: admin.enable_metalake(name),
        lambda: admin.disable_metalake(name),
    ):
        with pytest.raises(NoSuchMetalakeException):
            use()
