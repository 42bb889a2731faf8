//! Writes of entities, with their kinds' types: thin wrappers over the protocols, which do without.

use std::sync::Arc;

use treeline_core::{Draft, Entity, Error, Kind, NewEntity, Path, Payload, Provider, Result, Version};

use crate::alter::{self, Change, Next};
use crate::context::WriteContext;
use crate::create::{Create, Created, NewRow};
use crate::create_at::CreateAt;
use crate::drop::{Drop, DropRule};
use crate::hooks::{self, sync_point};
use crate::idempotency::{self, Outcome};
use crate::link::Link;
use crate::lock::Parent;
use crate::record::{Record, decode_payload, encode_payload};
use crate::resolve::Resolved;
use crate::side::{AliasChange, NewLocation};
use crate::store::Store;
use crate::tasks::Task;
use crate::transaction::Work;

/// How [`Store::create_with_locations`] ended, if not with an error.
#[derive(Debug)]
pub enum CreatedWithLocations<P> {
    /// It is there. The tasks are claimed for the caller, who makes the directories and settles them.
    Done(Entity<P>, Vec<Task>),
    /// The same request under its key had created it before, and makes its directories. Whether it stays is for
    /// [`Store::kept_create`] to say.
    Kept(Entity<P>),
    /// A dropped fileset's directory at or around one of the locations is still to be removed. Nothing was written;
    /// help with [`crate::TaskFilter::RemovalsAround`] and try again.
    Blocked,
}

impl Store {
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

    /// Keeps under the idempotency key of this context, if it has one, that its drop found nothing, so that a repeat
    /// never drops a successor. Answers what the key has answered: `true` if the same request under it was carried
    /// out meanwhile and did drop something.
    ///
    /// # Errors
    /// As [`Store::recall_entity`].
    pub async fn settle_empty_drop(&self, context: &WriteContext) -> Result<bool> {
        let settled = idempotency::settle(&self.shared.backend, context, None::<Version>).await;
        settled
            .map(|version| version.is_some())
            .map_err(|failure| failure.into_error("drop"))
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
            CreatedWithLocations::Done(entity, _) | CreatedWithLocations::Kept(entity) => Ok(entity),
            CreatedWithLocations::Blocked => {
                Err(Error::internal("a create without locations was blocked by one"))
            }
        }
    }

    /// Whether [`Store::create_at`] saves a round trip for this path: on PostgreSQL, for what lies in a schema.
    pub fn creates_in_one_step(&self, path: &Path) -> bool {
        let in_schema = path.kind().parent() == Some(Kind::Schema);
        in_schema && self.shared.backend.fuses() && !hooks::is_armed_on_the_way(path.name().as_str())
    }

    /// Creates an entity in a schema that nobody has resolved (P1). `None`: something above is disabled, or the catalog
    /// is not of that provider, and nothing was written.
    ///
    /// # Errors
    /// [`Error::NotFound`] of the level that is missing; [`Error::AlreadyExists`] as [`Store::create`]. An idempotency
    /// key needs a transaction of several steps, so a context with one is [`Error::Internal`].
    pub async fn create_at<P: Payload>(
        &self,
        context: &WriteContext,
        path: &Path,
        provider: Provider,
        payload: &P,
    ) -> Result<Option<Entity<P>>> {
        let Some(parent) = path.parent().filter(|parent| parent.kind() == Kind::Schema) else {
            return Err(Error::internal(format!("{path} does not lie in a schema")));
        };
        if context.idempotency.is_some() {
            return Err(Error::internal(
                "a create in one step cannot keep an idempotency key",
            ));
        }
        let create = CreateAt {
            context: context.clone(),
            ids: Arc::clone(&self.shared.ids),
            path: path.clone(),
            parent,
            provider,
            row: NewRow::of(path.name().clone(), payload)?,
        };
        let created = self.write(create).await?;
        sync_point!("create.committed", path.name().as_str());
        created.map(Record::into_entity).transpose()
    }

    /// Creates an entity that keeps files, with a claimed task for each directory that is to be made. It is not done until
    /// they are; where one cannot be made, [`Store::undo_create`] undoes it.
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
        let row = NewRow::of(new.name, &new.payload)?;
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
            Created::Kept(record) => Ok(CreatedWithLocations::Kept(record.into_entity()?)),
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
        let drop = if hooks::mutant("m-drop-by-name") {
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

    async fn write_keyed<W: Work>(&self, context: &WriteContext, work: W) -> Result<W::Output>
    where
        W::Output: Outcome + Clone + Sync,
    {
        let written = idempotency::write(&self.shared.backend, context, work).await;
        written.map_err(|failure| failure.into_error(W::NAME))
    }

    /// What the idempotency key of this context has done already, as the text of its outcome.
    async fn recall(&self, context: &WriteContext) -> Result<Option<String>> {
        let recalled = idempotency::recall(&self.shared.backend, context).await;
        recalled.map_err(|failure| failure.into_error("recall"))
    }
}
