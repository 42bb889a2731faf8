//! A plain queue of connections. A ready-made pool pings, logs and locks more than this costs: 0.67 of the limit
//! against 0.87 in the measurements that the design rests on.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use super::{Connection, Frame, NetworkOptions};
use crate::failure::Failure;
use crate::session::Session;

/// Waits between two attempts to connect to a server that does not answer.
const RECONNECT_WAIT: Duration = Duration::from_millis(50);

/// How long a server that does not answer is tried again. Shorter than the wait for a connection that is in use: those
/// come back, and a server that is down mostly does not.
const CONNECT_MAX: Duration = Duration::from_secs(3);

/// Idle connections, and the right to open more, up to a bound.
#[derive(Debug)]
pub(super) struct Queue {
    options: NetworkOptions,
    permits: Semaphore,
    idle: Mutex<Vec<Idle>>,
}

#[derive(Debug)]
struct Idle {
    connection: Box<dyn Connection>,
    since: Instant,
}

impl Queue {
    pub(super) fn new(options: NetworkOptions) -> Queue {
        let permits = Semaphore::new(options.connections_max);
        Queue {
            options,
            permits,
            idle: Mutex::new(Vec::new()),
        }
    }

    /// Takes a connection, waiting for one, or for the server, no longer than the bound.
    pub(super) async fn take(&self, deadline: Instant) -> Result<Lease<'_>, Failure> {
        let deadline = deadline.min(Instant::now() + Duration::from_millis(self.options.acquire_ms_max));
        let Ok(Ok(permit)) = tokio::time::timeout_at(deadline, self.permits.acquire()).await else {
            metrics::counter!("treeline_connections_exhausted_total").increment(1);
            return Err(Failure::Unavailable(
                "every connection to the database stayed busy".to_owned(),
            ));
        };
        let connection = match self.pop() {
            Some(connection) => connection,
            None => self.connect(deadline.min(Instant::now() + CONNECT_MAX)).await?,
        };
        Ok(Lease {
            queue: self,
            connection: Some(connection),
            _permit: permit,
        })
    }

    /// The connection that was used last, unless it has been idle for so long that the server may have ended it.
    fn pop(&self) -> Option<Box<dyn Connection>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let freshest = idle.pop()?;
        if freshest.since.elapsed() < self.options.idle_max {
            return Some(freshest.connection);
        }
        idle.clear();
        None
    }

    async fn connect(&self, deadline: Instant) -> Result<Box<dyn Connection>, Failure> {
        loop {
            let failure = match tokio::time::timeout_at(
                deadline,
                self.options.connector.connect(&self.options),
            )
            .await
            {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(failure)) => failure,
                Err(_) => Failure::Disconnected("it did not answer in time".to_owned()),
            };
            let Failure::Disconnected(detail) = failure else {
                return Err(failure);
            };
            if Instant::now() + RECONNECT_WAIT >= deadline {
                return Err(Failure::Unavailable(format!("cannot connect: {detail}")));
            }
            tokio::time::sleep(RECONNECT_WAIT).await;
        }
    }
}

/// A connection in use. Dropped without [`Lease::give_back`], it is closed.
pub(super) struct Lease<'q> {
    queue: &'q Queue,
    connection: Option<Box<dyn Connection>>,
    _permit: SemaphorePermit<'q>,
}

impl Lease<'_> {
    pub(super) fn session(&mut self) -> &mut dyn Session {
        self.connection().session()
    }

    pub(super) async fn control(&mut self, sql: &'static str) -> Result<(), Failure> {
        self.connection().control(sql).await
    }

    pub(super) fn frame(&mut self) -> &'static Frame {
        self.connection().frame()
    }

    pub(super) async fn has_written(&mut self) -> Result<bool, Failure> {
        self.connection().has_written().await
    }

    pub(super) fn give_back(mut self) {
        if let Some(connection) = self.connection.take() {
            let mut idle = self.queue.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.push(Idle {
                connection,
                since: Instant::now(),
            });
        }
    }

    #[expect(
        clippy::expect_used,
        reason = "only give_back takes the connection, and it takes the lease along"
    )]
    fn connection(&mut self) -> &mut dyn Connection {
        self.connection
            .as_deref_mut()
            .expect("a lease has its connection")
    }
}
