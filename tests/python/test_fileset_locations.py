"""Where the files of a fileset lie: which directories are made, which go, and what a path inside is called."""

from __future__ import annotations

from pathlib import Path

import pytest
from gravitino import Catalog, Fileset, FilesetChange, GravitinoAdminClient, GravitinoClient, NameIdentifier
from gravitino.audit.caller_context import CallerContext, CallerContextHolder
from gravitino.exceptions.base import (
    AlreadyExistsException,
    IllegalArgumentException,
    NoSuchFilesetException,
    NoSuchLocationNameException,
    UnsupportedOperationException,
)

from harness import poll

ORDERS = NameIdentifier.of("sales", "orders")
MANAGED, EXTERNAL = Fileset.Type.MANAGED, Fileset.Type.EXTERNAL
GONE_WITHIN_S = 10.0


def gone(path: Path) -> None:
    """The rows of a drop go with its answer, the files soon after it."""
    poll(f"{path} is removed", GONE_WITHIN_S, lambda: not path.exists())


def test_without_a_location_of_its_own_a_fileset_lies_below_its_schema_below_its_catalog(
    files: Catalog, tmp_path: Path
) -> None:
    created = files.as_fileset_catalog().create_fileset(ORDERS, None, MANAGED, None, {})
    place = tmp_path / "files" / "sales" / "orders"
    assert created.storage_locations() == {"unknown": f"file:{place}"}
    assert place.is_dir()


def test_the_location_of_a_schema_goes_before_that_of_its_catalog(files: Catalog, tmp_path: Path) -> None:
    place = tmp_path / "apart"
    files.as_schemas().create_schema("apart", None, {"location": str(place)})
    identifier = NameIdentifier.of("apart", "orders")
    created = files.as_fileset_catalog().create_fileset(identifier, None, MANAGED, None, {})
    assert created.storage_locations() == {"unknown": f"file:{place}/orders"}
    assert (place / "orders").is_dir()


def test_a_slash_at_the_end_and_a_scheme_change_nothing_about_a_place(files: Catalog, tmp_path: Path) -> None:
    catalog = files.as_fileset_catalog()
    for name, written in (
        ("slash", f"{tmp_path}/slash/"),
        ("scheme", f"file:{tmp_path}/scheme"),
        ("slashes", f"file://{tmp_path}/slashes"),
    ):
        created = catalog.create_fileset(NameIdentifier.of("sales", name), None, MANAGED, written, {})
        assert created.storage_locations() == {"unknown": f"file:{tmp_path}/{name}"}


def test_named_locations_stand_beside_the_one_that_the_catalog_gives(files: Catalog, tmp_path: Path) -> None:
    """The given properties come back as they were: with several locations the default must be named."""
    given = {"default-location-name": "location1", "a": "1"}
    created = files.as_fileset_catalog().create_multiple_location_fileset(
        ORDERS, None, MANAGED, {"location1": str(tmp_path / "one"), "location2": str(tmp_path / "two")}, given
    )
    assert created.properties() == given
    assert created.storage_locations() == {
        "location1": f"file:{tmp_path}/one",
        "location2": f"file:{tmp_path}/two",
        "unknown": f"file:{tmp_path}/files/sales/orders",
    }
    for place in (tmp_path / "one", tmp_path / "two", tmp_path / "files" / "sales" / "orders"):
        assert place.is_dir()


def test_named_locations_of_catalog_and_schema_are_inherited(
    metalake: GravitinoClient, tmp_path: Path
) -> None:
    catalog = metalake.create_catalog(
        "named",
        Catalog.Type.FILESET,
        None,
        None,
        {"location-hot": f"{tmp_path}/hot", "location-cold": f"{tmp_path}/cold"},
    )
    catalog.as_schemas().create_schema("sales", None, {"location-cold": f"{tmp_path}/ice"})
    created = catalog.as_fileset_catalog().create_fileset(
        ORDERS, None, MANAGED, None, {"default-location-name": "hot"}
    )
    assert created.storage_locations() == {
        "hot": f"file:{tmp_path}/hot/sales/orders",
        "cold": f"file:{tmp_path}/ice/orders",
    }


@pytest.mark.parametrize("default", [None, "missing", ""])
def test_with_several_locations_the_default_must_name_one_of_them(
    files: Catalog, tmp_path: Path, default: str | None
) -> None:
    properties = {} if default is None else {"default-location-name": default}
    with pytest.raises(IllegalArgumentException):
        files.as_fileset_catalog().create_multiple_location_fileset(
            ORDERS, None, MANAGED, {"one": str(tmp_path / "one")}, properties
        )
    assert not (tmp_path / "one").exists()


def test_the_only_location_cannot_be_called_otherwise(files: Catalog) -> None:
    with pytest.raises(IllegalArgumentException):
        files.as_fileset_catalog().create_fileset(
            ORDERS, None, MANAGED, None, {"default-location-name": "other"}
        )


def test_the_default_can_be_altered_to_another_location_and_to_no_stranger(
    files: Catalog, tmp_path: Path
) -> None:
    catalog = files.as_fileset_catalog()
    catalog.create_multiple_location_fileset(
        ORDERS, None, MANAGED, {"one": str(tmp_path / "one")}, {"default-location-name": "one"}
    )
    assert catalog.get_file_location(ORDERS, "a") == f"file:{tmp_path}/one/a"
    catalog.alter_fileset(ORDERS, FilesetChange.set_property("default-location-name", "unknown"))
    assert catalog.get_file_location(ORDERS, "a") == f"file:{tmp_path}/files/sales/orders/a"
    for change in (
        FilesetChange.set_property("default-location-name", "missing"),
        FilesetChange.remove_property("default-location-name"),
    ):
        with pytest.raises(IllegalArgumentException):
            catalog.alter_fileset(ORDERS, change)


def test_placeholders_are_filled_in_from_the_path_and_from_properties(
    metalake: GravitinoClient, tmp_path: Path
) -> None:
    """A pattern is used as it is: no schema and no fileset is appended to it."""
    pattern = f"{tmp_path}/{{{{catalog}}}}/{{{{team}}}}/{{{{schema}}}}-{{{{fileset}}}}"
    catalog = metalake.create_catalog("pattern", Catalog.Type.FILESET, None, None, {"location": pattern})
    catalog.as_schemas().create_schema("sales", None, {})
    created = catalog.as_fileset_catalog().create_fileset(
        ORDERS, None, MANAGED, None, {"placeholder-team": "blue"}
    )
    assert created.storage_locations() == {"unknown": f"file:{tmp_path}/pattern/blue/sales-orders"}
    own = NameIdentifier.of("sales", "own")
    created = catalog.as_fileset_catalog().create_fileset(
        own, None, MANAGED, f"{tmp_path}/own/{{{{fileset}}}}", {"placeholder-team": "blue"}
    )
    assert created.storage_locations() == {"unknown": f"file:{tmp_path}/own/own"}
    for change in (
        FilesetChange.set_property("placeholder-team", "red"),
        FilesetChange.remove_property("placeholder-team"),
    ):
        with pytest.raises(IllegalArgumentException):
            catalog.as_fileset_catalog().alter_fileset(own, change)


@pytest.mark.parametrize("pattern", ["{{missing}}/x", "{{}}/x"])
def test_a_placeholder_that_nobody_fills_in_is_refused(files: Catalog, tmp_path: Path, pattern: str) -> None:
    with pytest.raises(IllegalArgumentException):
        files.as_fileset_catalog().create_fileset(ORDERS, None, MANAGED, f"{tmp_path}/{pattern}", {})


def test_a_fileset_that_has_no_location_from_anywhere_is_refused(metalake: GravitinoClient) -> None:
    catalog = metalake.create_catalog("bare", Catalog.Type.FILESET, None, None, {})
    catalog.as_schemas().create_schema("sales", None, {})
    for fileset_type in (MANAGED, EXTERNAL):
        with pytest.raises(IllegalArgumentException):
            catalog.as_fileset_catalog().create_fileset(ORDERS, None, fileset_type, None, {})


def test_a_fileset_may_not_hold_the_place_of_its_schema(files: Catalog, tmp_path: Path) -> None:
    files.as_schemas().create_schema("apart", None, {"location": str(tmp_path / "a" / "apart")})
    for place in (tmp_path / "a" / "apart", tmp_path / "a"):
        with pytest.raises(IllegalArgumentException):
            identifier = NameIdentifier.of("apart", "orders")
            files.as_fileset_catalog().create_fileset(identifier, None, MANAGED, str(place), {})


@pytest.mark.parametrize("place", ["/", "/etc/treeline", "relative/path", "/tmp/../etc/treeline"])
def test_a_place_that_is_no_place_for_files_of_users_is_refused(files: Catalog, place: str) -> None:
    for fileset_type in (MANAGED, EXTERNAL):
        with pytest.raises(IllegalArgumentException):
            files.as_fileset_catalog().create_fileset(ORDERS, None, fileset_type, place, {})
    with pytest.raises(NoSuchFilesetException):
        files.as_fileset_catalog().load_fileset(ORDERS)


def test_a_directory_that_is_there_is_used_and_keeps_what_it_holds(files: Catalog, tmp_path: Path) -> None:
    place = tmp_path / "there"
    place.mkdir()
    (place / "old.txt").write_text("old")
    files.as_fileset_catalog().create_fileset(ORDERS, None, MANAGED, str(place), {})
    assert (place / "old.txt").read_text() == "old"


def test_a_file_in_the_place_of_the_directory_is_refused_and_kept(files: Catalog, tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("content")
    with pytest.raises(IllegalArgumentException):
        files.as_fileset_catalog().create_fileset(ORDERS, None, MANAGED, str(place), {})
    assert place.read_text() == "content"
    with pytest.raises(NoSuchFilesetException):
        files.as_fileset_catalog().load_fileset(ORDERS)


def test_a_refused_create_leaves_no_directory(files: Catalog, tmp_path: Path) -> None:
    catalog = files.as_fileset_catalog()
    catalog.create_fileset(ORDERS, None, MANAGED, None, {})
    with pytest.raises(AlreadyExistsException):
        catalog.create_fileset(ORDERS, None, MANAGED, str(tmp_path / "second"), {})
    assert not (tmp_path / "second").exists()


def test_a_dropped_managed_fileset_takes_all_its_files_along(files: Catalog, tmp_path: Path) -> None:
    catalog = files.as_fileset_catalog()
    places = {"one": tmp_path / "one", "two": tmp_path / "two"}
    given = {name: str(place) for name, place in places.items()}
    catalog.create_multiple_location_fileset(ORDERS, None, MANAGED, given, {"default-location-name": "one"})
    for place in places.values():
        (place / "deep" / "deeper").mkdir(parents=True)
        (place / "deep" / "deeper" / "data.txt").write_text("data")
    assert catalog.drop_fileset(ORDERS) is True
    for place in places.values():
        gone(place)


def test_a_dropped_external_fileset_leaves_all_files_where_they_are(files: Catalog, tmp_path: Path) -> None:
    place = tmp_path / "foreign"
    place.mkdir()
    (place / "data.txt").write_text("data")
    catalog = files.as_fileset_catalog()
    catalog.create_fileset(ORDERS, None, EXTERNAL, str(place), {})
    assert catalog.drop_fileset(ORDERS) is True
    mark = NameIdentifier.of("sales", "mark")
    catalog.create_fileset(mark, None, MANAGED, None, {})
    catalog.drop_fileset(mark)
    gone(tmp_path / "files" / "sales" / "mark")
    assert (place / "data.txt").read_text() == "data", "what was dropped earlier has been seen to by now"


def test_a_cascade_removes_managed_files_and_the_schema_directory_once_it_is_empty(
    files: Catalog, tmp_path: Path
) -> None:
    catalog = files.as_fileset_catalog()
    catalog.create_fileset(ORDERS, None, MANAGED, None, {})
    foreign = NameIdentifier.of("sales", "foreign")
    (tmp_path / "foreign").mkdir()
    catalog.create_fileset(foreign, None, EXTERNAL, str(tmp_path / "foreign"), {})
    assert files.as_schemas().drop_schema("sales", True) is True
    gone(tmp_path / "files" / "sales" / "orders")
    gone(tmp_path / "files" / "sales")
    assert (tmp_path / "foreign").is_dir()


def test_a_cascade_keeps_a_schema_directory_that_holds_files_of_others(
    files: Catalog, tmp_path: Path
) -> None:
    files.as_fileset_catalog().create_fileset(ORDERS, None, MANAGED, None, {})
    (tmp_path / "files" / "sales" / "note.txt").write_text("mine")
    files.as_schemas().drop_schema("sales", True)
    gone(tmp_path / "files" / "sales" / "orders")
    assert (tmp_path / "files" / "sales" / "note.txt").read_text() == "mine"


@pytest.mark.parametrize("above", ["catalog", "metalake"])
def test_dropping_what_is_above_by_force_removes_managed_files(
    admin: GravitinoAdminClient, metalake: GravitinoClient, files: Catalog, tmp_path: Path, above: str
) -> None:
    files.as_fileset_catalog().create_fileset(ORDERS, None, MANAGED, None, {})
    place = tmp_path / "files" / "sales" / "orders"
    assert place.is_dir()
    if above == "catalog":
        assert metalake.drop_catalog("files", force=True) is True
    else:
        assert admin.drop_metalake(metalake.get_metalake().name(), force=True) is True
    gone(place)


def test_a_renamed_fileset_keeps_its_place(files: Catalog, tmp_path: Path) -> None:
    catalog = files.as_fileset_catalog()
    catalog.create_fileset(ORDERS, None, MANAGED, None, {})
    (tmp_path / "files" / "sales" / "orders" / "data.txt").write_text("data")
    altered = catalog.alter_fileset(ORDERS, FilesetChange.rename("renamed"))
    assert altered.storage_locations() == {"unknown": f"file:{tmp_path}/files/sales/orders"}
    assert (tmp_path / "files" / "sales" / "orders" / "data.txt").read_text() == "data"
    assert not (tmp_path / "files" / "sales" / "renamed").exists()


def test_with_file_system_operations_disabled_no_directory_is_made_and_a_place_needs_its_scheme(
    metalake: GravitinoClient, tmp_path: Path
) -> None:
    catalog = metalake.create_catalog(
        "remote", Catalog.Type.FILESET, None, None, {"disable-filesystem-ops": "true"}
    )
    catalog.as_schemas().create_schema("sales", None, {})
    filesets = catalog.as_fileset_catalog()
    created = filesets.create_fileset(ORDERS, None, MANAGED, "hdfs://cluster/orders", {})
    assert created.storage_locations() == {"unknown": "hdfs://cluster/orders"}
    local = NameIdentifier.of("sales", "local")
    filesets.create_fileset(local, None, MANAGED, f"file:{tmp_path}/local", {})
    assert not (tmp_path / "local").exists()
    with pytest.raises(IllegalArgumentException):
        filesets.create_fileset(NameIdentifier.of("sales", "bare"), None, MANAGED, f"{tmp_path}/bare", {})
    assert filesets.drop_fileset(ORDERS) is True


@pytest.mark.parametrize(
    ("sub_path", "tail"),
    [("/a.txt", "/a.txt"), ("a.txt", "/a.txt"), ("/a/b=1/c d.txt", "/a/b=1/c d.txt"), ("", ""), ("  ", "")],
)
def test_a_path_inside_a_fileset_is_its_place_and_the_path(
    files: Catalog, tmp_path: Path, sub_path: str, tail: str
) -> None:
    catalog = files.as_fileset_catalog()
    catalog.create_fileset(ORDERS, None, MANAGED, str(tmp_path / "here"), {})
    assert catalog.get_file_location(ORDERS, sub_path) == f"file:{tmp_path}/here{tail}"


def test_a_path_inside_one_of_several_places_is_found_by_name_or_by_default(
    files: Catalog, tmp_path: Path
) -> None:
    catalog = files.as_fileset_catalog()
    catalog.create_multiple_location_fileset(
        ORDERS, None, MANAGED, {"one": str(tmp_path / "one")}, {"default-location-name": "one"}
    )
    assert catalog.get_file_location(ORDERS, "/a") == f"file:{tmp_path}/one/a"
    assert catalog.get_file_location(ORDERS, "/a", "one") == f"file:{tmp_path}/one/a"
    assert catalog.get_file_location(ORDERS, "/a", "unknown") == f"file:{tmp_path}/files/sales/orders/a"
    with pytest.raises(NoSuchLocationNameException):
        catalog.get_file_location(ORDERS, "/a", "missing")


def test_renaming_inside_a_fileset_needs_a_path_to_rename(files: Catalog, tmp_path: Path) -> None:
    """What the client is about to do travels in a header, and stays with the client for its later calls."""
    catalog = files.as_fileset_catalog()
    catalog.create_fileset(ORDERS, None, MANAGED, str(tmp_path / "here"), {})
    for sub_path in ("", "/"):
        CallerContextHolder.set(
            CallerContext({"FilesetDataOperation": "RENAME", "InternalClientType": "PYTHON_GVFS"})
        )
        with pytest.raises(UnsupportedOperationException):
            catalog.get_file_location(ORDERS, sub_path)
    CallerContextHolder.set(CallerContext({"FilesetDataOperation": "RENAME"}))
    assert catalog.get_file_location(ORDERS, "/a") == f"file:{tmp_path}/here/a"
