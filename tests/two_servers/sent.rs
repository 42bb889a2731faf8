//! Requests on their way: one that is held at a point, and one that was sent meanwhile.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tokio::task::JoinHandle;
use treeline_tests::{Action, Answer, Client, Hooks, eventually};

use crate::entity::{AUTHORIZATION, Call, PRINCIPAL_A, PRINCIPAL_B};
use crate::lab::Backend;
use crate::pair::Node;
use crate::race::{A, B, Side};

/// A request that nobody holds up is answered within this, however busy the machine is. Far below the servers' own
/// bounds, so that an answer which came only because a wait was given up does not pass.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// InnoDB shows who waits as it was at somebody's last look, unless nobody has looked for 100 ms.
const BETWEEN_LOOKS: Duration = Duration::from_millis(150);

/// When somebody looked last, a backend.
static LAST_LOOKS: Mutex<[Option<Instant>; Backend::ALL.len()]> = Mutex::new([None; Backend::ALL.len()]);

/// Whether a look at who waits shows what is so now. If not, another one a little later does.
pub(crate) fn may_look(backend: Backend) -> bool {
    if matches!(backend, Backend::Sqlite | Backend::Postgres) {
        return true;
    }
    let mut looks = LAST_LOOKS.lock().unwrap_or_else(PoisonError::into_inner);
    let last = &mut looks[backend as usize];
    let may = last.is_none_or(|last| last.elapsed() >= BETWEEN_LOOKS);
    if may {
        *last = Some(Instant::now());
    }
    may
}

/// A request on its way.
pub(crate) type Sent = JoinHandle<Result<Answer>>;

/// Each side has a principal of its own, so that rows tell who wrote them.
pub(crate) fn send(mut client: Client, side: Side, call: &Call) -> Sent {
    let call = call.clone();
    tokio::spawn(async move {
        let mut headers: Vec<(&str, &str)> = call
            .headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        if !headers.iter().any(|(name, _)| *name == AUTHORIZATION) {
            let principal = match side {
                A => PRINCIPAL_A,
                B => PRINCIPAL_B,
            };
            headers.push((AUTHORIZATION, principal));
        }
        client.send(call.method, &call.path, &headers, &call.body).await
    })
}

/// Nothing that a request is answered may be a fault of the server.
fn sound(what: &str, answer: Answer) -> Result<Answer> {
    ensure!(
        answer.status < 500,
        "{what} was answered {}: {}",
        answer.status,
        answer.text
    );
    Ok(answer)
}

/// A request that is held.
#[derive(Debug)]
#[must_use = "what is held must be let go"]
pub(crate) struct Held {
    hooks: Hooks,
    point: String,
    call: Call,
    task: Sent,
}

impl Held {
    /// Sends a request to any server and holds it at a point.
    pub(crate) async fn at(node: &Node, side: Side, call: &Call, point: &str) -> Result<Held> {
        node.hooks.arm(point, &call.name, Action::Pause).await?;
        let mut held = Held {
            hooks: node.hooks,
            point: point.to_owned(),
            call: call.clone(),
            task: send(node.server.client(), side, call),
        };
        held.arrives(point).await?;
        Ok(held)
    }

    /// Lets it go on to another point, and holds it there.
    pub(crate) async fn goes_on_to(&mut self, point: &str) -> Result<()> {
        let point = self.call.point(point).to_owned();
        self.hooks.arm(&point, &self.call.name, Action::Pause).await?;
        self.hooks.release(&self.point, &self.call.name).await?;
        self.arrives(&point).await?;
        self.point = point;
        Ok(())
    }

    /// Lets it go and answers what the server says.
    pub(crate) async fn goes_on(self) -> Result<Answer> {
        self.hooks.release(&self.point, &self.call.name).await?;
        let what = format!("{} {}", self.call.method, self.call.path);
        within(ANSWER_WITHIN, &what, self.task).await
    }

    /// Lets it go, and does not wait for what the server says.
    pub(crate) async fn leaves(self, backend: Backend) -> Result<Meanwhile> {
        self.hooks.release(&self.point, &self.call.name).await?;
        Ok(Meanwhile {
            backend,
            hooks: self.hooks,
            what: format!("{} {}", self.call.method, self.call.path),
            task: self.task,
        })
    }

    /// Its client goes away; then it is let go.
    pub(crate) async fn ends_abandoned(self) -> Result<()> {
        self.task.abort();
        let ended = self.task.await;
        ensure!(ended.is_err(), "it was answered before its client went away");
        self.hooks.release(&self.point, &self.call.name).await
    }

    /// Its server was killed: the client sees a broken connection.
    pub(crate) async fn ends_cut(self) -> Result<()> {
        match tokio::time::timeout(ANSWER_WITHIN, self.task).await?? {
            Err(_) => Ok(()),
            Ok(answer) => bail!("a killed server answered {}: {}", answer.status, answer.text),
        }
    }

    async fn arrives(&mut self, point: &str) -> Result<()> {
        tokio::select! {
            reached = self.hooks.reached(point, &self.call.name) => reached,
            answer = &mut self.task => {
                let answer = answer??;
                bail!("{} {} never came to {point}; it was answered {}: {}",
                    self.call.method, self.call.path, answer.status, answer.text)
            }
        }
    }
}

/// A request that was sent while another is held.
#[derive(Debug)]
#[must_use = "what is sent must be answered"]
pub(crate) struct Meanwhile {
    backend: Backend,
    hooks: Hooks,
    what: String,
    task: Sent,
}

impl Meanwhile {
    pub(crate) fn sent_to(node: &Node, backend: Backend, side: Side, call: &Call) -> Meanwhile {
        Meanwhile {
            backend,
            hooks: node.hooks,
            what: format!("{} {}", call.method, call.path),
            task: send(node.server.client(), side, call),
        }
    }

    /// It has not answered, and the database says that it waits.
    pub(crate) async fn waits(&mut self) -> Result<()> {
        let (backend, hooks, task) = (self.backend, self.hooks, &self.task);
        eventually("the database shows the wait", async || {
            if task.is_finished() {
                return Ok(true);
            }
            Ok(may_look(backend) && hooks.blocked().await? > 0)
        })
        .await
        .with_context(|| self.what.clone())?;
        if self.task.is_finished() {
            let answer = (&mut self.task).await??;
            bail!(
                "{} did not wait; it was answered {}: {}",
                self.what,
                answer.status,
                answer.text
            );
        }
        Ok(())
    }

    /// It waits for what is held, or is answered where it writes at another node of a cluster, which knows nothing of that.
    pub(crate) async fn waits_or_is_elsewhere(&mut self) -> Result<()> {
        if !self.backend.has_two_primaries() {
            return self.waits().await;
        }
        eventually("it is answered", async || Ok(self.task.is_finished())).await
    }

    /// It is answered though another is held.
    pub(crate) async fn finishes(self) -> Result<Answer> {
        within(ANSWER_WITHIN, &self.what, self.task).await
    }

    /// It is answered now that nothing is held any more.
    pub(crate) async fn answers(self) -> Result<Answer> {
        within(ANSWER_WITHIN, &self.what, self.task).await
    }

    /// It is answered by and by.
    pub(crate) async fn answers_within(self, bound: Duration) -> Result<Answer> {
        within(bound, &self.what, self.task).await
    }

    /// Whether it has been answered.
    pub(crate) fn is_answered(&self) -> bool {
        self.task.is_finished()
    }
}

async fn within(bound: Duration, what: &str, mut task: Sent) -> Result<Answer> {
    match tokio::time::timeout(bound, &mut task).await {
        Ok(answer) => sound(what, answer??),
        Err(_) => {
            task.abort();
            bail!("{what} was not answered within {bound:?}")
        }
    }
}
