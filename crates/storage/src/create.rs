//! P1, strict create.
//!
//! 1. The parent was resolved before, outside any transaction.
//! 2. Lock the live parent row shared, by id, and re-check its name and its flag under the lock.
//! 3. Insert the row; a clash on the name is `AlreadyExists`, for every creator but one (INV-2).
//! 4. Insert its side rows and its tasks, then its feed row, and commit it all at once.

use std::sync::Arc;

use async_trait::async_trait;
use treeline_core::{Audit, EntityId, Error, Kind, Name, Operation, Path, Payload, Provider, Version};

use crate::context::WriteContext;
use crate::failure::{Clash, Failure};
use crate::feed::{self, Entry};
use crate::hooks::{self, mutant, sync_point};
use crate::ids::Ids;
use crate::lock::{self, LockedParent, Parent};
use crate::record::{Record, encode_payload};
use crate::side::{self, NewLocation};
use crate::sql::entity;
use crate::sql::fused::FUSED_CREATE;
use crate::tasks::{self, NewTask, Task};
use crate::transaction::{Fused, Proof, Transaction, Work};
use crate::value::Value;

/// A row to insert, without its kind's types.
#[derive(Clone, Debug)]
pub(crate) struct NewRow {
    pub(crate) kind: Kind,
    pub(crate) name: Name,
    pub(crate) provider: Option<Provider>,
    pub(crate) payload: String,
}

impl NewRow {
    /// The row of something new.
    pub(crate) fn of<P: Payload>(name: Name, payload: &P) -> Result<NewRow, Error> {
        Ok(NewRow {
            kind: P::KIND,
            name,
            provider: payload.provider(),
            payload: encode_payload(payload)?,
        })
    }
}

/// One strict create.
pub(crate) struct Create {
    pub(crate) context: WriteContext,
    pub(crate) ids: Arc<Ids>,
    pub(crate) parent: Parent,
    /// Of the new entity.
    pub(crate) path: Path,
    /// None for a metalake, which is its own.
    pub(crate) metalake_id: Option<EntityId>,
    pub(crate) row: NewRow,
    pub(crate) locations: Vec<NewLocation>,
    /// Who claims the tasks that the locations need, and for how long.
    pub(crate) claim: tasks::Claim,
}

/// How a create ended, if not with an error.
#[derive(Clone)]
pub(crate) enum Created {
    /// It is there; these of its directories are to be made, and are claimed.
    Done(Record, Vec<Task>),
    /// The same request under its key had created it before; its directories are that one's to make.
    Kept(Record),
    /// A directory of a dropped fileset at one of the locations has not been removed yet; nothing was written.
    Blocked,
}

#[async_trait]
impl Work for Create {
    type Output = Created;
    const NAME: &'static str = "create";

    async fn run(&self, transaction: &mut Transaction<'_>) -> Result<Created, Failure> {
        let parent = lock::parent_shared(transaction, &self.parent).await?;
        parent.require_in_use()?;
        sync_point!("create.parent_locked", self.row.name.as_str());
        for place in &self.locations {
            if tasks::removal_overlaps(transaction, &place.location).await? {
                return Ok(Created::Blocked);
            }
        }
        if mutant("m-strict-insert")
            && let Some(record) = self.take_over(transaction, &parent).await?
        {
            return Ok(Created::Done(record, Vec::new()));
        }
        let id = self.ids.next()?;
        let metalake_id = self.metalake_id.unwrap_or(id);
        let record = insert(
            transaction,
            &self.context,
            id,
            &parent,
            metalake_id,
            &self.row,
            &self.path,
        )
        .await?;
        side::insert_locations(transaction, id, &self.locations).await?;
        let mut claimed = Vec::new();
        for place in self.locations.iter().filter(|place| place.make) {
            let task = NewTask::make_directory(id, place.location.clone());
            claimed.push(tasks::insert_claimed(transaction, &self.ids, task, &self.claim).await?);
        }
        let names = feed::names(&self.path);
        append_created(transaction, &self.context, &record, &names).await?;
        sync_point!("create.inserted", self.row.name.as_str());
        Ok(Created::Done(record, claimed))
    }

    /// Only under a parent that was resolved, and without side rows; every refusal goes through the portable form.
    fn fuse(&self) -> Option<Fused<Created>> {
        let Parent::Entity(parent_id, parent_path) = &self.parent else {
            return None;
        };
        if !self.locations.is_empty() || hooks::is_armed_inside(self.row.name.as_str()) {
            return None;
        }
        let id = self.ids.next().ok()?;
        let metalake_id = self.metalake_id.unwrap_or(id);
        let values = vec![
            (*parent_id).into(),
            parent_path.name().as_str().into(),
            id.into(),
            self.row.kind.as_str().into(),
            metalake_id.into(),
            self.row.name.as_str().into(),
            self.row.provider.map(Provider::as_str).into(),
            self.row.payload.as_str().into(),
            self.context.principal.as_str().into(),
            feed::path_text(&feed::names(&self.path)).ok()?.into(),
            self.context.feed_id().into(),
        ];
        let (row, principal) = (self.row.clone(), self.context.principal.clone());
        let answer =
            move |created_at_ms| Created::Done(new_record(id, row, principal, created_at_ms), Vec::new());
        Some(Fused {
            statement: &FUSED_CREATE,
            values,
            answer: Box::new(answer),
            nothing: None,
        })
    }

    fn proof(&self, output: &Created) -> Option<Proof> {
        match output {
            Created::Done(record, _) => Some(self.context.proof(record.id, record.version)),
            Created::Kept(_) | Created::Blocked => None,
        }
    }
}

impl Create {
    /// What a create must never do, for a mutant: find a live row of the name and write over it.
    async fn take_over(
        &self,
        transaction: &mut Transaction<'_>,
        parent: &LockedParent,
    ) -> Result<Option<Record>, Failure> {
        let values = [parent.id.into(), self.row.kind.as_str().into()];
        for row in transaction.rows(&entity::LIST_ENTITIES, &values).await? {
            let record = Record::decode(row)?;
            if record.name == self.row.name {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }
}

/// Inserts a row under a locked parent. The caller appends the feed row, last.
pub(crate) async fn insert(
    transaction: &mut Transaction<'_>,
    context: &WriteContext,
    id: EntityId,
    parent: &LockedParent,
    metalake_id: EntityId,
    row: &NewRow,
    path: &Path,
) -> Result<Record, Failure> {
    let values: [Value; 9] = [
        id.into(),
        row.kind.as_str().into(),
        parent.id.into(),
        metalake_id.into(),
        row.name.as_str().into(),
        row.provider.map(Provider::as_str).into(),
        row.payload.as_str().into(),
        context.principal.as_str().into(),
        parent.now_ms.into(),
    ];
    match transaction.run_one(&entity::INSERT_ENTITY, &values).await {
        Ok(()) => {}
        Err(Failure::Unique(Clash::Name)) => {
            metrics::counter!("treeline_create_conflicts_total", "kind" => row.kind.as_str()).increment(1);
            return Err(Failure::Answer(Error::already_exists(row.kind, path.to_string())));
        }
        // Another process made the same id; the next run of this transaction makes another.
        Err(Failure::Unique(Clash::Id)) => return Err(Failure::raced(format!("the id {id} is taken"))),
        // The lock said that the parent is live; if the key says otherwise, the key is right (INV-1).
        Err(Failure::Liveness) => {
            return Err(Failure::raced("the parent was dropped meanwhile"));
        }
        Err(failure) => return Err(failure),
    }
    Ok(new_record(
        id,
        row.clone(),
        context.principal.clone(),
        parent.now_ms,
    ))
}

/// A row as its create leaves it.
pub(crate) fn new_record(id: EntityId, row: NewRow, principal: String, created_at_ms: i64) -> Record {
    Record {
        id,
        kind: row.kind,
        version: Version::FIRST,
        name: row.name,
        in_use: true,
        provider: row.provider,
        payload: row.payload,
        audit: Audit {
            creator: principal,
            created_at_ms,
            last_modifier: None,
            last_modified_at_ms: None,
        },
    }
}

/// Appends the feed row of a create.
pub(crate) async fn append_created(
    transaction: &mut Transaction<'_>,
    context: &WriteContext,
    record: &Record,
    names: &[&str],
) -> Result<(), Failure> {
    let entry = Entry {
        id: record.id,
        kind: record.kind,
        names,
        operation: Operation::Create,
        version: record.version,
    };
    feed::append(transaction, context, entry).await
}
