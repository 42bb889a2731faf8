"""Tags of an entity's state, and what a request may demand of it: beyond what the client knows."""

from __future__ import annotations

from typing import Any

import pytest
from gravitino import Catalog, GravitinoClient

from harness import Http, api, unique


def comment(text: str) -> dict[str, Any]:
    """An update that every kind with a comment takes."""
    return {"@type": "updateComment", "newComment": text}


@pytest.fixture
def model(metalake: GravitinoClient, models: Catalog, http: Http) -> str:
    """The path of a model."""
    collection = api(
        "metalakes", metalake.get_metalake().name(), "catalogs", "models", "schemas", "prod", "models"
    )
    http.post(collection, {"name": "ranking"}).ok()
    return f"{collection}/ranking"


def tag(http: Http, path: str) -> str:
    """The tag that a load answers."""
    reply = http.get(path)
    reply.ok()
    return reply.headers["ETag"]


def test_every_entity_has_a_strong_tag(
    http: Http, metalake: GravitinoClient, files: Catalog, model: str
) -> None:
    http.post(model + "/versions", {"uri": "s3://models/0", "aliases": ["stable"]}).ok()
    name = metalake.get_metalake().name()
    schema = api("metalakes", name, "catalogs", "files", "schemas", "sales")
    http.post(schema + "/filesets", {"name": "orders"}).ok()
    tags = [
        tag(http, path)
        for path in (
            api("metalakes", name),
            api("metalakes", name, "catalogs", "files"),
            schema,
            schema + "/filesets/orders",
            model,
            model + "/versions/0",
        )
    ]
    assert all(text.startswith('"') and text.endswith('"') for text in tags), tags
    assert len(set(tags)) == len(tags)
    assert tag(http, model + "/aliases/stable") == tags[-1], "an alias is another way to the same entity"


def test_the_answer_of_a_write_carries_the_tag_that_a_load_then_has(http: Http, model: str) -> None:
    collection, name = model.rsplit("/", 1)[0], unique("model")
    created = http.post(collection, {"name": name})
    assert created.headers["ETag"] == tag(http, f"{collection}/{name}")
    altered = http.put(f"{collection}/{name}", comment("after"))
    assert altered.headers["ETag"] == tag(http, f"{collection}/{name}")
    assert altered.headers["ETag"] != created.headers["ETag"]


def test_a_change_that_changes_nothing_keeps_the_tag_and_the_audit(http: Http, model: str) -> None:
    http.put(model, comment("same"), {"@type": "setProperty", "property": "a", "value": "1"}).ok()
    before, entity = tag(http, model), http.get(model).ok()["model"]
    for nothing in (
        [],
        [comment("same")],
        [{"@type": "rename", "newName": "ranking"}],
        [{"@type": "removeProperty", "property": "missing"}],
        [
            {"@type": "setProperty", "property": "a", "value": "2"},
            {"@type": "setProperty", "property": "a", "value": "1"},
        ],
    ):
        reply = http.put(model, *nothing)
        assert reply.ok()["model"] == entity, nothing
        assert reply.headers["ETag"] == before, nothing


def test_if_match_lets_a_write_through_only_on_the_state_that_it_names(http: Http, model: str) -> None:
    old = tag(http, model)
    http.put(model, comment("first"), If_Match=old).ok()
    new = tag(http, model)
    refused = http.put(model, comment("second"), If_Match=old).fails(412, 1012)
    assert {"expected", "actual"} <= set(refused), refused
    http.delete(model, If_Match=old).fails(412, 1012)
    assert http.get(model).ok()["model"]["comment"] == "first"
    http.put(model, comment("third"), If_Match="*").ok()
    assert http.delete(model, If_Match=tag(http, model)).ok()["dropped"] is True
    assert new != old


def test_if_match_goes_on_a_switch_too(http: Http, metalake: GravitinoClient, models: Catalog) -> None:
    path = api("metalakes", metalake.get_metalake().name(), "catalogs", "models")
    old = tag(http, path)
    http.send("PATCH", path, {"inUse": False}, If_Match=old).ok()
    http.send("PATCH", path, {"inUse": True}, If_Match=old).fails(412, 1012)
    assert http.get(path).ok()["catalog"]["properties"]["in-use"] == "false"


def test_if_match_on_what_is_not_there_is_not_found(http: Http, model: str) -> None:
    old = tag(http, model)
    missing = model + "x"
    http.put(missing, comment("x"), If_Match=old).fails(404, 1003, "NoSuchModelException")
    http.delete(missing, If_Match=old).fails(404, 1003, "NoSuchModelException")


def test_a_successor_of_the_name_never_has_the_tag_of_what_was_there(http: Http, model: str) -> None:
    """Both are at their first version: the tag names the row as well."""
    old = tag(http, model)
    http.delete(model, If_Match=old).ok()
    http.post(model.rsplit("/", 1)[0], {"name": "ranking"}).ok()
    assert tag(http, model) != old
    http.delete(model, If_Match=old).fails(412, 1012)
    http.get(model).ok()


def test_if_none_match_of_a_create_turns_a_clash_into_a_failed_precondition(http: Http, model: str) -> None:
    collection = model.rsplit("/", 1)[0]
    http.post(collection, {"name": "ranking"}, If_None_Match="*").fails(412, 1004)
    http.post(collection, {"name": "ranking"}).fails(409, 1004, "ModelAlreadyExistsException")
    http.post(collection, {"name": "fresh"}, If_None_Match="*").ok()


@pytest.mark.parametrize("value", ["nonsense", '"1"', 'W/"1-1"', '"1-1'])
def test_a_condition_that_cannot_be_read_is_refused_and_not_passed_over(
    http: Http, model: str, value: str
) -> None:
    http.put(model, comment("x"), If_Match=value).fails(400, 1001)
    assert "comment" not in http.get(model).ok()["model"]
