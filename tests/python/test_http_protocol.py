"""The conventions of the protocol that the client never tests: media types, methods, unknown paths, envelopes."""

from __future__ import annotations

import pytest
from gravitino import Catalog, GravitinoClient

from harness import Http, api, unique

V1 = "application/vnd.gravitino.v1+json"


@pytest.mark.parametrize(
    "accept", [None, "*/*", "application/json", V1, f"text/html, {V1};q=0.5", "text/html"]
)
def test_any_accept_header_without_another_version_is_served(http: Http, accept: str | None) -> None:
    headers = {} if accept is None else {"Accept": accept}
    answer = http.get(api("version"), **headers).ok()
    assert all(isinstance(answer["version"][key], str) for key in ("version", "compileDate", "gitCommit"))


@pytest.mark.parametrize("version", ["v0", "v2", "v9", "v99999999999999999999"])
def test_another_version_of_the_media_type_is_not_acceptable(http: Http, version: str) -> None:
    for path in (api("version"), api("metalakes"), api("metalakes", "missing")):
        http.get(path, Accept=f"application/vnd.gravitino.{version}+json").fails(406, 1001)


@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=utf-8", V1])
def test_a_body_may_be_called_json_in_each_of_its_ways(http: Http, content_type: str) -> None:
    http.post(api("metalakes"), {"name": unique("metalake")}, Content_Type=content_type).ok()


@pytest.mark.parametrize("content_type", ["text/plain", "application/xml", "multipart/form-data"])
def test_a_body_of_another_type_is_refused(http: Http, content_type: str) -> None:
    name = unique("metalake")
    http.post(api("metalakes"), {"name": name}, Content_Type=content_type).fails(415, 1001)
    http.get(api("metalakes", name)).fails(404, 1003, "NoSuchMetalakeException")


@pytest.mark.parametrize(
    "path",
    [
        "/api/nothing",
        "/api",
        "/nothing",
        "/api/metalakes/m/nothing",
        "/api/metalakes/m/catalogs/c/schemas/s/x",
    ],
)
def test_an_unknown_path_is_not_found(http: Http, path: str) -> None:
    for method in ("GET", "POST", "PUT", "DELETE", "PATCH"):
        http.send(method, path).fails(404, 1003)


def test_a_wrong_method_is_unsupported(http: Http) -> None:
    for method, path in (
        ("DELETE", api("metalakes")),
        ("PATCH", api("metalakes")),
        ("POST", api("metalakes", "m")),
        ("POST", api("version")),
        ("PUT", api("metalakes", "m", "catalogs")),
        ("PATCH", api("metalakes", "m", "catalogs", "c", "schemas", "s")),
        ("DELETE", api("metalakes", "m", "catalogs", "c", "schemas", "s", "models", "o", "versions")),
    ):
        http.send(method, path).fails(405, 1006, "UnsupportedOperationException")


def test_what_comes_later_is_unsupported(http: Http) -> None:
    """Whether or not what stands in the path is there: nothing is looked up for it."""
    schema = ("metalakes", "m", "catalogs", "c", "schemas", "s")
    for method, path in (
        ("GET", api(*schema, "tables")),
        ("POST", api(*schema, "tables")),
        ("GET", api(*schema, "tables", "t")),
        ("GET", api(*schema, "tables", "t", "partitions")),
        ("GET", api(*schema, "views")),
        ("GET", api(*schema, "topics")),
        ("POST", api(*schema, "functions")),
        ("GET", api("metalakes", "m", "tags")),
        ("POST", api("metalakes", "m", "policies")),
        ("GET", api("metalakes", "m", "objects", "catalog", "c", "tags")),
        ("GET", api("metalakes", "m", "owners", "catalog", "c")),
        ("PUT", api("metalakes", "m", "owners", "catalog", "c")),
        ("POST", api("metalakes", "m", "users")),
        ("GET", api("metalakes", "m", "groups")),
        ("GET", api("metalakes", "m", "roles", "r")),
        ("PUT", api("metalakes", "m", "permissions", "users", "u", "grant")),
        ("GET", api("metalakes", "m", "jobs", "templates")),
        ("POST", api("metalakes", "m", "jobs", "runs")),
        ("GET", api("metalakes", "m", "objects", "table", "c.s.t", "statistics")),
        ("GET", api("metalakes", "m", "objects", "fileset", "c.s.f", "credentials")),
    ):
        http.send(method, path).fails(405, 1006, "UnsupportedOperationException")


def test_health_answers_at_each_of_its_paths(http: Http) -> None:
    for base in ("/api/health", "/health"):
        for part, checks in (
            ("", {"httpServer", "entityStore"}),
            ("/live", {"httpServer"}),
            ("/ready", {"entityStore"}),
        ):
            answer = http.get(base + part).ok()
            assert answer["status"] == "up"
            assert {check["name"] for check in answer["checks"]} == checks
            assert {check["status"] for check in answer["checks"]} == {"up"}


def test_configs_are_a_plain_object_without_an_envelope(http: Http) -> None:
    configs = http.get("/configs").json()
    assert configs["gravitino.authenticators"] == ["simple"]
    assert configs["gravitino.authorization.enable"] is False
    assert configs["gravitino.schema.separator"] == ":"
    assert "code" not in configs


def test_a_scheme_that_says_nothing_of_the_user_is_unauthorized(http: Http) -> None:
    for credentials in ("Bearer abc", "Negotiate abc", "Digest abc"):
        http.get(api("metalakes"), Authorization=credentials).fails(401, 1011, "UnauthorizedException")
    http.get("/api/health/live", Authorization="Bearer abc").ok()


@pytest.mark.parametrize("credentials", ["Basic !!!", "Basic ", "Basic OnBhc3N3b3Jk"])
def test_basic_credentials_without_a_readable_user_mean_anonymous(http: Http, credentials: str) -> None:
    answer = http.post(api("metalakes"), {"name": unique("metalake")}, Authorization=credentials).ok()
    assert answer["metalake"]["audit"]["creator"] == "anonymous"


def test_null_means_absent_and_no_null_is_written(http: Http) -> None:
    body = {"name": unique("metalake"), "comment": None, "properties": None}
    created = http.post(api("metalakes"), body).ok()["metalake"]
    assert "comment" not in created
    assert set(created["audit"]) == {"creator", "createTime"}


def test_flags_are_read_in_any_case_and_anything_else_means_no(http: Http, metalake: GravitinoClient) -> None:
    """The Python client writes `True` and `False`."""
    name = metalake.get_metalake().name()
    for value in ("False", "false", "yes", "1", ""):
        http.delete(api("metalakes", name) + f"?force={value}").fails(409, 1010, "MetalakeInUseException")
    assert http.delete(api("metalakes", name) + "?force=TRUE").ok()["dropped"] is True


def test_a_create_answers_200_and_never_201(http: Http) -> None:
    assert http.post(api("metalakes"), {"name": unique("metalake")}).status == 200


def test_lists_carry_identifiers_with_their_namespace(
    http: Http, metalake: GravitinoClient, files: Catalog
) -> None:
    name = metalake.get_metalake().name()
    catalogs = http.get(api("metalakes", name, "catalogs")).ok()
    assert catalogs["identifiers"] == [{"namespace": [name], "name": "files"}]
    schemas = http.get(api("metalakes", name, "catalogs", "files", "schemas")).ok()
    assert schemas["identifiers"] == [{"namespace": [name, "files"], "name": "sales"}]
    filesets = http.get(api("metalakes", name, "catalogs", "files", "schemas", "sales", "filesets")).ok()
    assert filesets["identifiers"] == []


def test_each_missing_parent_is_named_by_its_own_type(
    http: Http, metalake: GravitinoClient, files: Catalog
) -> None:
    """What the client folds into one class the protocol tells apart."""
    name = metalake.get_metalake().name()
    here, gone = ("metalakes", name, "catalogs"), ("metalakes", "never", "catalogs")
    catalog, schema, fileset = "NoSuchCatalogException", "NoSuchSchemaException", "NoSuchFilesetException"
    for path, kind in (
        (api(*gone), "NoSuchMetalakeException"),
        (api(*gone, "c"), catalog),
        (api(*gone, "c", "schemas"), catalog),
        (api(*gone, "c", "schemas", "s"), catalog),
        (api(*here, "gone", "schemas", "s", "filesets"), catalog),
        (api(*here, "gone", "schemas", "s", "filesets", "f"), catalog),
        (api(*here, "gone", "schemas", "s", "models", "o", "versions"), catalog),
        (api(*here, "gone", "schemas", "s", "models", "o", "versions", "0"), catalog),
        (api(*here, "files", "schemas", "gone"), schema),
        (api(*here, "files", "schemas", "gone", "filesets"), schema),
        (api(*here, "files", "schemas", "gone", "filesets", "f"), fileset),
        (api(*here, "files", "schemas", "sales", "filesets", "gone"), fileset),
    ):
        http.get(path).fails(404, 1003, kind)
    http.delete(api(*here, "gone", "schemas", "s")).fails(404, 1003, catalog)
    http.delete(api(*here, "gone", "schemas", "s", "filesets", "f")).fails(404, 1003, catalog)
    assert http.delete(api(*gone, "c")).ok()["dropped"] is False
    assert http.delete(api(*here, "files", "schemas", "gone", "filesets", "f")).ok()["dropped"] is False


def test_each_refusal_of_a_drop_or_a_clash_has_its_own_type(
    http: Http, metalake: GravitinoClient, files: Catalog
) -> None:
    name = metalake.get_metalake().name()
    catalog = api("metalakes", name, "catalogs", "files")
    schema = catalog + "/schemas/sales"
    http.post(schema + "/filesets", {"name": "orders"}).ok()
    http.post(schema + "/filesets", {"name": "orders"}).fails(409, 1004, "FilesetAlreadyExistsException")
    http.delete(schema).fails(409, 1005, "NonEmptySchemaException")
    http.delete(catalog).fails(409, 1010, "CatalogInUseException")
    assert http.send("PATCH", catalog, {"inUse": False}).ok() == {"code": 0}
    http.delete(catalog).fails(409, 1005, "NonEmptyCatalogException")
    http.get(schema).fails(409, 1009, "CatalogNotInUseException")
    http.send("PATCH", api("metalakes", name), {"inUse": False}).ok()
    http.delete(api("metalakes", name)).fails(409, 1005, "NonEmptyMetalakeException")
    http.get(schema).fails(409, 1009, "MetalakeNotInUseException")


def test_the_description_of_the_interface_and_its_page_are_served_from_here(http: Http) -> None:
    document = http.get("/openapi.json").json()
    assert document["openapi"].startswith("3.")
    assert "/api/metalakes/{metalake}" in document["paths"]
    page = http.get("/docs")
    assert page.status in (200, 301, 302, 307, 308)
    assert b"http://" not in page.body and b"https://" not in page.body, "nothing is loaded from outside"


def test_metrics_are_served_at_both_paths_in_the_text_form(http: Http) -> None:
    for path in ("/metrics", "/prometheus/metrics"):
        reply = http.get(path)
        assert reply.status == 200
        assert reply.headers.get_content_type() == "text/plain"
        assert b"# TYPE" in reply.body
