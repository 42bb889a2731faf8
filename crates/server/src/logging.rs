//! The log: to standard error, as text or as JSON, under a filter.
//!
//! At `info` there are lines about the server and its troubles, none about a single request. `treeline_server=debug`
//! adds a span and a line for each request (see `gate.rs` for what they cost).

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::config::LogFormat;

/// Begins to log. The error says what is wrong with the filter.
pub(crate) fn install(filter: &str, format: LogFormat) -> Result<(), String> {
    let filter = EnvFilter::try_new(filter)
        .map_err(|error| format!("the log level `{filter}` is no filter: {error}"))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // It would say so on standard error too, and panic if that cannot be written either: a full disk under the log
        // must not fail requests.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal());
    let installed = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    installed.map_err(|error| format!("the log cannot be set up: {error}"))
}
