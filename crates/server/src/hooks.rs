//! The listener by which tests drive sync points, in test builds only.
//!
//! `POST /arm?point=P&name=N&action=pause|fail|exit`, `GET /reached?point=P&name=N` (waits), `POST /release?point=P&name=N`,
//! `GET /blocked`, which counts the sessions that wait for a row lock, and `POST /stranger?first=ID&second=ID&name=N`,
//! which locks two rows against the order of the protocols and lets go of them.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::Query;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use tokio::net::TcpListener;
use treeline_core::EntityId;
use treeline_dispatch::Dispatcher;
use treeline_storage::hooks::{self, Action};

/// How long a test waits for an operation to arrive.
const ARRIVAL_MAX: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
struct Point {
    point: String,
    name: String,
    action: Option<String>,
}

static ADDRESS: OnceLock<String> = OnceLock::new();

/// Missing as long as the server opens its database.
static DISPATCHER: OnceLock<Dispatcher> = OnceLock::new();

/// Sets this process's clock wrong, keeps the address of the command line until somebody listens, and arms the point at
/// which the server is to be held on its way.
pub(crate) fn remember(address: Option<String>, clock_skew_ms: i64, hold: Option<&str>) {
    hooks::CLOCK_SKEW_MS.store(clock_skew_ms, Ordering::Relaxed);
    if let Some(address) = address {
        ADDRESS.get_or_init(|| address);
    }
    if let Some(point) = hold {
        hooks::arm(point, hooks::ANY_NAME, Action::Pause);
    }
}

/// Listens for tests until the process ends, if the command line says where. It does so before the database is opened,
/// so that what happens on the way can be driven too.
pub(crate) async fn listen() -> std::io::Result<()> {
    let Some(address) = ADDRESS.get() else {
        return Ok(());
    };
    let listener = TcpListener::bind(address).await?;
    let routes = Router::new()
        .route("/arm", post(arm))
        .route("/reached", get(reached))
        .route("/release", post(release))
        .route("/blocked", get(blocked))
        .route("/stranger", post(stranger));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Ok(())
}

/// The database is open: from now on it can be asked.
pub(crate) fn attach(dispatcher: Dispatcher) {
    DISPATCHER.get_or_init(|| dispatcher);
}

fn dispatcher() -> Result<&'static Dispatcher, StatusCode> {
    DISPATCHER.get().ok_or(StatusCode::SERVICE_UNAVAILABLE)
}

async fn arm(Query(armed): Query<Point>) -> StatusCode {
    let action = match armed.action.as_deref() {
        None | Some("pause") => Action::Pause,
        Some("fail") => Action::Fail,
        Some("exit") => Action::Exit,
        Some(_) => return StatusCode::BAD_REQUEST,
    };
    hooks::arm(&armed.point, &armed.name, action);
    StatusCode::OK
}

async fn reached(Query(armed): Query<Point>) -> StatusCode {
    if hooks::wait_until_reached(&armed.point, &armed.name, ARRIVAL_MAX).await {
        StatusCode::OK
    } else {
        StatusCode::GATEWAY_TIMEOUT
    }
}

async fn release(Query(armed): Query<Point>) -> StatusCode {
    hooks::release(&armed.point, &armed.name);
    StatusCode::OK
}

async fn blocked() -> Result<Json<serde_json::Value>, StatusCode> {
    let count = dispatcher()?
        .blocked()
        .await
        .map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    Ok(Json(serde_json::json!({ "blocked": count })))
}

#[derive(Deserialize)]
struct Rows {
    first: i64,
    second: i64,
    name: String,
}

async fn stranger(Query(rows): Query<Rows>) -> Result<(), StatusCode> {
    let id = |number| EntityId::new(number).map_err(|_| StatusCode::BAD_REQUEST);
    dispatcher()?
        .lock_as_stranger(id(rows.first)?, id(rows.second)?, rows.name)
        .await
        .map_err(|_| StatusCode::SERVICE_UNAVAILABLE)
}
