//! The calls that the rest of the workspace may make. Each is a whole transaction, or a read: no handle to either
//! ever leaves this crate.
//!
//! Here are the reads and the upkeep; opening is in `open`, writes of entities in `writes`, tasks in `tasks`.

use std::sync::Arc;

use treeline_core::{Alias, Entity, EntityId, Error, Kind, Name, Path, Payload, Result};

use crate::check::{Check, Finding};
use crate::dump::DumpAll;
use crate::idempotency::ForgetKeys;
use crate::ids::Ids;
use crate::open::StoreOptions;
use crate::read::{FindAlias, ListNames, ListRecords, Purge};
use crate::record::Record;
use crate::resolve::{Resolve, Resolved};
use crate::tasks::Claim;
use crate::transaction::{Backend, Reading, Work};

/// A store of entities. Cheap to clone; all clones share one set of connections.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) backend: Backend,
    pub(crate) ids: Arc<Ids>,
    pub(crate) options: StoreOptions,
}

impl Store {
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
                Reading::List,
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
        use crate::transaction::Database;
        match self.shared.backend.database() {
            Database::Sqlite(sqlite) => Ok(sqlite.blocked()),
            Database::Network(_) => self.read(Reading::Point, crate::check::CountBlocked).await,
        }
    }

    /// Locks one row and then another as a stranger would, against the order of the protocols; a test arms
    /// `stranger.first_locked` by this name. A database server only.
    #[cfg(feature = "test-hooks")]
    pub async fn lock_as_stranger(&self, first: EntityId, second: EntityId, name: String) -> Result<()> {
        let stranger = crate::stranger::Stranger { first, second, name };
        match self.shared.backend.write(stranger).await {
            Ok(()) | Err(crate::failure::Failure::Lost) => Ok(()),
            Err(failure) => Err(failure.into_error("stranger")),
        }
    }

    pub(crate) fn claim(&self) -> Result<Claim> {
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

    pub(crate) async fn write<W: Work>(&self, work: W) -> Result<W::Output> {
        self.shared
            .backend
            .write(work)
            .await
            .map_err(|failure| failure.into_error(W::NAME))
    }

    pub(crate) async fn read<W: Work>(&self, reading: Reading, work: W) -> Result<W::Output> {
        self.shared
            .backend
            .read(reading, work)
            .await
            .map_err(|failure| failure.into_error(W::NAME))
    }
}
