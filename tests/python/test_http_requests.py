"""What the wire knows and the client cannot send: fields that it leaves out, names in paths, listings, probes."""

from __future__ import annotations

from pathlib import Path

import pytest
from gravitino import Catalog, GravitinoClient

from harness import Http, api


@pytest.fixture
def metalake_name(metalake: GravitinoClient) -> str:
    """The name of the test's own metalake."""
    return metalake.get_metalake().name()


@pytest.fixture
def sales(metalake_name: str, files: Catalog) -> str:
    """The path of the schema `sales` of the fileset catalog."""
    return api("metalakes", metalake_name, "catalogs", "files", "schemas", "sales")


@pytest.fixture
def prod(metalake_name: str, models: Catalog) -> str:
    """The path of the schema `prod` of the model catalog."""
    return api("metalakes", metalake_name, "catalogs", "models", "schemas", "prod")


def test_one_location_may_be_given_without_a_name(http: Http, sales: str, tmp_path: Path) -> None:
    body = {"name": "orders", "storageLocation": str(tmp_path / "here"), "properties": {"a": "b"}}
    fileset = http.post(f"{sales}/filesets", body).ok()["fileset"]
    assert fileset["type"] == "managed"
    assert fileset["storageLocation"] == f"file:{tmp_path}/here"
    assert fileset["storageLocations"] == {"unknown": f"file:{tmp_path}/here"}
    assert fileset["properties"] == {"a": "b", "default-location-name": "unknown"}


def test_a_location_without_a_name_stands_beside_named_ones(http: Http, sales: str, tmp_path: Path) -> None:
    body = {
        "name": "orders",
        "storageLocation": f"{tmp_path}/here",
        "storageLocations": {"there": f"{tmp_path}/there"},
        "properties": {"default-location-name": "there"},
    }
    fileset = http.post(f"{sales}/filesets", body).ok()["fileset"]
    assert fileset["storageLocation"] == f"file:{tmp_path}/here"
    assert fileset["storageLocations"] == {
        "unknown": f"file:{tmp_path}/here",
        "there": f"file:{tmp_path}/there",
    }


def test_the_type_of_a_fileset_is_read_in_any_case(http: Http, sales: str, tmp_path: Path) -> None:
    body = {"name": "orders", "type": "EXTERNAL", "storageLocation": f"{tmp_path}/here"}
    assert http.post(f"{sales}/filesets", body).ok()["fileset"]["type"] == "external"


def test_a_fileset_property_may_be_set_to_nothing_and_those_of_other_kinds_may_not(
    http: Http, sales: str
) -> None:
    http.post(f"{sales}/filesets", {"name": "orders"}).ok()
    empty = {"@type": "setProperty", "property": "a", "value": ""}
    assert http.put(f"{sales}/filesets/orders", empty).ok()["fileset"]["properties"]["a"] == ""
    http.put(sales, empty).fails(400, 1001)
    http.put(sales.rsplit("/schemas", 1)[0], empty).fails(400, 1001)
    http.put(sales.rsplit("/catalogs", 1)[0], empty).fails(400, 1001)


def test_names_with_slashes_and_equals_signs_are_one_segment_each(http: Http, prod: str) -> None:
    """The client percent-encodes a schema's name inside the body too, so these names never come from it."""
    schemas = prod.rsplit("/", 1)[0]
    name = "eu/day=1"
    http.post(schemas, {"name": name}).ok()
    path = f"{schemas}/eu%2Fday%3D1"
    assert http.get(path).ok()["schema"]["name"] == name
    http.get(f"{schemas}/eu/day=1").fails(404, 1003)
    http.post(f"{path}/models", {"name": "a/b=c"}).ok()
    http.post(f"{path}/models/a%2Fb%3Dc/versions", {"uri": "s3://m/0", "aliases": ["x/y"]}).ok()
    version = http.get(f"{path}/models/a%2fb=c/aliases/x%2Fy").ok()["modelVersion"]
    assert version["version"] == 0, "lower-case digits and a bare equals sign mean the same"
    assert http.get(schemas).ok()["identifiers"][-1]["name"] in (name, "prod")
    assert http.delete(f"{path}?cascade=true").ok()["dropped"] is True


def test_a_fileset_schema_takes_an_equals_sign_and_no_slash(http: Http, sales: str) -> None:
    schemas = sales.rsplit("/", 1)[0]
    http.post(schemas, {"name": "day=1"}).ok()
    assert http.get(f"{schemas}/day%3D1").ok()["schema"]["name"] == "day=1"
    http.post(schemas, {"name": "eu/day"}).fails(400, 1001)


@pytest.mark.parametrize(
    "name", ["", " ", "*", "a b", " a", "a ", "a%b", "a.b", "a:b", "-a", "=a", "/a", "ä", "a\nb"]
)
def test_a_reserved_or_ill_formed_schema_name_is_refused(
    http: Http, sales: str, prod: str, name: str
) -> None:
    for schema in (sales, prod):
        collection = schema.rsplit("/", 1)[0]
        http.post(collection, {"name": name}).fails(400, 1001)
        assert len(http.get(collection).ok()["identifiers"]) == 1


def test_a_name_that_no_rule_would_let_in_is_simply_not_there(http: Http, sales: str) -> None:
    schemas = sales.rsplit("/", 1)[0]
    for name in (
        "a%20b",
        "%20sales",
        "sales%20",
        "sales%00",
        "%C3%A4",
        "a.b",
        "a%3Ab",
        "%2E%2E",
        "x" * 300,
        "*",
    ):
        http.get(f"{schemas}/{name}").fails(404, 1003, "NoSuchSchemaException")


def test_bytes_that_are_no_text_are_refused_in_a_path(http: Http, sales: str) -> None:
    for segment in ("%FF", "%C3%28", "%ED%A0%80"):
        reply = http.get(f"{sales.rsplit('/', 1)[0]}/{segment}")
        assert reply.status in (400, 404)
        reply.fails(reply.status, {400: 1001, 404: 1003}[reply.status])


def test_files_are_listed_one_level_at_a_time(
    http: Http, metalake_name: str, sales: str, tmp_path: Path
) -> None:
    place = tmp_path / "here"
    http.post(f"{sales}/filesets", {"name": "orders", "storageLocation": str(place)}).ok()
    assert http.get(f"{sales}/filesets/orders/files").ok()["files"] == []
    (place / "deep").mkdir()
    (place / "deep" / "b=1.txt").write_text("12345")
    (place / "a.txt").write_text("123")
    files = {entry["name"]: entry for entry in http.get(f"{sales}/filesets/orders/files").ok()["files"]}
    assert set(files) == {"a.txt", "deep"}
    assert (files["a.txt"]["isDir"], files["a.txt"]["size"]) == (False, 3)
    assert (files["deep"]["isDir"], files["deep"]["size"]) == (True, 0)
    assert files["a.txt"]["lastModified"] == pytest.approx((place / "a.txt").stat().st_mtime * 1000, abs=1)
    assert files["a.txt"]["path"].startswith("/fileset/files/sales/orders")
    below = http.get(f"{sales}/filesets/orders/files?sub_path=%2Fdeep").ok()["files"]
    assert [(entry["name"], entry["size"]) for entry in below] == [("b=1.txt", 5)]
    assert below[0]["path"].startswith("/fileset/files/sales/orders/deep")


def test_files_are_not_listed_where_there_are_none_or_outside_of_the_fileset(
    http: Http, sales: str, tmp_path: Path
) -> None:
    listing = f"{sales}/filesets/orders/files"
    http.get(listing).fails(404, 1003, "NoSuchFilesetException")
    http.post(f"{sales}/filesets", {"name": "orders", "storageLocation": f"{tmp_path}/here"}).ok()
    (tmp_path / "secret").mkdir()
    (tmp_path / "here" / "link").symlink_to(tmp_path / "secret")
    for sub_path in ("missing", "..", "%2F..%2Fsecret", "link%2F..%2F..", "..%2F..%2F..%2Fetc"):
        http.get(f"{listing}?sub_path={sub_path}").fails(400, 1001)
    http.get(f"{listing}?location_name=missing").fails(404, 1003, "NoSuchLocationNameException")


def test_a_location_look_up_needs_its_path_even_if_it_is_empty(
    http: Http, sales: str, tmp_path: Path
) -> None:
    http.post(f"{sales}/filesets", {"name": "orders", "storageLocation": f"{tmp_path}/here"}).ok()
    location = f"{sales}/filesets/orders/location"
    assert http.get(f"{location}?sub_path=").ok()["fileLocation"] == f"file:{tmp_path}/here"
    assert http.get(f"{location}?sub_path=%2Fa+b").ok()["fileLocation"] == f"file:{tmp_path}/here/a b"
    http.get(location).fails(400, 1001)


def test_a_look_up_to_rename_the_whole_fileset_is_unsupported(http: Http, sales: str, tmp_path: Path) -> None:
    """400 would be no exception of the client's own family, so it is 405."""
    http.post(f"{sales}/filesets", {"name": "orders", "storageLocation": f"{tmp_path}/here"}).ok()
    for sub_path in ("", "%2F", "%20"):
        path = f"{sales}/filesets/orders/location?sub_path={sub_path}"
        http.get(path, FilesetDataOperation="RENAME").fails(405, 1006, "UnsupportedOperationException")
        http.get(path, FilesetDataOperation="LIST_STATUS").ok()


def test_a_version_may_be_linked_with_one_uri_without_a_name(http: Http, prod: str) -> None:
    http.post(f"{prod}/models", {"name": "ranking"}).ok()
    versions = f"{prod}/models/ranking/versions"
    assert http.post(versions, {"uri": "s3://m/0"}).ok() == {"code": 0}
    assert http.post(versions, {"uri": "s3://m/1", "uris": {"n1": "s3://n/1"}}).ok() == {"code": 0}
    assert http.get(f"{versions}/1").ok()["modelVersion"]["uris"] == {"unknown": "s3://m/1", "n1": "s3://n/1"}
    assert http.get(f"{versions}/1").ok()["modelVersion"]["uri"] == "s3://m/1"
    for nothing in (
        {},
        {"uris": {}},
        {"uri": ""},
        {"uri": " "},
        {"uris": {"n1": ""}},
        {"uris": {"": "s3://m"}},
    ):
        http.post(versions, nothing).fails(400, 1001)
    assert http.get(versions).ok()["versions"] == [0, 1]
    assert [info["version"] for info in http.get(f"{versions}?details=true").ok()["infos"]] == [0, 1]


@pytest.mark.parametrize("number", ["-1", "x", "1.0", "99999999999999999999", "%20", "0x0"])
def test_what_is_no_number_of_a_version_is_never_an_internal_error(
    http: Http, prod: str, number: str
) -> None:
    http.post(f"{prod}/models", {"name": "ranking"}).ok()
    reply = http.get(f"{prod}/models/ranking/versions/{number}")
    assert reply.status in (400, 404)
    reply.fails(reply.status, {400: 1001, 404: 1003}[reply.status])


def test_an_update_of_aliases_needs_one_of_its_lists(http: Http, prod: str) -> None:
    http.post(f"{prod}/models", {"name": "ranking"}).ok()
    http.post(f"{prod}/models/ranking/versions", {"uri": "s3://m/0"}).ok()
    version = f"{prod}/models/ranking/versions/0"
    http.put(version, {"@type": "updateAliases"}).fails(400, 1001)
    answer = http.put(version, {"@type": "updateAliases", "aliasesToAdd": ["b", "a"]}).ok()
    assert answer["modelVersion"]["aliases"] == ["a", "b"]


def test_trying_out_a_new_catalog_answers_200_also_with_an_error_and_keeps_nothing(
    http: Http, metalake_name: str, files: Catalog, tmp_path: Path
) -> None:
    """Its own convention: what the protocol knows as an answer of this probe comes as an envelope under 200."""
    path = api("metalakes", metalake_name, "catalogs", "testConnection")
    good = {"name": "fresh", "type": "fileset", "properties": {"location": str(tmp_path / "fresh")}}
    assert http.post(path, good).ok() == {"code": 0}
    (tmp_path / "file").write_text("in the way")
    blocked = {**good, "properties": {"location": str(tmp_path / "file")}}
    http.post(path, blocked).fails(200, 1007, "ConnectionFailedException")
    http.post(path, {**good, "name": "files"}).fails(200, 1004, "CatalogAlreadyExistsException")
    http.post(path, {**good, "name": "a b"}).fails(200, 1001)
    http.post(path, {**good, "type": "model"}).fails(405, 1006, "UnsupportedOperationException")
    missing = api("metalakes", "never", "catalogs", "testConnection")
    http.post(missing, good).fails(200, 1003, "NoSuchMetalakeException")
    assert [entry["name"] for entry in http.get(path.rsplit("/", 1)[0]).ok()["identifiers"]] == ["files"]
    assert not (tmp_path / "fresh").exists()


def test_trying_out_a_catalog_needs_no_body_and_takes_one_with_changes(
    http: Http, metalake_name: str, files: Catalog, models: Catalog
) -> None:
    catalogs = api("metalakes", metalake_name, "catalogs")
    change = {"updates": [{"@type": "setProperty", "property": "a", "value": "1"}]}
    for body in (None, {"updates": []}, change):
        assert http.post(f"{catalogs}/files/testConnection", body).ok() == {"code": 0}
        reply = http.post(f"{catalogs}/models/testConnection", body)
        reply.fails(405, 1006, "UnsupportedOperationException")
    http.post(f"{catalogs}/missing/testConnection").fails(200, 1003, "NoSuchCatalogException")
    http.send("PATCH", f"{catalogs}/files", {"inUse": False}).ok()
    reply = http.post(f"{catalogs}/files/testConnection", change)
    reply.fails(200, 1009, "CatalogNotInUseException")


def test_closing_is_answered_with_success(http: Http) -> None:
    assert http.send("CLOSE", "/").status == 200
