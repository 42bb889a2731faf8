//! The parts that operations share: parameters, headers, and a response for each refusal.

use axum::http::StatusCode;
use serde_json::{Map, Value, json};

use super::reference;
use super::schemas::Schemas;

/// The statuses that a refusal or `304` may have.
const STATUSES: [u16; 16] = [
    304, 400, 401, 403, 404, 405, 406, 408, 409, 412, 413, 415, 422, 500, 502, 503,
];

/// All components.
pub(super) fn all(schemas: Schemas) -> Value {
    json!({
        "schemas": schemas.into_components(),
        "parameters": parameters(),
        "headers": headers(),
        "responses": responses(),
    })
}

/// The name of a status's response.
pub(super) fn response_name(status: u16) -> String {
    let reason = StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason());
    reason.unwrap_or("Other").replace(' ', "")
}

fn responses() -> Map<String, Value> {
    STATUSES
        .iter()
        .map(|status| (response_name(*status), response(*status)))
        .collect()
}

fn response(status: u16) -> Value {
    let mut headers = json!({ "X-Request-Id": reference("headers", "requestId") });
    if status == 304 {
        headers["ETag"] = reference("headers", "etag");
        return json!({ "description": description(status), "headers": headers });
    }
    if [409, 503].contains(&status) {
        headers["Retry-After"] = reference("headers", "retryAfter");
    }
    json!({
        "description": description(status),
        "headers": headers,
        "content": { "application/json": { "schema": reference("schemas", "Error") } },
    })
}

fn description(status: u16) -> &'static str {
    match status {
        304 => "The client holds this state already.",
        400 => "The request itself is wrong (code 1001).",
        401 => "The scheme of authentication is not one of ours (1011).",
        403 => "The principal may not do this (1008).",
        404 => "It, or something above it, is not there (1003).",
        405 => "The method, or the operation on this kind of catalog, is not supported (1006).",
        406 => "The version of the protocol that is asked for is not spoken (1001).",
        408 => "The body did not arrive in time (1001).",
        409 => {
            "The name is taken (1004), something is not empty (1005), not in use (1009) or in use (1010), or others \
             changed it in every attempt (1012, with `Retry-After`)."
        }
        412 => "A precondition does not hold: `If-Match` (1012), or `If-None-Match: *` (1004).",
        413 => "The body is too long (1001).",
        415 => "The body is not JSON (1001).",
        422 => "The `Idempotency-Key` stands for another request already (1001).",
        500 => "A defect of the server (1002).",
        502 => "An external system cannot be reached (1007).",
        _ => "The server cannot serve right now (1002, with `Retry-After`).",
    }
}

fn headers() -> Value {
    json!({
        "etag": {
            "description": "The strong tag of the entity's state: its id and version.",
            "schema": { "type": "string", "examples": ["\"481036337152-3\""] },
        },
        "location": {
            "description": "The path of the version that was linked.",
            "schema": { "type": "string" },
        },
        "requestId": {
            "description": "The request's id: the client's own if it sent a well-formed one.",
            "schema": { "type": "string" },
        },
        "retryAfter": {
            "description": "In seconds, where the same request may succeed a little later.",
            "schema": { "type": "string" },
        },
    })
}

fn parameters() -> Value {
    json!({
        "metalake": path("metalake", "The metalake's name."),
        "catalog": path("catalog", "The catalog's name."),
        "schema": path("schema", "The schema's name."),
        "fileset": path("fileset", "The fileset's name."),
        "model": path("model", "The model's name."),
        "alias": path("alias", "An alias of the version."),
        "version": {
            "name": "version",
            "in": "path",
            "required": true,
            "description": "The version's number.",
            "schema": { "type": "integer", "minimum": 0, "maximum": u32::MAX },
        },
        "details": flag("details", "Show whole entities and not only their names."),
        "force": flag("force", "Drop it although it is in use, with everything below it."),
        "cascade": flag("cascade", "Drop it with everything below it."),
        "subPath": query("sub_path", false, "The directory; the top by default."),
        "subPathRequired": query("sub_path", true, "The path below the location; may be empty."),
        "locationName": query("location_name", false, "Which location; the default one if there are several."),
        "uriName": query("uriName", false, "Which URI; the default one if there are several."),
        "filesetDataOperation": header("FilesetDataOperation", "What the client means to do, such as `RENAME`."),
        "ifMatch": header("If-Match", "Only if it is in one of these states: tags as `ETag` names them, or `*`."),
        "ifNoneMatch": header("If-None-Match", "Answer `304` if it is in one of these states."),
        "idempotencyKey": {
            "name": "Idempotency-Key",
            "in": "header",
            "required": false,
            "description": "The client's name for this request: sent again with it, it is carried out once.",
            "schema": { "type": "string", "minLength": 1, "maxLength": 256 },
        },
        "ifNoneMatchStar": {
            "name": "If-None-Match",
            "in": "header",
            "required": false,
            "description": "With `*`: a taken name fails as a precondition.",
            "schema": { "type": "string", "enum": ["*"] },
        },
    })
}

fn path(name: &str, description: &str) -> Value {
    json!({
        "name": name,
        "in": "path",
        "required": true,
        "description": description,
        "schema": { "type": "string", "minLength": 1 },
    })
}

fn flag(name: &str, description: &str) -> Value {
    json!({
        "name": name,
        "in": "query",
        "required": false,
        "description": description,
        "schema": { "type": "boolean", "default": false },
    })
}

fn query(name: &str, required: bool, description: &str) -> Value {
    json!({
        "name": name,
        "in": "query",
        "required": required,
        "description": description,
        "schema": { "type": "string" },
    })
}

fn header(name: &str, description: &str) -> Value {
    json!({
        "name": name,
        "in": "header",
        "required": false,
        "description": description,
        "schema": { "type": "string" },
    })
}
