//! The words in which a row is told: hold one request at a point, see what another does meanwhile, let the first go.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};

use anyhow::{Context as _, Result, ensure};
use treeline_core::Kind;
use treeline_tests::{Action, Answer, Client, Hooks, eventually};

use crate::entity::{Call, Entity, Ground};
use crate::holds::Facts;
use crate::lab::Backend;
use crate::pair::{Node, Pair};
use crate::rows::NotBegun;
pub(crate) use crate::sent::{Held, Meanwhile};
use crate::sent::{may_look, send};

/// Which of the two servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Whose request is held.
    A,
    /// Whose request comes meanwhile.
    B,
}
pub(crate) use Side::{A, B};

/// No two rows use one name, nor do two runs on one database.
static TOKENS: AtomicU32 = AtomicU32::new(1);
static RUN: LazyLock<u32> = LazyLock::new(|| fastrand::u32(..));

/// How much a row does of what it does many times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sizes {
    Usual,
    /// The usual sizes, but all rounds of a row that ends at the first failure: one is looked for.
    UntilItFails,
    Whole,
}

/// One row being told, of one kind, on one pair.
pub(crate) struct Race {
    pub(crate) kind: Kind,
    pub(crate) backend: Backend,
    sizes: Sizes,
    pub(crate) pair: Pair,
    /// Which server is A.
    first: usize,
    token: String,
    ground: Arc<Ground>,
    /// The entities that others are made in, by kind.
    above: Vec<Entity>,
    armed: Vec<(Hooks, String, String)>,
    /// Whether a transaction went through that a cluster had to refuse.
    pub(crate) was_not_refused: bool,
}

impl Race {
    pub(crate) fn new(pair: Pair, kind: Kind, swapped: bool, sizes: Sizes) -> Race {
        let number = TOKENS.fetch_add(1, Ordering::Relaxed);
        let provider = match kind {
            Kind::Model | Kind::ModelVersion => "model",
            Kind::Metalake | Kind::Catalog | Kind::Schema | Kind::Fileset => "fileset",
        };
        let files = pair.bed.files();
        Race {
            kind,
            backend: pair.backend,
            sizes,
            pair,
            first: usize::from(swapped),
            token: format!("{:x}n{number}", *RUN),
            ground: Arc::new(Ground { files, provider }),
            above: Vec::new(),
            armed: Vec::new(),
            was_not_refused: false,
        }
    }

    /// The size of something large: the row's own in a soak, the smaller one otherwise.
    pub(crate) fn size(&self, whole: usize, usual: usize) -> usize {
        match self.sizes {
            Sizes::Whole => whole,
            Sizes::Usual | Sizes::UntilItFails => usual,
        }
    }

    /// How often to do what shows a missing rule only where it meets something, and then ends the row.
    pub(crate) fn rounds(&self, whole: usize, usual: usize) -> usize {
        match self.sizes {
            Sizes::Whole | Sizes::UntilItFails => whole,
            Sizes::Usual => usual,
        }
    }

    /// Whether this is a soak, with enough of everything for what chance does to be seen.
    pub(crate) fn is_whole(&self) -> bool {
        self.sizes == Sizes::Whole
    }

    /// Prints what was measured in a soak; elsewhere it is about too little.
    #[expect(
        clippy::print_stderr,
        reason = "figures that no row fails for are for somebody to read"
    )]
    pub(crate) fn says(&self, row: &str, figures: &str) {
        if self.is_whole() {
            eprintln!("{row} {} {}: {figures}", self.backend.name(), self.kind.as_str());
        }
    }

    /// A name for something of the row's kind, under a parent that is there; nothing is there under it yet.
    pub(crate) async fn place(&mut self, name: &str) -> Result<Entity> {
        self.spot(self.kind, name).await
    }

    /// Something of the row's kind that is there.
    pub(crate) async fn present(&mut self, name: &str) -> Result<Entity> {
        self.make(self.kind, name).await
    }

    /// A parent that is there, with nothing in it, and a child of the row's kind to be.
    pub(crate) async fn family(&mut self, name: &str) -> Result<(Entity, Entity)> {
        let parent = self.make(self.kind.parent().unwrap_or(self.kind), name).await?;
        let child = self.child_of(&parent, name);
        Ok((parent, child))
    }

    /// A child of the row's kind, whether its parent is there or not. The first version of a model has no other name.
    pub(crate) fn child_of(&self, parent: &Entity, name: &str) -> Entity {
        match self.kind {
            Kind::ModelVersion => parent.child(self.kind, "0"),
            _ => parent.child(self.kind, self.name(&format!("child_of_{name}"))),
        }
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
        Meanwhile::sent_to(node, self.backend, side, call)
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

    /// One more server on the same database, at the node of this side, with settings of its own.
    pub(crate) async fn start(&self, at: Side, arguments: &[&str]) -> Result<Node> {
        Node::start(&self.pair.bed, self.index(at), arguments)
            .await
            .context(NotBegun)
    }

    /// How the servers of this side reach the database.
    pub(crate) fn database_url(&self, of: Side) -> &str {
        self.pair.bed.database_url(self.index(of))
    }

    /// How often both servers have run a transaction again so far, after a deadlock most often.
    pub(crate) async fn retries(&self) -> Result<u64> {
        Ok(self.node(A).retries().await? + self.node(B).retries().await?)
    }

    /// What the database holds now.
    pub(crate) async fn facts(&self) -> Result<Facts> {
        Ok(Facts::new(self.pair.rows().await?))
    }

    /// What must hold after every row, whatever it was about.
    pub(crate) async fn end(&mut self) -> Result<()> {
        self.facts().await?.hold_together(&format!("_{}", self.token))?;
        self.pair.check().await?;
        self.all_were_refused()
    }

    /// Lets go of whatever a row that failed has left held.
    pub(crate) async fn let_go(&mut self) {
        for (hooks, point, name) in self.armed.drain(..) {
            // A server that the row has killed holds nothing, and a container that is gone does not even refuse.
            let mut nodes = self.pair.nodes.iter_mut();
            if nodes.any(|node| node.hooks == hooks && node.server.is_alive()) {
                let _ = hooks.release(&point, &name).await;
            }
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
