//! Counters and times, in the text form that Prometheus reads.
//!
//! Lower layers count through the `metrics` facade, by name. Requests are counted here, under handles that are made
//! once for each operation, since to look one up by name and labels at each request costs more than to count.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::Duration;

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use metrics::{Counter, Histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use crate::operations::{Operation, PATH_ALIASES, operations};

const REQUESTS: &str = "treeline_http_requests_total";
const DURATION: &str = "treeline_http_request_duration_seconds";
const BUILD: &str = "treeline_build_info";

/// For times, in seconds. Few, because there is one set for each operation.
const SECONDS: [f64; 8] = [0.000_25, 0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0];

/// For everything else that is observed, which are counts.
const COUNTS: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

/// What lower layers count, as far as its labels are known: there from the start, since a rate takes the first value that
/// it sees for no change.
const FROM_ZERO: [&str; 4] = [
    "treeline_connections_exhausted_total",
    "treeline_database_failovers_total",
    "treeline_sweeps_total",
    "treeline_update_retries_exhausted_total",
];
const ERRORS: &str = "treeline_database_errors_total";
const ERRORS_FROM_ZERO: [&str; 6] = [
    "connection_lost",
    "connection_refused",
    "deadlock",
    "lock_timeout",
    "serialization",
    "statement_timeout",
];

/// What a request is counted under that no operation matches.
const UNMATCHED: &str = "unmatched";

static RECORDER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// Begins to record. What was counted before is lost, so this comes first; a second call changes nothing.
pub(crate) fn install() {
    RECORDER.get_or_init(|| match recorder() {
        Ok(handle) => Some(handle),
        Err(error) => {
            tracing::warn!(%error, "metrics are not recorded");
            None
        }
    });
}

fn recorder() -> Result<PrometheusHandle, BuildError> {
    let times = Matcher::Suffix("_seconds".to_owned());
    let builder = PrometheusBuilder::new()
        .set_buckets(&COUNTS)?
        .set_buckets_for_metric(times, &SECONDS)?;
    let handle = builder.install_recorder()?;
    metrics::describe_counter!(REQUESTS, "Requests answered, by operation, method and status.");
    metrics::describe_histogram!(DURATION, "From the head of a request to its answer, in seconds.");
    metrics::describe_gauge!(BUILD, "1; the labels say which build this is.");
    let labels = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("commit", env!("TREELINE_GIT_COMMIT")),
    ];
    metrics::gauge!(BUILD, &labels).set(1.0);
    for counter in FROM_ZERO {
        metrics::counter!(counter).absolute(0);
    }
    for error in ERRORS_FROM_ZERO {
        metrics::counter!(ERRORS, "error" => error).absolute(0);
    }
    Ok(handle)
}

/// Folds what was observed into the histograms. To be called now and then, so that memory stays bounded between two
/// readings.
pub(crate) fn upkeep() {
    if let Some(Some(handle)) = RECORDER.get() {
        handle.run_upkeep();
    }
}

/// `GET /metrics`.
pub(crate) async fn render() -> Response {
    let text = RECORDER
        .get()
        .and_then(Option::as_ref)
        .map(PrometheusHandle::render);
    let media_type = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    ([(CONTENT_TYPE, media_type)], text.unwrap_or_default()).into_response()
}

/// The handles of every operation, by the path that the router matches.
pub(crate) struct HttpMetrics {
    by_path: HashMap<String, Vec<OperationMetrics>>,
    unmatched: OperationMetrics,
}

struct OperationMetrics {
    operation: String,
    method: Method,
    /// This and the next are made when first needed, so that a reading does not list what never happened.
    duration: OnceLock<Histogram>,
    /// By status.
    answers: [OnceLock<Counter>; STATUSES.len()],
}

/// The statuses that are answered; any other is counted by name.
const STATUSES: [u16; 18] = [
    200, 304, 307, 400, 401, 403, 404, 405, 406, 408, 409, 412, 413, 415, 422, 500, 502, 503,
];

impl HttpMetrics {
    pub(crate) fn new() -> HttpMetrics {
        let mut by_path: HashMap<String, Vec<OperationMetrics>> = HashMap::new();
        let mut add = |path: &str, operation: &Operation| {
            let metrics = OperationMetrics::new(operation.id.clone(), operation.method.clone());
            by_path.entry(path.to_owned()).or_default().push(metrics);
        };
        for operation in operations() {
            add(&operation.path, &operation);
            for (alias, _) in PATH_ALIASES.iter().filter(|(_, path)| *path == operation.path) {
                add(alias, &operation);
            }
        }
        HttpMetrics {
            by_path,
            unmatched: OperationMetrics::new(UNMATCHED.to_owned(), Method::GET),
        }
    }

    /// Counts one answer.
    pub(crate) fn count(&self, path: Option<&str>, method: &Method, status: StatusCode, elapsed: Duration) {
        let same_method = |metrics: &&OperationMetrics| {
            metrics.method == *method || (metrics.method == Method::GET && *method == Method::HEAD)
        };
        let found = path
            .and_then(|path| self.by_path.get(path))
            .and_then(|all| all.iter().find(same_method));
        match found {
            Some(metrics) => metrics.count(status, elapsed),
            None => self.unmatched.count(status, elapsed),
        }
    }
}

impl OperationMetrics {
    fn new(operation: String, method: Method) -> OperationMetrics {
        OperationMetrics {
            operation,
            method,
            duration: OnceLock::new(),
            answers: [const { OnceLock::new() }; STATUSES.len()],
        }
    }

    fn count(&self, status: StatusCode, elapsed: Duration) {
        let duration = || metrics::histogram!(DURATION, "operation" => self.operation.clone());
        self.duration.get_or_init(duration).record(elapsed.as_secs_f64());
        match STATUSES.iter().position(|known| *known == status.as_u16()) {
            Some(at) => self.answers[at].get_or_init(|| self.counter(status)).increment(1),
            None => self.counter(status).increment(1),
        }
    }

    fn counter(&self, status: StatusCode) -> Counter {
        let method = if self.operation == UNMATCHED {
            "any".to_owned()
        } else {
            self.method.to_string()
        };
        let labels = [
            ("operation", self.operation.clone()),
            ("method", method),
            ("status", status.as_u16().to_string()),
        ];
        metrics::counter!(REQUESTS, &labels)
    }
}
