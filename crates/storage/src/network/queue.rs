//! A plain queue of connections. A ready-made pool pings, logs and locks more than this costs: 0.67 of the limit
//! against 0.87 in the measurements that the design rests on.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::Instant;

use super::frame::Frame;
use super::{Connection, NetworkOptions, primary};
use crate::failure::{self, Failure};
use crate::session::Session;
use crate::value::{Row, Value};

/// Waits between two attempts to connect to a server that does not answer.
const RECONNECT_WAIT: Duration = Duration::from_millis(50);

/// How long a server that answers nobody is tried again. Shorter than the wait for a connection that is in use: those come
/// back, and a server that is down mostly does not. One that answers others is slow, as when many connect at once.
const CONNECT_MAX: Duration = Duration::from_secs(3);

/// How much longer than its own bound (`postgres_settings`, `mysql_settings`) a server may take for a statement or a commit
/// before it is taken for dead. A commit has no bound there: it waits for a standby that is gone for as long as that takes.
const SILENCE_MAX: Duration = Duration::from_secs(3);

/// Idle connections, and the right to open more, up to a bound.
#[derive(Debug)]
pub(super) struct Queue {
    options: NetworkOptions,
    permits: Semaphore,
    idle: Mutex<Vec<Idle>>,
    /// When the server was last known to answer.
    answered: Mutex<Instant>,
}

#[derive(Debug)]
struct Idle {
    connection: Box<dyn Connection>,
    term: u64,
    since: Instant,
}

impl Queue {
    pub(super) fn new(options: NetworkOptions) -> Queue {
        let permits = Semaphore::new(options.connections_max);
        Queue {
            options,
            permits,
            idle: Mutex::new(Vec::new()),
            answered: Mutex::new(Instant::now()),
        }
    }

    pub(super) fn options(&self) -> &NetworkOptions {
        &self.options
    }

    /// Takes a connection, waiting for one, or for the server, no longer than the bound.
    pub(super) async fn take(&self, deadline: Instant) -> Result<Lease<'_>, Failure> {
        let deadline = deadline.min(self.acquire_until());
        let Ok(Ok(permit)) = tokio::time::timeout_at(deadline, self.permits.acquire()).await else {
            metrics::counter!("treeline_connections_exhausted_total").increment(1);
            return Err(Failure::Unavailable(
                "every connection to the database stayed busy".to_owned(),
            ));
        };
        let hosts = self.options.connector.hosts();
        if let Some(hosts) = hosts {
            hosts.keep_watch(&self.options).await;
        }
        let (connection, term) = match self.pop(hosts.map_or(0, |hosts| *hosts.term().borrow())) {
            Some(connection) => connection,
            None => self.connect(deadline).await.map_err(|failure| match failure {
                Failure::Disconnected(detail) => Failure::Unavailable(detail),
                other => other,
            })?,
        };
        Ok(self.lease(connection, term, Some(permit)))
    }

    /// A new connection beside those that are counted. [`Failure::Disconnected`] if the server cannot be reached.
    pub(super) async fn take_beside(&self) -> Result<Lease<'_>, Failure> {
        let (connection, term) = self.connect(self.acquire_until()).await?;
        Ok(self.lease(connection, term, None))
    }

    fn acquire_until(&self) -> Instant {
        Instant::now() + Duration::from_millis(self.options.acquire_ms_max)
    }

    fn lease<'q>(
        &'q self,
        connection: Box<dyn Connection>,
        term: u64,
        permit: Option<SemaphorePermit<'q>>,
    ) -> Lease<'q> {
        Lease {
            queue: self,
            frame: connection.frame(),
            connection: Some(connection),
            term,
            current: self.options.connector.hosts().map(|hosts| hosts.term()),
            _permit: permit,
        }
    }

    /// The connection that was used last, unless it has been idle for so long that the server may have ended it, or its
    /// server is no longer the primary.
    fn pop(&self, term: u64) -> Option<(Box<dyn Connection>, u64)> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(freshest) = idle.pop() {
            if freshest.since.elapsed() >= self.options.idle_max {
                // Those below have been idle for longer still.
                idle.clear();
            } else if freshest.term == term {
                return Some((freshest.connection, term));
            }
        }
        None
    }

    /// Closes what is idle: one of its sessions was found to be of no use, and they are of one age. After a restart of the
    /// server all are dead, and whoever runs again must not find the next of them. Where it was one alone, new ones for the
    /// others cost little.
    fn close_idle(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Connects, trying again for as long as the server may still answer.
    async fn connect(&self, deadline: Instant) -> Result<(Box<dyn Connection>, u64), Failure> {
        let last = Mutex::new("it did not answer in time".to_owned());
        let connecting = async {
            loop {
                let failure = match self.options.connector.connect(&self.options).await {
                    Ok(connection) => return Ok(connection),
                    Err(failure) => failure,
                };
                // Nobody's rows are in the way of a connection: a node of a cluster that waits here waits for the others.
                let (Failure::Disconnected(detail) | Failure::Transient(_, detail)) = failure else {
                    return Err(failure);
                };
                failure::count("connection_refused");
                *last.lock().unwrap_or_else(PoisonError::into_inner) = detail;
                tokio::time::sleep(RECONNECT_WAIT).await;
            }
        };
        match while_it_answers(deadline, || self.answered(), connecting).await {
            Some(connected) => {
                if connected.is_ok() {
                    self.has_answered();
                }
                connected
            }
            None => {
                let detail = last.lock().unwrap_or_else(PoisonError::into_inner);
                Err(Failure::Disconnected(format!("cannot connect: {detail}")))
            }
        }
    }

    fn answered(&self) -> Instant {
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_answered(&self) {
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// Waits for a connection until the deadline, and no longer than the server has answered nobody. `answered` says when it last
/// did.
async fn while_it_answers<T>(
    deadline: Instant,
    answered: impl Fn() -> Instant,
    connecting: impl Future<Output = T>,
) -> Option<T> {
    let begun = Instant::now();
    tokio::pin!(connecting);
    loop {
        let until = deadline.min(begun.max(answered()) + CONNECT_MAX);
        if until <= Instant::now() {
            return None;
        }
        if let Ok(connected) = tokio::time::timeout_at(until, &mut connecting).await {
            return Some(connected);
        }
    }
}

/// A connection in use. Dropped without [`Lease::give_back`], it is closed. No call waits longer for the server than the
/// bound, nor for one that is no longer the primary.
#[derive(Debug)]
pub(crate) struct Lease<'q> {
    queue: &'q Queue,
    frame: &'static Frame,
    /// None once it was found to be of no use.
    connection: Option<Box<dyn Connection>>,
    term: u64,
    /// The term that it is now, where it can end.
    current: Option<watch::Receiver<u64>>,
    _permit: Option<SemaphorePermit<'q>>,
}

impl Lease<'_> {
    pub(crate) fn give_back(mut self) {
        if let Some(connection) = self.connection.take() {
            self.queue.has_answered();
            let mut idle = self.queue.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.push(Idle {
                connection,
                term: self.term,
                since: Instant::now(),
            });
        }
    }

    fn parts(&mut self) -> Result<(&mut dyn Connection, Guard<'_>), Failure> {
        let closed = || Failure::Disconnected("the connection is closed".to_owned());
        let connection = self.connection.as_deref_mut().ok_or_else(closed)?;
        let guard = Guard {
            options: &self.queue.options,
            current: self.current.as_mut(),
            term: self.term,
        };
        Ok((connection, guard))
    }

    /// Closes a connection that is of no use any more.
    fn settle<T>(&mut self, answer: Result<T, Failure>) -> Result<T, Failure> {
        if let Err(Failure::Disconnected(_)) = answer {
            failure::count("connection_lost");
        }
        if let Err(Failure::Disconnected(_) | Failure::ReadOnly(_)) = answer {
            self.connection = None;
            self.queue.close_idle();
        }
        answer
    }
}

#[async_trait]
impl Connection for Lease<'_> {
    async fn control(&mut self, sql: &'static str) -> Result<(), Failure> {
        let (connection, guard) = self.parts()?;
        let answer = guard.bound(connection.control(sql)).await;
        self.settle(answer)
    }

    fn session(&mut self) -> &mut dyn Session {
        self
    }

    fn frame(&self) -> &'static Frame {
        self.frame
    }

    async fn has_written(&mut self) -> Result<bool, Failure> {
        let (connection, guard) = self.parts()?;
        let answer = guard.bound(connection.has_written()).await;
        self.settle(answer)
    }
}

#[async_trait]
impl Session for Lease<'_> {
    async fn run(&mut self, sql: &Arc<str>, values: &[Value]) -> Result<u64, Failure> {
        let (connection, guard) = self.parts()?;
        let answer = guard.bound(connection.run(sql, values)).await;
        self.settle(answer)
    }

    async fn rows(&mut self, sql: &Arc<str>, values: &[Value]) -> Result<Vec<Row>, Failure> {
        let (connection, guard) = self.parts()?;
        let answer = guard.bound(connection.rows(sql, values)).await;
        self.settle(answer)
    }
}

/// What ends a call that the server does not answer.
struct Guard<'l> {
    options: &'l NetworkOptions,
    current: Option<&'l mut watch::Receiver<u64>>,
    term: u64,
}

impl Guard<'_> {
    async fn bound<T>(self, call: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let within = Duration::from_millis(self.options.wait_ms_max) + SILENCE_MAX;
        let options = self.options;
        tokio::select! {
            biased;
            answer = call => answer,
            () = self.term_ends() => {
                Err(Failure::Disconnected("another host is the primary now".to_owned()))
            }
            never = keep_watching(options) => match never {},
            () = tokio::time::sleep(within) => {
                Err(Failure::Disconnected(format!("it did not answer within {} ms", within.as_millis())))
            }
        }
    }

    async fn term_ends(self) {
        if let Some(current) = self.current
            && current.wait_for(|current| *current != self.term).await.is_ok()
        {
            return;
        }
        std::future::pending().await
    }
}

/// What waits keeps watch too: where every operation waits for a primary that was left behind, no other one begins.
async fn keep_watching(options: &NetworkOptions) -> Infallible {
    let Some(hosts) = options.connector.hosts() else {
        return std::future::pending().await;
    };
    loop {
        tokio::time::sleep(primary::WATCH_EVERY).await;
        hosts.keep_watch(options).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::fake::Fake;
    use crate::network::parse;
    use crate::open::StoreOptions;

    fn queue(idle: &[(u64, u64)]) -> Queue {
        let options = StoreOptions::new("postgres://nobody@localhost/none");
        let queue = Queue::new(parse(&options).unwrap().unwrap());
        for (term, idle_secs) in idle {
            queue.idle.lock().unwrap().push(Idle {
                connection: Box::new(Fake::default()),
                term: *term,
                since: Instant::now() - Duration::from_secs(*idle_secs),
            });
        }
        queue
    }

    #[test]
    fn what_an_ended_term_has_left_is_closed_and_nothing_else() {
        let queue = queue(&[(2, 2), (2, 1), (1, 0), (1, 0)]);
        assert!(queue.pop(2).is_some());
        assert!(queue.pop(2).is_some());
        assert!(queue.pop(2).is_none());
    }

    #[test]
    fn what_was_idle_for_too_long_is_closed_with_all_that_was_idle_for_longer() {
        let queue = queue(&[(1, 60), (1, 40), (1, 0)]);
        assert!(queue.pop(1).is_some());
        assert!(queue.pop(1).is_none());
        assert!(queue.idle.lock().unwrap().is_empty());
    }

    /// Somebody who connects for so long, to a server that answers others for so long, and how long they waited.
    async fn waited(connecting: u64, answering: u64) -> (bool, u64) {
        let begun = Instant::now();
        let (deadline, last) = (
            begun + Duration::from_secs(10),
            begun + Duration::from_secs(answering),
        );
        let connecting = tokio::time::timeout(Duration::from_secs(connecting), std::future::pending::<()>());
        let connected = while_it_answers(deadline, || Instant::now().min(last), connecting).await;
        (connected.is_some(), begun.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_connection_is_waited_for_as_long_as_the_server_answers_others() {
        assert_eq!(waited(2, 0).await, (true, 2));
        assert_eq!(waited(20, 0).await, (false, 3));
        assert_eq!(waited(8, 6).await, (true, 8));
        assert_eq!(waited(20, 4).await, (false, 7));
        assert_eq!(waited(20, 20).await, (false, 10));
    }
}
