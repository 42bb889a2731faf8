//! The PostgreSQL server that accepts writes, found among the hosts of the URL, and found again after a failover.
//!
//! 1. Each connection asks, in the round trip that sets it up, whether its server is in recovery. Only one that is not is
//!    ever used; the host that was good last is tried first, and where it is not, all are asked at once (`claim.rs`). It may
//!    only be slow, as when many connect at once: it is waited for while the others are asked.
//! 2. The other hosts are asked every second while there are operations, those that wait included, since an old primary
//!    that comes back, or that only stood still, goes on saying that it is the primary.
//! 3. Where another host is the primary now, the *term* ends: every connection of an earlier one is closed, in use or not.
//!    What was in the middle of something has lost its connection, as if the server had died.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::NetworkOptions;
use super::claim::{Line, Said, judge};
use super::connection::{Connection, connect_postgres};
use super::hosts::Host;
use crate::failure::Failure;
use crate::hooks::mutant;

/// How long the host that was good last is tried alone.
const HEAD_START: Duration = Duration::from_millis(500);

/// A host that has not answered by then is taken for dead, for now.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// How often the other hosts are asked.
pub(super) const WATCH_EVERY: Duration = Duration::from_secs(1);

/// If they were not asked for so long, an operation asks before it begins: it may be the first after a quiet night.
const WATCH_STALE: Duration = Duration::from_secs(3);

/// For how long it asks: a host that is down must not hold up everybody.
const WATCH_WAIT: Duration = Duration::from_millis(300);

/// The hosts of one database.
pub(crate) struct Hosts {
    all: Vec<Host>,
    known: Mutex<Known>,
    /// Rises when another host becomes the primary.
    term: watch::Sender<u64>,
}

/// What has been found out so far.
#[derive(Default)]
struct Known {
    /// The host that was good last.
    primary: Option<usize>,
    line: Option<Line>,
    /// When the others were asked last, and whether they are being asked.
    watched: Option<Instant>,
    is_watching: bool,
}

/// A connection to a host, or why there is none, and what the host says of itself.
struct Answer {
    said: Said,
    connection: Option<Box<dyn Connection>>,
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.all.iter().map(|host| &host.name))
            .finish()
    }
}

impl Hosts {
    pub(super) fn new(hosts: Vec<Host>) -> Arc<Hosts> {
        Arc::new(Hosts {
            all: hosts,
            known: Mutex::default(),
            term: watch::Sender::new(0),
        })
    }

    /// Whether there is more than one host to choose from.
    pub(super) fn has_several(&self) -> bool {
        self.all.len() > 1
    }

    /// The term, which ends when it changes.
    pub(super) fn term(&self) -> watch::Receiver<u64> {
        self.term.subscribe()
    }

    /// A connection to the primary, and the term in which it was one.
    pub(super) async fn connect(
        self: &Arc<Self>,
        options: &NetworkOptions,
    ) -> Result<(Box<dyn Connection>, u64), Failure> {
        let (last, term) = {
            let known = self.known();
            (known.primary, *self.term.borrow())
        };
        if !self.has_several() {
            return self.connect_to_the_only(options).await;
        }
        if mutant("m-standby-probe") {
            return self.connect_to_any(options).await;
        }
        if let Some(last) = last {
            let first = connect_postgres(&self.all[last].connect, true, options);
            tokio::pin!(first);
            let mut answered = timeout(HEAD_START, &mut first).await.ok();
            while answered.is_none() {
                tokio::select! {
                    biased;
                    answer = &mut first => answered = Some(answer),
                    another = self.ask_all(options, Some(last)) => match another {
                        Ok(another) => return Ok(another),
                        Err(_) => answered = timeout(WATCH_EVERY, &mut first).await.ok(),
                    },
                }
            }
            if let Some(Ok((connection, Said::Primary(line)))) = answered
                && self.known().line.as_ref() == Some(&line)
            {
                return Ok((connection, term));
            }
        }
        self.ask_all(options, None).await
    }

    async fn connect_to_the_only(
        &self,
        options: &NetworkOptions,
    ) -> Result<(Box<dyn Connection>, u64), Failure> {
        let host = &self.all[0];
        let (connection, said) = connect_postgres(&host.connect, false, options).await?;
        if said == Said::Standby {
            let reason = format!(
                "{} is a standby (in recovery); name its primary (`database`)",
                host.name
            );
            return Err(Failure::Disconnected(reason));
        }
        Ok((connection, 0))
    }

    /// To the last that answers, whatever it is: the rule of this file switched off.
    async fn connect_to_any(&self, options: &NetworkOptions) -> Result<(Box<dyn Connection>, u64), Failure> {
        for host in (0..self.all.len()).rev() {
            if let Some(connection) = self.ask(host, options).await.connection {
                return Ok((connection, 0));
            }
        }
        Err(Failure::Disconnected("none of the hosts answers".to_owned()))
    }

    /// Sees to it that the other hosts have been asked of late. Costs nothing where there are none.
    pub(super) async fn keep_watch(self: &Arc<Self>, options: &NetworkOptions) {
        if !self.has_several() || mutant("m-primary-watch") {
            return;
        }
        let since = {
            let mut known = self.known();
            let since = known.watched.map(|watched| watched.elapsed());
            if known.is_watching || since.is_some_and(|since| since < WATCH_EVERY) {
                return;
            }
            known.is_watching = true;
            since
        };
        let (hosts, options) = (Arc::clone(self), options.clone());
        let watching = tokio::spawn(async move { hosts.watch(&options).await });
        if since.is_some_and(|since| since > WATCH_STALE) {
            let _ = timeout(WATCH_WAIT, watching).await;
        }
    }

    /// Asks the hosts that are not the primary whether one of them is, by now.
    async fn watch(self: &Arc<Self>, options: &NetworkOptions) {
        let (primary, line) = {
            let known = self.known();
            (known.primary, known.line.clone())
        };
        if let (Some(primary), Some(line)) = (primary, line) {
            let mut said: Vec<Said> = vec![Said::Standby; self.all.len()];
            said[primary] = Said::Primary(line.clone());
            let mut asked = self.ask_each(options, |host| host != primary);
            while let Some(answered) = asked.join_next().await {
                if let Ok((host, answer)) = answered {
                    said[host] = answer.said;
                }
            }
            match self.judge(&said) {
                Ok((host, line)) => {
                    self.adopt(host, line);
                }
                // Two primaries of one timeline: neither is used until one of them is gone.
                Err(Failure::Unavailable(reason)) => {
                    tracing::error!(reason, "there are two primaries");
                    self.known().primary = None;
                    self.end_term();
                }
                Err(failure) => tracing::warn!(?failure, "a host of the database is not what it should be"),
            }
        }
        let mut known = self.known();
        known.is_watching = false;
        known.watched = Some(Instant::now());
    }

    /// Asks all hosts at once, but one that is being asked already. One that was promoted after the last primary is taken as
    /// soon as it says so.
    async fn ask_all(
        self: &Arc<Self>,
        options: &NetworkOptions,
        except: Option<usize>,
    ) -> Result<(Box<dyn Connection>, u64), Failure> {
        let known = self.known().line.clone();
        let silent = || Answer {
            said: Said::Silent("it did not answer in time".to_owned()),
            connection: None,
        };
        let mut answers: Vec<Answer> = self.all.iter().map(|_| silent()).collect();
        let mut asked = self.ask_each(options, |host| Some(host) != except);
        while let Some(answered) = asked.join_next().await {
            let Ok((host, answer)) = answered else { continue };
            let is_newer = match (&answer.said, &known) {
                (Said::Primary(line), Some(known)) => {
                    line.system == known.system && line.timeline > known.timeline
                }
                _ => false,
            };
            answers[host] = answer;
            if is_newer {
                break;
            }
        }
        let said: Vec<Said> = answers.iter().map(|answer| answer.said.clone()).collect();
        let (host, line) = self.judge(&said)?;
        let term = self.adopt(host, line);
        let gone = || Failure::Disconnected("another host was promoted meanwhile".to_owned());
        answers.swap_remove(host).connection.zip(term).ok_or_else(gone)
    }

    fn ask_each(
        self: &Arc<Self>,
        options: &NetworkOptions,
        wanted: impl Fn(usize) -> bool,
    ) -> JoinSet<(usize, Answer)> {
        let mut asked = JoinSet::new();
        for host in (0..self.all.len()).filter(|host| wanted(*host)) {
            let (hosts, options) = (Arc::clone(self), options.clone());
            asked.spawn(async move { (host, hosts.ask(host, &options).await) });
        }
        asked
    }

    /// Connects to one host and asks it what it is.
    async fn ask(&self, host: usize, options: &NetworkOptions) -> Answer {
        let connecting = connect_postgres(&self.all[host].connect, self.has_several(), options);
        let said = match timeout(ANSWER_MAX, connecting).await {
            Ok(Ok((connection, said))) => {
                return Answer {
                    said,
                    connection: Some(connection),
                };
            }
            Ok(Err(
                Failure::Disconnected(reason) | Failure::Transient(_, reason) | Failure::Unavailable(reason),
            )) => Said::Silent(reason),
            Ok(Err(Failure::Refused(reason) | Failure::Broken(reason))) => Said::Refused(reason),
            Ok(Err(failure)) => Said::Refused(format!("{failure:?}")),
            Err(_) => Said::Silent("it did not answer in time".to_owned()),
        };
        Answer {
            said,
            connection: None,
        }
    }

    fn judge(&self, said: &[Said]) -> Result<(usize, Line), Failure> {
        let names = self.all.iter().map(|host| host.name.as_str());
        let said: Vec<(&str, Said)> = names.zip(said.iter().cloned()).collect();
        judge(&said, self.known().line.as_ref())
    }

    /// From now on this host is the primary. Answers the term, which is a new one if another was. None if somebody has
    /// found out about a later promotion meanwhile.
    fn adopt(&self, host: usize, line: Line) -> Option<u64> {
        let mut known = self.known();
        if known
            .line
            .as_ref()
            .is_some_and(|newer| newer.timeline > line.timeline)
        {
            return None;
        }
        let before = known.line.replace(line.clone());
        let is_another =
            known.primary.is_some_and(|before| before != host) || before.is_some_and(|before| before != line);
        known.primary = Some(host);
        if is_another {
            let host = &self.all[host].name;
            metrics::counter!("treeline_database_failovers_total").increment(1);
            tracing::warn!(
                host,
                timeline = line.timeline,
                "another host of the database is the primary now"
            );
            self.end_term();
        }
        Some(*self.term.borrow())
    }

    fn end_term(&self) {
        self.term.send_modify(|term| *term += 1);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
