//! The words in which a row is told: hold one request at a point, see what another does meanwhile, let the first go.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tokio::task::JoinHandle;
use treeline_core::Kind;
use treeline_tests::{Action, Answer, Client, Hooks, eventually};

use crate::entity::{Call, Entity, Ground};
use crate::holds::Facts;
use crate::lab::Backend;
use crate::pair::{Node, Pair};

/// Which of the two servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Whose request is held.
    A,
    /// Whose request comes meanwhile.
    B,
}
pub(crate) use Side::{A, B};

/// A request that nobody holds up is answered within this, however busy the machine is. Far below the servers' own
/// bounds, so that an answer which came only because a wait was given up does not pass.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// InnoDB shows who waits as it was at somebody's last look, unless nobody has looked for 100 ms.
const BETWEEN_LOOKS: Duration = Duration::from_millis(150);

/// When somebody looked last, a backend.
static LAST_LOOKS: Mutex<[Option<Instant>; Backend::ALL.len()]> = Mutex::new([None; Backend::ALL.len()]);

/// No two rows of one run use one name.
static TOKENS: AtomicU32 = AtomicU32::new(1);

/// One row being told, of one kind, on one pair.
pub(crate) struct Race {
    pub(crate) kind: Kind,
    pub(crate) backend: Backend,
    pub(crate) soak: bool,
    pub(crate) pair: Pair,
    /// Which server is A.
    first: usize,
    token: String,
    ground: Arc<Ground>,
    /// The entities that others are made in, by kind.
    above: Vec<Entity>,
    armed: Vec<(Hooks, String, String)>,
}

impl Race {
    pub(crate) fn new(pair: Pair, kind: Kind, swapped: bool, soak: bool) -> Race {
        let number = TOKENS.fetch_add(1, Ordering::Relaxed);
        let provider = match kind {
            Kind::Model | Kind::ModelVersion => "model",
            Kind::Metalake | Kind::Catalog | Kind::Schema | Kind::Fileset => "fileset",
        };
        let files = pair.bed.files();
        Race {
            kind,
            backend: pair.backend,
            soak,
            pair,
            first: usize::from(swapped),
            token: format!("{number}"),
            ground: Arc::new(Ground { files, provider }),
            above: Vec::new(),
            armed: Vec::new(),
        }
    }

    /// The size of something large: the row's own with `--soak`, the smaller one otherwise.
    pub(crate) fn size(&self, whole: usize, usual: usize) -> usize {
        if self.soak { whole } else { usual }
    }

    /// A name for something of the row's kind, under a parent that is there; nothing is there under it yet.
    pub(crate) async fn place(&mut self, name: &str) -> Result<Entity> {
        self.spot(self.kind, name).await
    }

    /// Something of the row's kind that is there.
    pub(crate) async fn present(&mut self, name: &str) -> Result<Entity> {
        self.make(self.kind, name).await
    }

    /// Something of any kind that is there.
    pub(crate) async fn make(&mut self, kind: Kind, name: &str) -> Result<Entity> {
        let made = self.spot(kind, name).await?;
        self.done(A, &made.create()).await?;
        Ok(made)
    }

    /// A name for something of any kind, under a parent that is there.
    pub(crate) async fn spot(&mut self, kind: Kind, name: &str) -> Result<Entity> {
        let name = match kind {
            Kind::ModelVersion => name.to_owned(),
            Kind::Metalake | Kind::Catalog | Kind::Schema | Kind::Fileset | Kind::Model => self.name(name),
        };
        let mut parent: Option<Entity> = None;
        let lineage = kind.lineage();
        for level in lineage.iter().take(lineage.len() - 1) {
            let known = self.above.iter().find(|entity| entity.kind == *level);
            let entity = match (known, &parent) {
                (Some(entity), _) => entity.clone(),
                (None, parent) => {
                    let entity = self.under(parent.as_ref(), *level, self.name("above"));
                    self.done(A, &entity.create()).await?;
                    self.above.push(entity.clone());
                    entity
                }
            };
            parent = Some(entity);
        }
        Ok(self.under(parent.as_ref(), kind, name))
    }

    fn under(&self, parent: Option<&Entity>, kind: Kind, name: String) -> Entity {
        match parent {
            Some(parent) => parent.child(kind, name),
            None => Entity::metalake(name, Arc::clone(&self.ground)),
        }
    }

    /// A name of this row's own.
    pub(crate) fn name(&self, name: &str) -> String {
        format!("{name}_{}", self.token)
    }

    pub(crate) fn node(&self, side: Side) -> &Node {
        &self.pair.nodes[self.index(side)]
    }

    pub(crate) fn client(&self, side: Side) -> Client {
        self.node(side).server.client()
    }

    const fn index(&self, side: Side) -> usize {
        match side {
            A => self.first,
            B => 1 - self.first,
        }
    }

    /// Sends a request that nobody holds up, and answers what the server says.
    pub(crate) async fn tell(&self, side: Side, call: &Call) -> Result<Answer> {
        self.meanwhile(side, call).finishes().await
    }

    /// The same, and it must succeed.
    pub(crate) async fn done(&self, side: Side, call: &Call) -> Result<Answer> {
        let answer = self.tell(side, call).await?;
        answer
            .ok()
            .with_context(|| format!("{} {}", call.method, call.path))
    }

    /// Sends a request and holds it at a point.
    pub(crate) async fn hold(&mut self, side: Side, call: &Call, point: &str) -> Result<Held> {
        let point = call.point(point).to_owned();
        let hooks = self.node(side).hooks;
        self.armed.push((hooks, point.clone(), call.name.clone()));
        Held::at(self.node(side), side, call, &point).await
    }

    /// Sends a request that fails at a point, and answers what the server says; it may be a 5xx.
    pub(crate) async fn fail(&self, side: Side, call: &Call, point: &str) -> Result<Answer> {
        let (hooks, point) = (self.node(side).hooks, call.point(point));
        hooks.arm(point, &call.name, Action::Fail).await?;
        let answer = send(self.client(side), side, call).await?;
        hooks.release(point, &call.name).await?;
        answer
    }

    /// Sends a request while another is held.
    pub(crate) fn meanwhile(&self, side: Side, call: &Call) -> Meanwhile {
        self.meanwhile_on(self.node(side), side, call)
    }

    /// The same to any server.
    pub(crate) fn meanwhile_on(&self, node: &Node, side: Side, call: &Call) -> Meanwhile {
        Meanwhile {
            backend: self.backend,
            hooks: node.hooks,
            what: format!("{} {}", call.method, call.path),
            task: send(node.server.client(), side, call),
        }
    }

    /// Waits until that many wait for a lock, where each waits in the database; where one writer waits for all that
    /// queue behind it, one.
    pub(crate) async fn shows_waiting(&self, node: &Node, count: u64) -> Result<()> {
        let expected = if self.backend.has_one_writer() { 1 } else { count };
        eventually(&format!("{count} wait"), async || {
            Ok(may_look(self.backend) && node.hooks.blocked().await? >= expected)
        })
        .await
    }

    /// A crash of one server.
    pub(crate) async fn kill(&mut self, side: Side) -> Result<()> {
        let index = self.index(side);
        self.pair.nodes[index].server.kill().await
    }

    /// One more server on the same database, with settings of its own.
    pub(crate) async fn start(&self, arguments: &[&str]) -> Result<Node> {
        Node::start(&self.pair.bed, arguments).await
    }

    /// What the database holds now.
    pub(crate) async fn facts(&self) -> Result<Facts> {
        Ok(Facts::new(self.pair.rows().await?))
    }

    /// What must hold after every row, whatever it was about.
    pub(crate) async fn end(&mut self) -> Result<()> {
        self.facts().await?.hold_together(&format!("_{}", self.token))?;
        self.pair.check().await
    }

    /// Lets go of whatever a row that failed has left held.
    pub(crate) async fn let_go(&mut self) {
        for (hooks, point, name) in self.armed.drain(..) {
            // The server may have been killed by the row; then it holds nothing.
            let _ = hooks.release(&point, &name).await;
        }
    }
}

/// Whether a look at who waits shows what is so now. If not, another one a little later does.
fn may_look(backend: Backend) -> bool {
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

type Sent = JoinHandle<Result<Answer>>;

/// Each side has a principal of its own, so that rows tell who wrote them.
fn send(mut client: Client, side: Side, call: &Call) -> Sent {
    let call = call.clone();
    tokio::spawn(async move {
        let principal = match side {
            A => "Basic YTp4",
            B => "Basic Yjp4",
        };
        let mut headers = vec![("authorization", principal)];
        headers.extend(call.headers.iter().map(|(name, value)| (*name, value.as_str())));
        client.send(call.method, &call.path, &headers, &call.body).await
    })
}

/// Who is told what a request answered: nothing may be a fault of the server.
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
        within(&what, self.task).await
    }

    /// Its server was killed: the client sees a broken connection.
    pub(crate) async fn is_cut(self) -> Result<()> {
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

    /// It is answered though another is held.
    pub(crate) async fn finishes(self) -> Result<Answer> {
        within(&self.what, self.task).await
    }

    /// It is answered now that nothing is held any more.
    pub(crate) async fn answers(self) -> Result<Answer> {
        within(&self.what, self.task).await
    }

    /// Whether it has been answered.
    pub(crate) fn is_answered(&self) -> bool {
        self.task.is_finished()
    }
}

async fn within(what: &str, mut task: Sent) -> Result<Answer> {
    match tokio::time::timeout(ANSWER_WITHIN, &mut task).await {
        Ok(answer) => sound(what, answer??),
        Err(_) => {
            task.abort();
            bail!("{what} was not answered within {ANSWER_WITHIN:?}")
        }
    }
}

/// Fails unless a drop says whether it dropped anything.
pub(crate) fn dropped(answer: &Answer, expected: bool) -> Result<()> {
    ensure!(
        answer.status == 200 && answer.json["dropped"] == expected,
        "expected dropped: {expected}, got {}: {}",
        answer.status,
        answer.text
    );
    Ok(())
}

/// Fails unless what is missing is shown as the kind above this one.
pub(crate) fn parent_is_missing(answer: &Answer, of: Kind) -> Result<()> {
    answer.refused(404, 1003)?;
    let stem = of.parent().map_or("", |parent| parent.row().exception_stem);
    let expected = format!("NoSuch{stem}Exception");
    ensure!(
        answer.exception() == expected,
        "expected {expected}, got {}",
        answer.exception()
    );
    Ok(())
}
