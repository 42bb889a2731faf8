//! What is about the server and not about the catalog: version, health, configuration, who am I, and the root.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::App;
use crate::auth;
use crate::envelope::{self, Answer};
use crate::error::Refusal;

/// The version of the protocol, which clients compare with their own and refuse an older one. Ours is in
/// `treeline --version` and in the metrics.
pub(crate) const PROTOCOL_VERSION: &str = "1.3.1";

/// Which build this is.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Version {
    /// The version of the protocol.
    version: &'static str,
    compile_date: &'static str,
    git_commit: &'static str,
}

/// `GET /api/version`.
pub(crate) async fn version() -> Response {
    let version = Version {
        version: PROTOCOL_VERSION,
        compile_date: env!("TREELINE_COMPILE_DATE"),
        git_commit: env!("TREELINE_GIT_COMMIT"),
    };
    envelope::one("version", version)
}

/// `GET /api/authn/me`.
pub(crate) async fn me(headers: HeaderMap) -> Answer {
    Ok(envelope::one("principal", auth::principal(&headers)?))
}

/// What a probe found.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HealthReport {
    /// Always 0: the status says whether it is well.
    code: u16,
    status: Health,
    checks: Vec<HealthCheck>,
}

/// One thing that a probe looked at.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HealthCheck {
    name: &'static str,
    status: Health,
    details: HealthDetails,
}

/// Why something is down.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct HealthDetails {
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

/// Whether something is well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Health {
    Up,
    Down,
}

/// `GET /api/health/live`: whoever answers lives.
pub(crate) async fn live() -> Response {
    report(vec![server_check()])
}

/// `GET /api/health/ready`: whether the database answers.
pub(crate) async fn ready(State(app): State<App>) -> Response {
    report(vec![store_check(&app).await])
}

/// `GET /api/health`: both.
pub(crate) async fn health(State(app): State<App>) -> Response {
    report(vec![server_check(), store_check(&app).await])
}

fn server_check() -> HealthCheck {
    HealthCheck {
        name: "httpServer",
        status: Health::Up,
        details: HealthDetails::default(),
    }
}

async fn store_check(app: &App) -> HealthCheck {
    let reason = match tokio::time::timeout(app.limits().probe_max, app.dispatcher().ready()).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => {
            tracing::warn!(%error, "the readiness probe found the database not available");
            Some("database not available")
        }
        Err(_) => Some("timeout"),
    };
    let status = if reason.is_none() {
        Health::Up
    } else {
        Health::Down
    };
    HealthCheck {
        name: "entityStore",
        status,
        details: HealthDetails { reason },
    }
}

fn report(checks: Vec<HealthCheck>) -> Response {
    let down = checks.iter().any(|check| check.status == Health::Down);
    let (code, status) = if down {
        (StatusCode::SERVICE_UNAVAILABLE, Health::Down)
    } else {
        (StatusCode::OK, Health::Up)
    };
    let mut response = envelope::with_status(
        code,
        &HealthReport {
            code: 0,
            status,
            checks,
        },
    );
    if down {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// What clients may know of the configuration.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Configs {
    #[serde(rename = "gravitino.authenticators")]
    authenticators: [&'static str; 1],
    #[serde(rename = "gravitino.authorization.enable")]
    authorization: bool,
    #[serde(rename = "gravitino.schema.separator")]
    separator: &'static str,
}

/// `GET /configs`.
pub(crate) async fn configs() -> Response {
    envelope::json(&Configs {
        authenticators: ["simple"],
        authorization: false,
        separator: ":",
    })
}

/// Where secrets can be kept: nowhere, yet.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SecretProviders {
    providers: [String; 0],
}

/// `GET /configs/secrets/providers`.
pub(crate) async fn secret_providers() -> Response {
    envelope::json(&SecretProviders { providers: [] })
}

/// Any method on `/`: a person is shown the documentation, and a client that says `CLOSE` (a method of its own) when
/// it is done is told that this is well.
pub(crate) async fn root(request: Request) -> Answer {
    match request.method().as_str() {
        "CLOSE" => Ok(envelope::done()),
        "GET" | "HEAD" => Ok(Redirect::temporary("/docs").into_response()),
        _ => Err(Refusal::method_not_allowed("there is nothing to do at the root")),
    }
}
