//! The endpoints of the protocol that are not served yet. They are there for every method and say so, which clients
//! tell apart from a path that never was.

use axum::Router;
use axum::http::{HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;

use crate::app::App;
use crate::error::Refusal;

const SCHEMA: &str = "/api/metalakes/{metalake}/catalogs/{catalog}/schemas/{schema}";
const METALAKE: &str = "/api/metalakes/{metalake}";

/// Below a schema.
const IN_SCHEMA: &[&str] = &[
    "tables",
    "tables/{name}",
    "tables/{name}/partitions",
    "tables/{name}/partitions/{partition}",
    "views",
    "views/{name}",
    "topics",
    "topics/{name}",
    "functions",
    "functions/{name}",
];

/// Below a metalake.
const IN_METALAKE: &[&str] = &[
    "tags",
    "tags/{tag}",
    "tags/{tag}/objects",
    "tags/{tag}/{name}",
    "tags/{tag}/{name}/{associated}",
    "policies",
    "policies/{policy}",
    "policies/{policy}/objects",
    "objects/{type}/{name}/tags",
    "objects/{type}/{name}/tags/{tag}",
    "objects/{type}/{name}/policies",
    "objects/{type}/{name}/policies/{policy}",
    "objects/{type}/{name}/roles",
    "objects/{type}/{name}/statistics",
    "objects/{type}/{name}/statistics/partitions",
    "objects/{type}/{name}/credentials",
    "owners/{type}/{name}",
    "users",
    "users/{user}",
    "groups",
    "groups/{group}",
    "roles",
    "roles/{role}",
    "permissions/users/{user}/grant",
    "permissions/users/{user}/revoke",
    "permissions/groups/{group}/grant",
    "permissions/groups/{group}/revoke",
    "permissions/roles/{role}",
    "permissions/roles/{role}/{type}/{name}/grant",
    "permissions/roles/{role}/{type}/{name}/revoke",
    "jobs/templates",
    "jobs/templates/{template}",
    "jobs/runs",
    "jobs/runs/{run}",
];

/// Anywhere else.
const ELSEWHERE: &[&str] = &[
    "/api/lineage",
    "/api/bulk/metalakes/{metalake}/users/add",
    "/api/bulk/metalakes/{metalake}/users/remove",
    "/api/idp/users",
    "/api/idp/users/{user}",
    "/api/idp/groups",
    "/api/idp/groups/{group}",
    "/api/idp/groups/{group}/users",
];

/// The paths of all of them.
pub(crate) fn paths() -> impl Iterator<Item = String> {
    let in_schema = IN_SCHEMA.iter().map(|path| format!("{SCHEMA}/{path}"));
    let in_metalake = IN_METALAKE.iter().map(|path| format!("{METALAKE}/{path}"));
    in_schema
        .chain(in_metalake)
        .chain(ELSEWHERE.iter().map(|path| (*path).to_owned()))
}

/// A router that refuses at each of them.
pub(crate) fn routes() -> Router<App> {
    paths().fold(Router::new(), |router, path| router.route(&path, any(not_yet)))
}

async fn not_yet(uri: Uri) -> Response {
    let told = format!("`{}` is part of the protocol and not served yet", uri.path());
    let mut response = Refusal::method_not_allowed(told).into_response();
    response
        .headers_mut()
        .insert(header::ALLOW, HeaderValue::from_static(""));
    response
}
