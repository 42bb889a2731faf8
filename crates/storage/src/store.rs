//! The calls that the rest of the workspace may make. Each is a whole transaction, or a read: no handle to either
//! ever leaves this crate.

use std::fmt;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use treeline_core::{
    Alias, Draft, Entity, EntityId, Error, Kind, Name, NewEntity, Path, Payload, Result, Version,
};

use crate::alter::{self, Change, Next};
use crate::check::{Check, DumpAll, Finding};
use crate::context::WriteContext;
use crate::create::{Create, Created, NewRow};
use crate::dialect::sqlite::SQLITE;
use crate::drop::{Drop, DropRule};
use crate::failure::Failure;
use crate::hooks::sync_point;
use crate::idempotency::{self, ForgetKeys, Outcome};
use crate::ids::Ids;
use crate::link::Link;
use crate::lock::Parent;
use crate::migrate::{self, MigrateReport};
use crate::network::{self, Network};
use crate::read::{FindAlias, ListNames, ListRecords, Purge};
use crate::record::{Record, decode_payload, encode_payload};
use crate::resolve::{Resolve, Resolved};
use crate::side::{AliasChange, NewLocation};
use crate::sql::Rendered;
use crate::sqlite::Sqlite;
use crate::tasks::{Claim, ClaimTasks, EndTask, Ending, RemovalPending, Task, TaskFilter};
use crate::transaction::{Backend, Database, Reading, Work};

/// How to open a store.
#[derive(Clone)]
pub struct StoreOptions {
    /// Which database: `sqlite:` and a file's path, or a `postgres:`, `mysql:` or `mariadb:` URL.
    pub url: String,
    /// The password, if it does not stand in the URL.
    pub password: Option<String>,
    /// Connections to a database server. Four a core is a good number; more make everybody slower.
    pub connections_max: usize,
    /// The bound of a wait for a connection, in milliseconds.
    pub acquire_ms_max: u64,
    /// How often an update is tried again after it lost its version check (`occ.max_retries`).
    pub occ_retries_max: u32,
    /// The bound of one operation, waits and retries included, in milliseconds.
    pub operation_ms_max: u64,
    /// How long a claimed task belongs to its claimer, in milliseconds.
    pub task_lease_ms: i64,
}

impl StoreOptions {
    /// The defaults for a database.
    pub fn new(url: impl Into<String>) -> StoreOptions {
        StoreOptions {
            url: url.into(),
            password: None,
            connections_max: 8,
            acquire_ms_max: 3_000,
            occ_retries_max: 3,
            operation_ms_max: 10_000,
            task_lease_ms: 30_000,
        }
    }
}

impl fmt::Debug for StoreOptions {
    /// Shows the scheme of the URL only: the rest may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.url.split(':').next().unwrap_or_default();
        f.debug_struct("StoreOptions")
            .field("scheme", &scheme)
            .finish_non_exhaustive()
    }
}

/// A store of entities. Cheap to clone; all clones share one set of connections.
#[derive(Clone, Debug)]
pub struct Store {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    backend: Backend,
    ids: Arc<Ids>,
    options: StoreOptions,
}

/// How [`Store::create_with_locations`] ended, if not with an error.
#[derive(Debug)]
pub enum CreatedWithLocations<P> {
    /// It is there. The tasks are claimed for the caller, who makes the directories and settles them.
    Done(Entity<P>, Vec<Task>),
    /// A dropped fileset's directory at or around one of the locations is still to be removed. Nothing was written;
    /// help with [`TaskFilter::RemovalsAround`] and try again.
    Blocked,
}

impl Store {
    /// Opens a database. An empty one is initialised, and the embedded default upgrades an older schema itself.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a URL that names no database, or a schema newer than this binary;
    /// [`Error::Unavailable`] for a database that cannot be reached.
    pub async fn open(options: StoreOptions) -> Result<Store> {
        let database = match network::parse(&options)? {
            Some(network) => {
                migrate::migrate_network(&network, false)
                    .await
                    .map_err(cannot_open)?;
                Database::Network(Network::new(network))
            }
            None => {
                let file = sqlite_file(&options.url)?;
                blocking(move || {
                    migrate::migrate_sqlite(&file)?;
                    Ok(Database::Sqlite(Sqlite::open(&file, Rendered::new(&SQLITE))?))
                })
                .await?
            }
        };
        let backend = Backend {
            database,
            operation_ms_max: options.operation_ms_max,
        };
        Ok(Store {
            shared: Arc::new(Shared {
                backend,
                ids: Arc::new(Ids::new()),
                options,
            }),
        })
    }

    /// Brings a database to this binary's schema and does nothing else.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub async fn migrate(options: StoreOptions) -> Result<MigrateReport> {
        match network::parse(&options)? {
            Some(network) => migrate::migrate_network(&network, true)
                .await
                .map_err(cannot_open),
            None => {
                let file = sqlite_file(&options.url)?;
                blocking(move || migrate::migrate_sqlite(&file)).await
            }
        }
    }

    /// Reads what a path names now. [`Error::NotFound`] names the level that is missing.
    pub async fn resolve(&self, path: &Path) -> Result<Resolved> {
        self.read(
            Reading::Point,
            Resolve {
                path: path.clone(),
                with_payloads: false,
            },
        )
        .await
    }

    /// The same, with the payloads of the levels above.
    pub async fn resolve_with_payloads(&self, path: &Path) -> Result<Resolved> {
        self.read(
            Reading::Point,
            Resolve {
                path: path.clone(),
                with_payloads: true,
            },
        )
        .await
    }

    /// The names of one kind under a row (none: the root), in byte order, without reading payloads.
    pub async fn list_names(&self, parent: Option<&Resolved>, kind: Kind) -> Result<Vec<Name>> {
        let parent = parent.map_or(EntityId::ROOT, Resolved::id);
        self.read(Reading::List, ListNames { parent, kind }).await
    }

    /// The entities of one kind under a row (none: the root), in byte order of their names.
    pub async fn list<P: Payload>(&self, parent: Option<&Resolved>) -> Result<Vec<Entity<P>>> {
        let parent = parent.map_or(EntityId::ROOT, Resolved::id);
        let records = self
            .read(
                Reading::Snapshot,
                ListRecords {
                    parent,
                    kind: P::KIND,
                },
            )
            .await?;
        records.into_iter().map(Record::into_entity).collect()
    }

    /// The number of the model's version that an alias names now.
    pub async fn version_of_alias(&self, model: &Resolved, alias: &Alias) -> Result<Option<Name>> {
        self.read(
            Reading::Point,
            FindAlias {
                model: model.id(),
                alias: alias.clone(),
            },
        )
        .await
    }

    /// The entity that a write under this idempotency key has answered already, if there was one (P11). Asked before
    /// anything is resolved, since a repeat must get its answer whatever became of the rows.
    ///
    /// # Errors
    /// [`Error::KeyReused`] if another request used the key.
    pub async fn recall_entity<P: Payload>(&self, context: &WriteContext) -> Result<Option<Entity<P>>> {
        let Some(text) = self.recall(context).await? else {
            return Ok(None);
        };
        let record = <Record as Outcome>::decode(&text).map_err(|failure| failure.into_error("recall"))?;
        record.into_entity().map(Some)
    }

    /// Whether a drop under this idempotency key dropped anything, if there was one.
    ///
    /// # Errors
    /// As [`Store::recall_entity`].
    pub async fn recall_drop(&self, context: &WriteContext) -> Result<Option<bool>> {
        let Some(text) = self.recall(context).await? else {
            return Ok(None);
        };
        let version = <Option<Version> as Outcome>::decode(&text);
        version
            .map(|version| Some(version.is_some()))
            .map_err(|failure| failure.into_error("recall"))
    }

    /// Creates an entity under a resolved parent (none: the root) (P1).
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] for all but one of any number of creators of a name; [`Error::NotFound`] of the parent
    /// if it is gone or called otherwise by now; [`Error::NotInUse`] if it is disabled by now.
    pub async fn create<P: Payload>(
        &self,
        context: &WriteContext,
        parent: Option<&Resolved>,
        new: NewEntity<P>,
    ) -> Result<Entity<P>> {
        match self
            .create_with_locations(context, parent, new, Vec::new())
            .await?
        {
            CreatedWithLocations::Done(entity, _) => Ok(entity),
            CreatedWithLocations::Blocked => {
                Err(Error::internal("a create without locations was blocked by one"))
            }
        }
    }

    /// Creates an entity that keeps files, with a claimed task for each directory that is to be made.
    ///
    /// # Errors
    /// As [`Store::create`].
    pub async fn create_with_locations<P: Payload>(
        &self,
        context: &WriteContext,
        parent: Option<&Resolved>,
        new: NewEntity<P>,
        locations: Vec<NewLocation>,
    ) -> Result<CreatedWithLocations<P>> {
        let path = match parent {
            Some(parent) => parent.path().child(P::KIND, new.name.clone()),
            None => Path::metalake(new.name.clone()),
        };
        let row = NewRow {
            kind: P::KIND,
            name: new.name,
            provider: new.payload.provider(),
            payload: encode_payload(&new.payload)?,
        };
        let create = Create {
            context: context.clone(),
            ids: Arc::clone(&self.shared.ids),
            parent: Parent::of(parent),
            path,
            metalake_id: parent.map(Resolved::metalake_id),
            row,
            locations,
            claim: self.claim()?,
        };
        let name = create.row.name.clone();
        sync_point!("create.resolved", name.as_str());
        let created = self.write_keyed(context, create).await?;
        sync_point!("create.committed", name.as_str());
        match created {
            Created::Done(record, tasks) => Ok(CreatedWithLocations::Done(record.into_entity()?, tasks)),
            Created::Blocked => Ok(CreatedWithLocations::Blocked),
        }
    }

    /// Applies a change to a resolved entity (P2), under another name too (P4). The change may run several times, each
    /// time on a newer row; it must be pure.
    ///
    /// # Errors
    /// Whatever the change refuses; [`Error::NotFound`] if the row is gone or called otherwise by now;
    /// [`Error::AlreadyExists`] for a name or an alias that is taken; [`Error::PreconditionFailed`] if the client pinned
    /// another version; [`Error::Conflict`] past the bounded attempts.
    pub async fn alter<P, F>(
        &self,
        context: &WriteContext,
        resolved: Resolved,
        change: F,
    ) -> Result<Entity<P>>
    where
        P: Payload,
        F: Fn(&mut Draft<P>) -> Result<()> + Send + Sync + 'static,
    {
        let erased: Change = Arc::new(move |record| {
            let before: P = decode_payload(record.id, record.kind, &record.payload)?;
            let mut draft = Draft {
                name: record.name.clone(),
                in_use: record.in_use,
                payload: before.clone(),
            };
            change(&mut draft)?;
            let aliases = match (before.aliases(), draft.payload.aliases()) {
                (Some(before), Some(after)) => AliasChange::between(before, after),
                (None, _) | (_, None) => AliasChange::default(),
            };
            Ok(Next {
                name: draft.name,
                in_use: draft.in_use,
                payload: encode_payload(&draft.payload)?,
                aliases,
            })
        });
        let retries_max = self.shared.options.occ_retries_max;
        alter::alter(
            &self.shared.backend,
            retries_max,
            context,
            &Arc::new(resolved),
            erased,
        )
        .await
        .map_err(|failure| failure.into_error("update"))?
        .into_entity()
    }

    /// Links a version to a resolved model: the next number, a strict create and its aliases in one transaction.
    ///
    /// # Errors
    /// [`Error::NotFound`] of the model; [`Error::AlreadyExists`] for an alias that another version holds.
    pub async fn link<P: Payload>(
        &self,
        context: &WriteContext,
        model: Resolved,
        version: &P,
    ) -> Result<Entity<P>> {
        let attach = version
            .aliases()
            .map(|aliases| aliases.iter().cloned().collect())
            .unwrap_or_default();
        let link = Link {
            context: context.clone(),
            ids: Arc::clone(&self.shared.ids),
            model: Arc::new(model),
            payload: encode_payload(version)?,
            aliases: AliasChange {
                attach,
                detach: Vec::new(),
            },
        };
        sync_point!("link.resolved", link.model.path().name().as_str());
        self.write_keyed(context, link).await?.into_entity()
    }

    /// Drops what was resolved (P3). `false` if it is gone, or called otherwise, by now.
    ///
    /// # Errors
    /// [`Error::NotEmpty`] and [`Error::InUse`] as the rule says; [`Error::PreconditionFailed`] if the client pinned
    /// another version.
    pub async fn drop(&self, context: &WriteContext, resolved: Resolved, rule: DropRule) -> Result<bool> {
        let ids = Arc::clone(&self.shared.ids);
        let drop = Drop {
            context: context.clone(),
            ids,
            resolved: Arc::new(resolved),
            rule,
        };
        let name = drop.resolved.path().name().clone();
        sync_point!("drop.resolved", name.as_str());
        #[cfg(feature = "test-hooks")]
        let drop = if crate::hooks::mutant("m-drop-by-name") {
            let successor = self.resolve(drop.resolved.path()).await?;
            Drop {
                resolved: Arc::new(successor),
                ..drop
            }
        } else {
            drop
        };
        let dropped = self.write_keyed(context, drop).await?.is_some();
        sync_point!("drop.committed", name.as_str());
        Ok(dropped)
    }

    /// Whether the tree of a dropped fileset at, above or below this location is still to be removed.
    pub async fn removal_pending(&self, location: &str) -> Result<bool> {
        self.read(
            Reading::Point,
            RemovalPending {
                location: location.to_owned(),
            },
        )
        .await
    }

    /// Claims up to `limit` tasks. The claim lasts [`Store::task_lease_ms`]; extend it for longer work.
    pub async fn claim_tasks(&self, filter: TaskFilter, limit: u16) -> Result<Vec<Task>> {
        self.write(ClaimTasks {
            filter,
            limit: i64::from(limit),
            claim: self.claim()?,
        })
        .await
    }

    /// The task is done. `false` if its claim had run out, so that somebody else may have done it too.
    pub async fn settle_task(&self, task: &Task) -> Result<bool> {
        self.end_task(task, Ending::Settled).await
    }

    /// The task goes on. `false` if its claim has run out.
    pub async fn extend_task(&self, task: &Task) -> Result<bool> {
        self.end_task(
            task,
            Ending::Extended {
                lease_ms: self.task_lease_ms(),
            },
        )
        .await
    }

    /// The task failed, and is free again after `wait_ms`.
    pub async fn release_task(&self, task: &Task, wait_ms: i64, error: &str) -> Result<bool> {
        self.end_task(
            task,
            Ending::Released {
                wait_ms,
                error: error.to_owned(),
            },
        )
        .await
    }

    /// How long a claim lasts, in milliseconds.
    pub fn task_lease_ms(&self) -> i64 {
        self.shared.options.task_lease_ms
    }

    /// Purges rows that were dropped longer than `retention_ms` ago, in bounded batches. Answers how many.
    pub async fn purge(&self, retention_ms: i64) -> Result<u64> {
        let mut purged = 0;
        loop {
            match self.write(Purge { retention_ms }).await? {
                0 => return Ok(purged),
                batch => purged += batch,
            }
        }
    }

    /// Forgets idempotency keys older than that, in bounded batches. Answers how many.
    pub async fn forget_keys(&self, older_than_ms: i64) -> Result<u64> {
        let mut forgotten = 0;
        loop {
            match self.write(ForgetKeys { older_than_ms }).await? {
                0 => return Ok(forgotten),
                batch => forgotten += batch,
            }
        }
    }

    /// Audits the database against every invariant that its rows can show.
    pub async fn check(&self) -> Result<Vec<Finding>> {
        self.read(Reading::Snapshot, Check).await
    }

    /// Every row of every table as JSON lines, as of one moment. Holds all of it in memory: it is for tests and for
    /// people with a question.
    pub async fn dump(&self) -> Result<String> {
        self.read(Reading::Snapshot, DumpAll).await
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<()> {
        let probe = Resolve {
            path: Path::metalake(Name::new("treeline_probe")?),
            with_payloads: false,
        };
        match self.read(Reading::Point, probe).await {
            Ok(_) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// How many sessions of this database wait for a row lock (SQLite: writes of this process that wait for others).
    #[cfg(feature = "test-hooks")]
    pub async fn blocked(&self) -> Result<usize> {
        match &self.shared.backend.database {
            Database::Sqlite(sqlite) => Ok(sqlite.blocked()),
            Database::Network(_) => self.read(Reading::Point, crate::check::CountBlocked).await,
        }
    }

    async fn end_task(&self, task: &Task, ending: Ending) -> Result<bool> {
        self.write(EndTask {
            task: Arc::new(task.clone()),
            ending,
        })
        .await
    }

    fn claim(&self) -> Result<Claim> {
        let holder = self
            .shared
            .ids
            .next()
            .map_err(|failure| failure.into_error("claim"))?;
        Ok(Claim {
            holder: holder.to_string(),
            lease_ms: self.task_lease_ms(),
        })
    }

    async fn write_keyed<W: Work>(&self, context: &WriteContext, work: W) -> Result<W::Output>
    where
        W::Output: Outcome + Sync,
    {
        let written = idempotency::write(&self.shared.backend, context, work).await;
        written.map_err(|failure| failure.into_error(W::NAME))
    }

    /// What the idempotency key of this context has done already, as the text of its outcome.
    async fn recall(&self, context: &WriteContext) -> Result<Option<String>> {
        let recalled = idempotency::recall(&self.shared.backend, context).await;
        recalled.map_err(|failure| failure.into_error("recall"))
    }

    async fn write<W: Work>(&self, work: W) -> Result<W::Output> {
        self.shared
            .backend
            .write(work)
            .await
            .map_err(|failure| failure.into_error(W::NAME))
    }

    async fn read<W: Work>(&self, reading: Reading, work: W) -> Result<W::Output> {
        self.shared
            .backend
            .read(reading, work)
            .await
            .map_err(|failure| failure.into_error(W::NAME))
    }
}

fn sqlite_file(url: &str) -> Result<PathBuf> {
    match url.strip_prefix("sqlite:") {
        Some(path) if !path.trim().is_empty() => {
            Ok(FilePath::new(path.strip_prefix("//").unwrap_or(path)).to_owned())
        }
        Some(_) | None => {
            let reason = "is none of sqlite:FILE, postgres://…, mysql://…, mariadb://…";
            Err(Error::invalid("database", reason))
        }
    }
}

/// An operator sees this one on the terminal: it says what the database said, and which key to mend.
fn cannot_open(failure: Failure) -> Error {
    match failure {
        Failure::Answer(error) => error,
        Failure::Refused(detail) | Failure::Broken(detail) => Error::invalid("database", detail),
        Failure::Disconnected(detail) | Failure::Unavailable(detail) | Failure::Transient(detail) => {
            Error::ConnectionFailed {
                target: "the database".to_owned(),
                reason: detail,
            }
        }
        Failure::Lost | Failure::Unique(_) | Failure::Liveness => Error::invalid(
            "database",
            format!("it holds tables that are not ours: {failure:?}"),
        ),
    }
}

/// Runs file work away from the executor's threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::result::Result<T, Failure> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome.map_err(cannot_open),
        Err(panic) => Err(Error::internal(panic.to_string())),
    }
}
