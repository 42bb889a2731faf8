//! What every handler shares: the dispatcher, the bounds, and the tasks that carry writes through.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use tracing::Instrument;
use treeline_core::{Error, Result};
use treeline_dispatch::Dispatcher;

use crate::error::{Asked, Refusal};
use crate::held::Held;
use crate::metrics::HttpMetrics;

/// The server's state, shared by all requests. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Shared>);

struct Shared {
    dispatcher: Dispatcher,
    limits: Limits,
    turns: Arc<Semaphore>,
    bodies: Arc<Semaphore>,
    writes: TaskTracker,
    metrics: HttpMetrics,
}

/// The bounds that every request is held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest body, in bytes.
    pub body_bytes_max: usize,
    /// How many bytes of bodies may be in hand at a time, over all requests that are not answered yet.
    pub bodies_bytes_max: usize,
    /// How long a body may take to arrive.
    pub body_read_max: Duration,
    /// How long a request may take, waiting for its turn and its body included.
    pub request_max: Duration,
    /// How many requests are worked on at a time; the others wait for their turn.
    pub requests_max: usize,
    /// How long the readiness probe waits for the database.
    pub probe_max: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body_bytes_max: 4 * 1024 * 1024,
            bodies_bytes_max: 256 * 1024 * 1024,
            body_read_max: Duration::from_secs(20),
            request_max: Duration::from_secs(30),
            requests_max: 512,
            probe_max: Duration::from_secs(2),
        }
    }
}

impl App {
    /// The state of a server on this dispatcher.
    pub fn new(dispatcher: Dispatcher, limits: Limits) -> App {
        App(Arc::new(Shared {
            dispatcher,
            limits,
            turns: Arc::new(Semaphore::new(limits.requests_max)),
            bodies: Arc::new(Semaphore::new(limits.bodies_bytes_max)),
            writes: TaskTracker::new(),
            metrics: HttpMetrics::new(),
        }))
    }

    /// Waits until every write that was begun is carried through. No write can begin once connections are closed.
    pub async fn settle(&self) {
        self.0.writes.close();
        self.0.writes.wait().await;
        self.0.dispatcher.settle().await;
    }

    pub(crate) fn dispatcher(&self) -> &Dispatcher {
        &self.0.dispatcher
    }

    pub(crate) fn limits(&self) -> Limits {
        self.0.limits
    }

    pub(crate) fn turns(&self) -> &Arc<Semaphore> {
        &self.0.turns
    }

    /// A permit for each byte of a body that may still be taken in.
    pub(crate) fn bodies(&self) -> &Arc<Semaphore> {
        &self.0.bodies
    }

    pub(crate) fn metrics(&self) -> &HttpMetrics {
        &self.0.metrics
    }

    /// Runs a write to its end, whether or not the client waits for it, and refuses as the request means it.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        asked: Asked,
        operation: impl Future<Output = Result<T>> + Send + 'static,
    ) -> std::result::Result<T, Refusal> {
        self.run(operation).await.map_err(|error| asked.refuse(error))
    }

    /// Runs a write to its end, whether or not the client waits for it.
    ///
    /// A handler is dropped when its connection ends or its time is up. An operation of several steps (a row, then a
    /// directory) must not stop between them, so it has a task of its own, which a shutdown waits for, and which keeps what
    /// the request holds of the server.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        operation: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let held = Held::current();
        let operation = async move {
            let outcome = operation.await;
            drop(held);
            outcome
        };
        match self.0.writes.spawn(operation.in_current_span()).await {
            Ok(outcome) => outcome,
            Err(error) => Err(Error::internal(format!("a write ended in a panic: {error}"))),
        }
    }
}
