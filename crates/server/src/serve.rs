//! The server's life: it opens the database, listens, serves connections, and on a signal ends what it has begun.
//!
//! A shutdown stops accepting, lets every connection finish the request that it is in, waits for writes that are
//! still carried through, then for work on files. All of it has one bound; what is not done by then is left to the
//! next start, which sweeps.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_io_timeout::TimeoutWriter;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::App;
use crate::config::Config;
use crate::router::router;
use crate::{metrics, wiring};

/// Why a server did not start: one line for the operator.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address is taken or not ours.
    #[error("cannot listen on {address}: {reason}")]
    Listen {
        /// What was configured.
        address: String,
        /// What the system says.
        reason: String,
    },
    /// The data directory cannot be made or written to.
    #[error("the data directory `{path}` cannot be used: {reason}")]
    DataDir {
        /// Which.
        path: String,
        /// What the system says.
        reason: String,
    },
    /// The database cannot be opened.
    #[error("the database {database} (`database`) cannot be used: {reason}")]
    Database {
        /// Which, without its password.
        database: String,
        /// What the store says.
        reason: String,
    },
}

/// A server that listens and has not begun to serve.
pub struct Server {
    listener: TcpListener,
    app: App,
    connections: ConnectionBounds,
    shutdown_max: Duration,
}

#[derive(Clone, Copy)]
struct ConnectionBounds {
    count_max: usize,
    head_read_max: Duration,
    answer_stall_max: Duration,
}

impl Server {
    /// Makes the data directory, listens, and opens the database, in this order: a port that is taken is found
    /// before anything is written.
    pub async fn open(config: &Config) -> Result<Server, StartError> {
        metrics::install();
        let listener = listen(&config.listen).await?;
        prepare_data_dir(config)?;
        let dispatcher = wiring::open(config)
            .await
            .map_err(|error| database_error(config, &error))?;
        Ok(Server {
            listener,
            app: App::new(dispatcher, config.limits),
            connections: ConnectionBounds {
                count_max: config.connections_max,
                head_read_max: config.head_read_max,
                answer_stall_max: config.answer_stall_max,
            },
            shutdown_max: config.shutdown_max,
        })
    }

    /// Where it listens; the port is a real one also where 0 was configured.
    pub fn address(&self) -> io::Result<std::net::SocketAddr> {
        self.listener.local_addr()
    }

    /// What test hooks ask about the database.
    #[cfg(feature = "test-hooks")]
    pub(crate) fn dispatcher(&self) -> &treeline_dispatch::Dispatcher {
        self.app.dispatcher()
    }

    /// Serves until the token is cancelled, then ends what was begun.
    pub async fn run(self, stop: CancellationToken) {
        let background = tokio::spawn(background(self.app.clone(), stop.clone()));
        let open = accept(self.listener, router(self.app.clone()), self.connections, &stop).await;
        let ended = tokio::time::timeout(self.shutdown_max, async {
            open.wait().await;
            self.app.settle().await;
            let _ = background.await;
        });
        match ended.await {
            Ok(()) => tracing::info!("all requests are answered; the server ends"),
            Err(_) => tracing::warn!(
                open = open.len(),
                "the server ends with work unfinished; the next start sweeps"
            ),
        }
    }
}

/// Reconcilers, and the upkeep of the metrics.
async fn background(app: App, stop: CancellationToken) {
    const UPKEEP_EVERY: Duration = Duration::from_secs(5);
    let upkeep = async {
        let mut ticks = tokio::time::interval(UPKEEP_EVERY);
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            metrics::upkeep();
        }
    };
    tokio::join!(app.dispatcher().clone().run_background(stop.clone()), upkeep);
}

async fn listen(address: &str) -> Result<TcpListener, StartError> {
    TcpListener::bind(address)
        .await
        .map_err(|error| StartError::Listen {
            address: address.to_owned(),
            reason: match error.kind() {
                io::ErrorKind::AddrInUse => "the port is taken; choose another with --listen".to_owned(),
                _ => error.to_string(),
            },
        })
}

/// Makes the data directory and tries to write to it.
pub(crate) fn prepare_data_dir(config: &Config) -> Result<(), StartError> {
    let path = &config.data_dir;
    let probe = path.join(format!(".probe-{}", std::process::id()));
    let tried = std::fs::create_dir_all(path)
        .and_then(|()| std::fs::write(&probe, b""))
        .and_then(|()| std::fs::remove_file(&probe));
    tried.map_err(|error| StartError::DataDir {
        path: path.display().to_string(),
        reason: error.to_string(),
    })
}

/// What an operator is told of a database that cannot be used; internal detail belongs to the operator too.
pub(crate) fn database_error(config: &Config, error: &treeline_core::Error) -> StartError {
    let reason = match error {
        treeline_core::Error::Internal { detail } => detail.clone(),
        treeline_core::Error::Invalid { reason, .. } => reason.clone(),
        error => error.to_string(),
    };
    StartError::Database {
        database: config.database.to_string(),
        reason,
    }
}

/// Accepts connections until the token is cancelled; answers those that are still open then.
async fn accept(
    listener: TcpListener,
    router: Router,
    bounds: ConnectionBounds,
    stop: &CancellationToken,
) -> TaskTracker {
    const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(50);
    let open = TaskTracker::new();
    let places = Arc::new(Semaphore::new(bounds.count_max));
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        let Some((Ok(place), accepted)) = stop.run_until_cancelled(next).await else {
            break;
        };
        match accepted {
            Ok((stream, _)) => {
                open.spawn(connection(stream, router.clone(), bounds, stop.clone(), place));
            }
            Err(error) => {
                // Most often the process is out of file handles, and some are given back a moment later.
                tracing::warn!(%error, "a connection cannot be accepted");
                tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
            }
        }
    }
    open.close();
    open
}

/// Serves one connection, and once the token is cancelled no more than the request that it is in.
async fn connection(
    stream: TcpStream,
    router: Router,
    bounds: ConnectionBounds,
    stop: CancellationToken,
    _place: OwnedSemaphorePermit,
) {
    const HEAD_BYTES_MAX: usize = 128 * 1024;
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection keeps its delay");
    }
    // Only a write that makes no progress is timed. What is read has bounds of its own: the head's, and the body's.
    let mut stream = TimeoutWriter::new(stream);
    stream.set_timeout(Some(bounds.answer_stall_max));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.head_read_max)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(Box::pin(stream)), TowerToHyperService::new(router));
    let mut served = std::pin::pin!(served);
    let outcome = tokio::select! {
        outcome = served.as_mut() => outcome,
        () = stop.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection ended early");
    }
}
