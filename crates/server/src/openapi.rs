//! The OpenAPI document, and a page to read it.
//!
//! The document is built from the table of operations and the types of the wire, once, when it is first asked for.
//! Every operation lists every status that it can answer with.

use std::sync::OnceLock;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use treeline_core::Kind;

use crate::envelope::JSON;
use crate::operations::{Operation, Verb, operations};

mod components;
mod schemas;

use schemas::Schemas;

/// `GET /openapi.json`.
pub(crate) async fn document() -> Response {
    static DOCUMENT: OnceLock<Bytes> = OnceLock::new();
    let text = DOCUMENT.get_or_init(|| build().to_string().into());
    ([(header::CONTENT_TYPE, JSON)], Body::from(text.clone())).into_response()
}

/// `GET /docs`. The page is one file of ours, and its policy lets it load nothing from elsewhere.
pub(crate) async fn page() -> Response {
    const POLICY: &str =
        "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    ];
    (headers, include_str!("openapi/docs.html")).into_response()
}

/// The whole document.
fn build() -> Value {
    let mut schemas = Schemas::new();
    let mut paths = Map::new();
    for operation in operations() {
        let described = describe(&operation, &mut schemas);
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method.as_str().to_ascii_lowercase()] = described;
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Treeline",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "A metadata catalog",
            "description": "The REST protocol of Apache Gravitino as this server speaks it, with tags and preconditions.",
        },
        "paths": paths,
        "components": components::all(schemas),
    })
}

fn describe(operation: &Operation, schemas: &mut Schemas) -> Value {
    let verb = operation.verb;
    let mut described = json!({
        "operationId": operation.id,
        "summary": summary(operation),
        "tags": [tag(verb)],
        "parameters": parameters(operation),
    });
    if let Some((schema, example, required)) = body(verb, schemas) {
        let content = json!({ "application/json": { "schema": schema, "example": example } });
        described["requestBody"] = json!({ "required": required, "content": content });
    }
    described["responses"] = responses(operation, schemas);
    described
}

fn summary(operation: &Operation) -> String {
    let mut text = operation.id.replace('-', " ");
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text
}

fn tag(verb: Verb) -> &'static str {
    match verb {
        Verb::List(kind)
        | Verb::Create(kind)
        | Verb::Load(kind)
        | Verb::Alter(kind)
        | Verb::Switch(kind)
        | Verb::Drop(kind) => kind.as_str(),
        Verb::TestNew | Verb::TestExisting => Kind::Catalog.as_str(),
        Verb::FileLocation | Verb::Files => Kind::Fileset.as_str(),
        Verb::Uri => Kind::ModelVersion.as_str(),
        Verb::Version
        | Verb::Health
        | Verb::Me
        | Verb::Configs
        | Verb::SecretProviders
        | Verb::LocalLocks => "server",
    }
}

/// Those in the path, then those of the verb.
fn parameters(operation: &Operation) -> Vec<Value> {
    let named = operation
        .path
        .split('/')
        .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    let of_verb: &[&str] = match operation.verb {
        Verb::List(Kind::Catalog | Kind::ModelVersion) => &["details"],
        Verb::List(Kind::Metalake | Kind::Schema | Kind::Fileset | Kind::Model) => &[],
        Verb::Create(_) => &["ifNoneMatchStar", "idempotencyKey"],
        Verb::Load(_) => &["ifNoneMatch"],
        Verb::Alter(_) | Verb::Switch(_) => &["ifMatch", "idempotencyKey"],
        Verb::Drop(Kind::Metalake | Kind::Catalog) => &["force", "ifMatch", "idempotencyKey"],
        Verb::Drop(Kind::Schema) => &["cascade", "ifMatch", "idempotencyKey"],
        Verb::Drop(Kind::Fileset | Kind::Model | Kind::ModelVersion) => &["ifMatch", "idempotencyKey"],
        Verb::FileLocation => &["subPathRequired", "locationName", "filesetDataOperation"],
        Verb::Files => &["subPath", "locationName"],
        Verb::Uri => &["uriName"],
        Verb::TestNew
        | Verb::TestExisting
        | Verb::Version
        | Verb::Health
        | Verb::Me
        | Verb::Configs
        | Verb::SecretProviders
        | Verb::LocalLocks => &[],
    };
    named
        .chain(of_verb.iter().copied())
        .map(|name| reference("parameters", name))
        .collect()
}

/// The schema of the body, an example, and whether there must be one.
fn body(verb: Verb, schemas: &mut Schemas) -> Option<(Value, Value, bool)> {
    match verb {
        Verb::Create(kind) => {
            let docs = schemas.of_create(kind);
            Some((docs.schema, docs.example, true))
        }
        Verb::Alter(kind) => {
            let docs = schemas.of_alter(kind);
            Some((docs.schema, docs.example, true))
        }
        Verb::Switch(_) => {
            let docs = schemas.of_switch();
            Some((docs.schema, docs.example, true))
        }
        Verb::TestNew => {
            let docs = schemas.of_create(Kind::Catalog);
            Some((docs.schema, docs.example, true))
        }
        Verb::TestExisting => {
            let docs = schemas.of_alter(Kind::Catalog);
            Some((docs.schema, docs.example, false))
        }
        Verb::List(_)
        | Verb::Load(_)
        | Verb::Drop(_)
        | Verb::FileLocation
        | Verb::Files
        | Verb::Uri
        | Verb::Version
        | Verb::Health
        | Verb::Me
        | Verb::Configs
        | Verb::SecretProviders
        | Verb::LocalLocks => None,
    }
}

fn responses(operation: &Operation, schemas: &mut Schemas) -> Value {
    let success = schemas.of_success(operation.verb);
    let content = match success.example {
        Some(example) => json!({ "schema": success.schema, "example": example }),
        None => json!({ "schema": success.schema }),
    };
    let mut headers = json!({ "X-Request-Id": reference("headers", "requestId") });
    if success.tagged {
        headers["ETag"] = reference("headers", "etag");
    }
    if operation.verb == Verb::Create(Kind::ModelVersion) {
        headers["Location"] = reference("headers", "location");
    }
    let answered = json!({
        "description": "Done.",
        "headers": headers,
        "content": { "application/json": content },
    });
    let mut responses = json!({ "200": answered });
    for status in refusals(operation) {
        responses[status.to_string()] = reference("responses", &components::response_name(status));
    }
    if operation.verb == Verb::Health {
        responses["503"] = responses["200"].clone();
        responses["503"]["description"] = "Something is down.".into();
    }
    responses
}

/// Every status but 200 that an operation can answer with.
fn refusals(operation: &Operation) -> Vec<u16> {
    const ANY: [u16; 3] = [405, 500, 503];
    const ON_THE_API: [u16; 3] = [400, 401, 406];
    const WITH_A_BODY: [u16; 3] = [408, 413, 415];
    let below_a_metalake: &[u16] = &[404, 409];
    let of_verb: &[u16] = match operation.verb {
        Verb::List(Kind::Metalake)
        | Verb::Version
        | Verb::Me
        | Verb::Health
        | Verb::Configs
        | Verb::SecretProviders
        | Verb::LocalLocks => &[],
        Verb::Create(Kind::Metalake) => &[409, 412, 422],
        Verb::Load(Kind::Metalake) => &[304, 404],
        Verb::Load(_) => &[304, 404, 409],
        Verb::Create(Kind::Catalog) => &[404, 409, 412, 422, 502],
        Verb::Create(_) | Verb::Alter(_) | Verb::Switch(_) | Verb::Drop(_) => &[404, 409, 412, 422],
        Verb::List(_) | Verb::FileLocation | Verb::Files | Verb::Uri => below_a_metalake,
        Verb::TestNew | Verb::TestExisting => &[404, 409, 502],
    };
    let is_open = matches!(
        operation.verb,
        Verb::Health | Verb::Configs | Verb::SecretProviders
    );
    let has_body = [Method::POST, Method::PUT, Method::PATCH].contains(&operation.method);
    let mut statuses: Vec<u16> = ANY.into_iter().chain(of_verb.iter().copied()).collect();
    if !is_open {
        statuses.extend(ON_THE_API);
    }
    if operation.method == Method::DELETE {
        // It takes no body, but one that is sent along goes into the fingerprint of a named request.
        statuses.extend([408, 413]);
    }
    if has_body {
        statuses.extend(WITH_A_BODY);
    }
    statuses.sort_unstable();
    statuses
}

/// A reference to a component.
fn reference(section: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{section}/{name}") })
}

#[cfg(test)]
mod tests;
