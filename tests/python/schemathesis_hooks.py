"""Hooks of the generated requests: they lead most of them to things that are there.

A generator makes up names, and a made-up name ends at "not found" before anything interesting happens. So three of
four requests get the names of a tree that is made here beforehand, and made whole again after each write that was
taken. The fourth goes out as it was generated.
"""

from __future__ import annotations

import json
import os
import zlib
from typing import Any

import requests
import schemathesis

BASE = os.environ["TREELINE_URL"]
FILES = os.environ["TREELINE_FILES"]

NAMES = {"metalake": "prepared", "schema": "inside", "fileset": "orders", "model": "ranking", "version": "0"}
ALIAS = "stable"
# What the server calls a location, or a URI, that was given without a name.
UNNAMED = "unknown"
WRITES = ("PUT", "PATCH", "DELETE")

METALAKE = f"{BASE}/api/metalakes/{NAMES['metalake']}"
SCHEMAS = {name: f"{METALAKE}/catalogs/{name}/schemas" for name in ("files", "models")}
MODEL = f"{SCHEMAS['models']}/{NAMES['schema']}/models/{NAMES['model']}"

# What makes the tree, in order. A thing that is there already refuses, which is as good.
CREATES: list[tuple[str, dict[str, Any]]] = [
    (f"{BASE}/api/metalakes", {"name": NAMES["metalake"]}),
    (f"{METALAKE}/catalogs", {"name": "files", "type": "fileset", "properties": {"location": FILES}}),
    (f"{METALAKE}/catalogs", {"name": "models", "type": "model"}),
    (SCHEMAS["files"], {"name": NAMES["schema"]}),
    (SCHEMAS["models"], {"name": NAMES["schema"]}),
    (f"{SCHEMAS['files']}/{NAMES['schema']}/filesets", {"name": NAMES["fileset"]}),
    (f"{SCHEMAS['models']}/{NAMES['schema']}/models", {"name": NAMES["model"]}),
]


def make_whole() -> None:
    """Enables and creates whatever is disabled or missing, down to a version with its alias."""
    with requests.Session() as session:
        for path, body in CREATES:
            for switched in (METALAKE, f"{METALAKE}/catalogs/files", f"{METALAKE}/catalogs/models"):
                if path.startswith(f"{switched}/"):
                    session.patch(switched, json={"inUse": True})
            session.post(path, json=body)
        if session.get(f"{MODEL}/versions/0").status_code != 200:
            # Numbers are never given twice, so only a new model has a version 0 again.
            session.delete(MODEL)
            session.post(MODEL.rsplit("/", 1)[0], json={"name": NAMES["model"]})
            session.post(f"{MODEL}/versions", json={"uri": "s3://models/0"})
        if session.get(f"{MODEL}/aliases/{ALIAS}").status_code != 200:
            alias = {"@type": "updateAliases", "aliasesToAdd": [ALIAS]}
            session.put(f"{MODEL}/versions/0", json={"updates": [alias]})


def is_led(case: schemathesis.Case) -> bool:
    """Decides by what was generated, so that one seed always decides alike."""
    return zlib.crc32(json.dumps(case.path_parameters, sort_keys=True, default=str).encode()) % 4 != 0


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: schemathesis.Case, kwargs: dict[str, Any]) -> None:
    """Puts the names of the tree into the request, and takes out conditions that no state could meet."""
    if not case.path_parameters or not is_led(case):
        return
    below_models = "/models" in case.operation.path
    names = {**NAMES, "catalog": "models" if below_models else "files", "alias": ALIAS}
    for parameter in case.path_parameters:
        case.path_parameters[parameter] = names[parameter]
    for condition in ("If-Match", "If-None-Match"):
        if case.headers:
            case.headers.pop(condition, None)
    for chosen in ("location_name", "uriName"):
        if case.query and chosen in case.query:
            case.query[chosen] = UNNAMED


@schemathesis.hook
def after_call(
    context: schemathesis.HookContext, case: schemathesis.Case, response: schemathesis.Response
) -> None:
    """Undoes what a write that was taken has done to the tree."""
    if case.method.upper() in WRITES and response.status_code == 200:
        make_whole()


make_whole()
