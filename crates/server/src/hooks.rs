//! The listener by which tests drive sync points, in test builds only.
//!
//! `POST /arm?point=P&name=N&action=pause|fail|exit`, `GET /reached?point=P&name=N` (waits), `POST /release?point=P&name=N`,
//! `GET /blocked`, which counts the sessions that wait for a row lock, and `POST /stranger?first=ID&second=ID&name=N`,
//! which locks two rows against the order of the protocols and lets go of them.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::{Query, State};
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

/// Sets this process's clock wrong, and keeps the address of the command line until the server is there.
pub(crate) fn remember(address: Option<String>, clock_skew_ms: i64) {
    hooks::CLOCK_SKEW_MS.store(clock_skew_ms, Ordering::Relaxed);
    if let Some(address) = address {
        ADDRESS.get_or_init(|| address);
    }
}

/// Listens for tests until the process ends, if the command line says where.
pub(crate) async fn listen(dispatcher: Dispatcher) -> std::io::Result<()> {
    let Some(address) = ADDRESS.get() else {
        return Ok(());
    };
    let listener = TcpListener::bind(address).await?;
    let routes = Router::new()
        .route("/arm", post(arm))
        .route("/reached", get(reached))
        .route("/release", post(release))
        .route("/blocked", get(blocked))
        .route("/stranger", post(stranger))
        .with_state(dispatcher);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Ok(())
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

async fn blocked(State(dispatcher): State<Dispatcher>) -> Result<Json<serde_json::Value>, StatusCode> {
    let count = dispatcher
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

async fn stranger(State(dispatcher): State<Dispatcher>, Query(rows): Query<Rows>) -> StatusCode {
    let (Ok(first), Ok(second)) = (EntityId::new(rows.first), EntityId::new(rows.second)) else {
        return StatusCode::BAD_REQUEST;
    };
    match dispatcher.lock_as_stranger(first, second, rows.name).await {
        Ok(()) => StatusCode::OK,
        Err(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}
