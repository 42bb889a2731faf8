//! Every route on one page.

use axum::Router;
use axum::http::{Method, Uri};
use axum::middleware;
use axum::routing::{MethodRouter, any, get, patch, post};
use treeline_core::kinds::{Catalog, Fileset, Metalake, Model, ModelVersion, Schema, SwitchableChange};
use treeline_core::{Kind, Payload};

use crate::app::App;
use crate::entity_routes::{alter, create, drop, list, load, switch};
use crate::error::Refusal;
use crate::gate::gate;
use crate::operations::{alias_item, collection, item};
use crate::wire::{Create, Wire};
use crate::{kinds, later, local_locks, metrics, openapi, system};

/// The routes of a server with this state.
pub fn router(app: App) -> Router {
    metrics::install();
    Router::new()
        .merge(entities())
        .merge(models())
        .merge(server())
        .merge(later::routes())
        .fallback(unknown)
        .method_not_allowed_fallback(not_allowed)
        .layer(middleware::from_fn_with_state(app.clone(), gate))
        .with_state(app)
}

/// Metalakes, catalogs, schemas and filesets.
fn entities() -> Router<App> {
    let catalog = item(Kind::Catalog);
    let fileset = item(Kind::Fileset);
    Router::new()
        .route(&collection(Kind::Metalake), many::<Metalake>())
        .route(
            &item(Kind::Metalake),
            one::<Metalake>().merge(switched::<Metalake>()),
        )
        .route(&collection(Kind::Catalog), many::<Catalog>())
        .route(&catalog, one::<Catalog>().merge(switched::<Catalog>()))
        // A catalog may be called `testConnection`: there the literal path wins, and has the verbs of both.
        .route(
            &format!("{}/testConnection", collection(Kind::Catalog)),
            one::<Catalog>()
                .merge(switched::<Catalog>())
                .post(kinds::test_new),
        )
        .route(&format!("{catalog}/testConnection"), post(kinds::test_existing))
        .route(&collection(Kind::Schema), many::<Schema>())
        .route(&item(Kind::Schema), one::<Schema>())
        .route(&collection(Kind::Fileset), many::<Fileset>())
        .route(&fileset, one::<Fileset>())
        .route(&format!("{fileset}/location"), get(kinds::location))
        .route(&format!("{fileset}/files"), get(kinds::files))
}

/// Models and their versions, by number and by alias.
fn models() -> Router<App> {
    let version = item(Kind::ModelVersion);
    let by_alias = get(kinds::load_by_alias)
        .put(kinds::alter_by_alias)
        .delete(kinds::drop_by_alias);
    Router::new()
        .route(&collection(Kind::Model), many::<Model>())
        .route(&item(Kind::Model), one::<Model>())
        .route(
            &collection(Kind::ModelVersion),
            get(kinds::list_versions).post(kinds::link),
        )
        .route(&version, one::<ModelVersion>())
        .route(&alias_item(), by_alias)
        .route(&format!("{version}/uri"), get(kinds::uri))
        .route(&format!("{}/uri", alias_item()), get(kinds::uri_by_alias))
}

/// What is about the server.
fn server() -> Router<App> {
    Router::new()
        .route("/api/version", get(system::version))
        .route("/api/authn/me", get(system::me))
        .route("/api/treeline/locks", get(local_locks::list))
        .route("/api/health", get(system::health))
        .route("/api/health/live", get(system::live))
        .route("/api/health/ready", get(system::ready))
        .route("/health", get(system::health))
        .route("/health/live", get(system::live))
        .route("/health/ready", get(system::ready))
        .route("/health.html", get(system::health))
        .route("/configs", get(system::configs))
        .route("/configs/secrets/providers", get(system::secret_providers))
        .route("/metrics", get(metrics::render))
        .route("/prometheus/metrics", get(metrics::render))
        .route("/openapi.json", get(openapi::document))
        .route("/docs", get(openapi::page))
        .route("/", any(system::root))
}

/// The verbs on a collection.
fn many<W: Create>() -> MethodRouter<App> {
    get(list::<W>).post(create::<W>)
}

/// The verbs on one entity.
fn one<W: Wire>() -> MethodRouter<App> {
    get(load::<W>).put(alter::<W>).delete(drop::<W>)
}

/// The verb of what can be disabled.
fn switched<W: Wire<Change = SwitchableChange>>() -> MethodRouter<App> {
    debug_assert!(<W as Payload>::KIND.row().has_in_use);
    patch(switch::<W>)
}

async fn unknown(uri: Uri) -> Refusal {
    Refusal::unknown_route(uri.path())
}

async fn not_allowed(method: Method, uri: Uri) -> Refusal {
    Refusal::method_not_allowed(format!("`{}` does not take the method {method}", uri.path()))
}
