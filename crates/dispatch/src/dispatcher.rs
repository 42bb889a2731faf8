//! The operations that every kind has. What filesets and models have beside them is in `filesets` and `models`.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use treeline_connectors::{AllowedRoots, LocalFiles, Locations};
use treeline_core::kinds::{Catalog, Schema};
use treeline_core::{
    Authority, Draft, Entity, Error, Kind, Name, NewEntity, Path, Payload, Provider, Result, authority,
    sole_provider,
};
use treeline_storage::{DropRule, Resolved, Store, WriteContext};

use crate::directories::Directories;
use crate::settings::Settings;
use crate::turns::{LocalLocks, Turns};
use crate::{guard, locations};

/// How long an idempotency key is remembered, in milliseconds.
const KEY_LIFE_MS: i64 = 24 * 60 * 60 * 1_000;

/// Every operation of the catalog. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Dispatcher {
    pub(crate) store: Store,
    pub(crate) settings: Arc<Settings>,
    pub(crate) directories: Directories,
    pub(crate) turns: Turns,
}

/// What a drop does with what hangs below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropMode {
    /// Refuses what is enabled or not empty.
    Plain,
    /// Takes along everything below, enabled or not.
    Cascade,
}

impl Dispatcher {
    /// Puts the operations on top of a store.
    pub fn new(store: Store, settings: Settings) -> Dispatcher {
        let roots = AllowedRoots::new(settings.allowed_roots.clone(), &settings.data_dir);
        let places = Locations::new().with("file", Arc::new(LocalFiles::new(roots)));
        let wait = Duration::from_millis(settings.directory_wait_ms);
        let call_max = Duration::from_millis(settings.directory_call_ms_max);
        let directories = Directories::new(store.clone(), places, wait, call_max);
        Dispatcher {
            store,
            turns: Turns::new(&settings),
            settings: Arc::new(settings),
            directories,
        }
    }

    /// Creates a metalake, catalog, schema or model and answers it as it was written (P1).
    ///
    /// # Errors
    /// [`Error::AlreadyExists`], [`Error::NotFound`] of the level that is missing, [`Error::NotInUse`] of the level
    /// that is disabled, [`Error::Invalid`] for a name or a property against the provider's rules.
    pub async fn create<P: Payload>(
        &self,
        context: &WriteContext,
        path: &Path,
        payload: P,
    ) -> Result<Entity<P>> {
        let recall = || self.store.recall_entity(context);
        self.once(context, recall, self.create_now(context, path, payload))
            .await
    }

    async fn create_now<P: Payload>(
        &self,
        context: &WriteContext,
        path: &Path,
        payload: P,
    ) -> Result<Entity<P>> {
        if let Some(created) = self.create_in_one_step(context, path, &payload).await? {
            return Ok(created);
        }
        let parent = self.parent(path).await?;
        let provider = payload
            .provider()
            .or_else(|| parent.as_ref().and_then(Resolved::provider));
        check_new(provider, path, &payload)?;
        let new = NewEntity {
            name: path.name().clone(),
            payload,
        };
        let _turn = self.turns.take(context, "create", path, None).await;
        self.store.create(context, parent.as_ref(), new).await
    }

    /// Reads one entity. What is disabled itself can be read; what lies below it cannot.
    pub async fn load<P: Payload>(&self, path: &Path) -> Result<Entity<P>> {
        self.resolve(path).await?.entity()
    }

    /// The names of one kind under a parent (none: the root), in byte order; model versions by number.
    pub async fn list_names(&self, parent: Option<&Path>, kind: Kind) -> Result<Vec<Name>> {
        let parent = self.container(parent, kind).await?;
        let mut names = self.store.list_names(parent.as_ref(), kind).await?;
        if kind == Kind::ModelVersion {
            names.sort_by_key(number);
        }
        Ok(names)
    }

    /// The entities of one kind under a parent (none: the root), in the order of [`Dispatcher::list_names`].
    pub async fn list<P: Payload>(&self, parent: Option<&Path>) -> Result<Vec<Entity<P>>> {
        let parent = self.container(parent, P::KIND).await?;
        let mut entities = self.store.list(parent.as_ref()).await?;
        if P::KIND == Kind::ModelVersion {
            entities.sort_by_key(|entity: &Entity<P>| number(&entity.name));
        }
        Ok(entities)
    }

    /// Applies the changes of one request, as one step of the version, and answers the entity as it then is (P2, P4).
    ///
    /// # Errors
    /// What a change refuses; [`Error::NotFound`]; [`Error::NotInUse`]; [`Error::AlreadyExists`] for a name or an
    /// alias that is taken; [`Error::PreconditionFailed`]; [`Error::Conflict`] past the bounded attempts.
    pub async fn alter<P: Payload>(
        &self,
        context: &WriteContext,
        path: &Path,
        changes: Vec<P::Change>,
    ) -> Result<Entity<P>> {
        let recall = || self.store.recall_entity(context);
        self.once(context, recall, self.alter_now(context, path, changes))
            .await
    }

    pub(crate) async fn alter_now<P: Payload>(
        &self,
        context: &WriteContext,
        path: &Path,
        changes: Vec<P::Change>,
    ) -> Result<Entity<P>> {
        let resolved = self.resolve(path).await?;
        let provider = resolved.provider();
        guard::check_changes::<P>(provider, &changes)?;
        let new_name = changes.iter().filter_map(P::new_name).next_back();
        let new_path = new_name.map(|name| path.renamed(name.clone()));
        let turn = self.turns.take(context, "alter", path, new_path.as_ref()).await;
        let resolved = if turn.waited() {
            self.read_again(resolved).await
        } else {
            resolved
        };
        let change = move |draft: &mut Draft<P>| {
            draft.apply_all(&changes)?;
            guard::check_locations(provider, P::KIND, draft.payload.properties())
        };
        self.store.alter(context, resolved, change).await
    }

    /// Drops an entity, and what hangs below it as the mode says (P3). `false` if there was none.
    ///
    /// # Errors
    /// [`Error::InUse`] and [`Error::NotEmpty`] without cascade; with a pinned version, [`Error::NotFound`] and
    /// [`Error::PreconditionFailed`]; [`Error::NotFound`] of a level above; [`Error::NotInUse`].
    pub async fn drop(&self, context: &WriteContext, path: &Path, mode: DropMode) -> Result<bool> {
        let recall = || self.store.recall_drop(context);
        self.once(context, recall, self.drop_now(context, path, mode))
            .await
    }

    pub(crate) async fn drop_now(&self, context: &WriteContext, path: &Path, mode: DropMode) -> Result<bool> {
        let resolved = match self.resolve_for_drop(path).await {
            Err(Error::NotFound {
                what: treeline_core::Missing::Entity(kind),
                ..
            }) if kind == path.kind() && !context.precondition.is_some() => {
                return self.store.settle_empty_drop(context).await;
            }
            other => other?,
        };
        let mut rule = guard::drop_rule(path.kind(), mode);
        self.prune_schema(&resolved, &mut rule)?;
        let (id, holds_files) = (resolved.id(), may_hold_files(&resolved));
        let dropped = {
            let _turn = self.turns.take(context, "drop", path, None).await;
            self.store.drop(context, resolved, rule).await?
        };
        if dropped && holds_files {
            self.directories.remove_caused_by(id).await;
        }
        Ok(dropped)
    }

    /// Keeps under the idempotency key of this context, if it has one, that there was nothing to drop: a level above was
    /// missing, which a client is told as if the entity were, and a repeat must not drop a successor.
    ///
    /// # Errors
    /// [`Error::KeyReused`] if another request used the key.
    pub async fn settle_empty_drop(&self, context: &WriteContext) -> Result<bool> {
        self.store.settle_empty_drop(context).await
    }

    /// Who writes and who waits to write on this server, name by name; none where writes take no turns.
    pub fn local_locks(&self) -> Option<LocalLocks> {
        self.turns.snapshot()
    }

    /// Whether the database answers.
    pub async fn ready(&self) -> Result<()> {
        self.store.ping().await
    }

    /// How many sessions of the database wait for a row lock.
    #[cfg(feature = "test-hooks")]
    pub async fn blocked(&self) -> Result<usize> {
        self.store.blocked().await
    }

    /// Locks rows as a stranger to the protocols would.
    #[cfg(feature = "test-hooks")]
    pub async fn lock_as_stranger(
        &self,
        first: treeline_core::EntityId,
        second: treeline_core::EntityId,
        name: String,
    ) -> Result<()> {
        self.store.lock_as_stranger(first, second, name).await
    }

    /// Sweeps unfinished tasks at start and periodically, and purges dropped rows past retention, until told to stop.
    pub async fn run_background(self, stop: CancellationToken) {
        let interval = Duration::from_millis(self.settings.sweep_interval_ms);
        loop {
            self.directories.sweep().await;
            match self.store.purge(self.settings.retention_ms).await {
                Ok(0) => {}
                Ok(purged) => tracing::info!(purged, "purged dropped rows past retention"),
                Err(error) => tracing::warn!(%error, "could not purge dropped rows"),
            }
            if let Err(error) = self.store.forget_keys(KEY_LIFE_MS).await {
                tracing::warn!(%error, "could not forget old idempotency keys");
            }
            metrics::counter!("treeline_sweeps_total").increment(1);
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(interval) => {}
            }
        }
    }

    /// Waits for the file work that requests have begun.
    pub async fn settle(&self) {
        self.directories.settle().await;
    }

    /// A write that is carried out once, whatever the rows have become since (P11): what its key has answered is given
    /// again. Where the write is refused, the key is asked again: the same request may have been carried out beside this
    /// one, and have changed what this one was refused for.
    pub(crate) async fn once<T, R: Future<Output = Result<Option<T>>>>(
        &self,
        context: &WriteContext,
        recall: impl Fn() -> R,
        write: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        if context.idempotency.is_none() {
            return write.await;
        }
        if let Some(answered) = recall().await? {
            return Ok(answered);
        }
        let refused = match write.await {
            Err(error) => error,
            settled => return settled,
        };
        #[cfg(feature = "test-hooks")]
        if treeline_storage::hooks::mutant("m-idempotency-refused") {
            return Err(refused);
        }
        match recall().await {
            Ok(Some(answered)) => Ok(answered),
            Ok(None) | Err(_) => Err(refused),
        }
    }

    /// Resolves a path and passes the gates above it.
    pub(crate) async fn resolve(&self, path: &Path) -> Result<Resolved> {
        let resolved = self.store.resolve(path).await?;
        guard::ancestors_in_use(&resolved)?;
        Ok(resolved)
    }

    /// The row of an update that has waited for its turn. If the name stands for another row by now, or for none, the
    /// update goes on with what it had: the store finds that out as well, and answers as it does without turns.
    async fn read_again(&self, resolved: Resolved) -> Resolved {
        match self.store.resolve(resolved.path()).await {
            Ok(fresh) if fresh.id() == resolved.id() => fresh,
            Ok(_) | Err(_) => resolved,
        }
    }

    /// A schema's own directory goes with it, so its drop needs what the levels above say about places.
    async fn resolve_for_drop(&self, path: &Path) -> Result<Resolved> {
        if path.kind() != Kind::Schema {
            return self.resolve(path).await;
        }
        let resolved = self.store.resolve_with_payloads(path).await?;
        guard::ancestors_in_use(&resolved)?;
        Ok(resolved)
    }

    /// Creates without a look at the parent first, where the kind says what its catalog must be: the store then looks at
    /// the whole way down in the statement that writes. `None`: nothing was written, and the way by the parent says why.
    async fn create_in_one_step<P: Payload>(
        &self,
        context: &WriteContext,
        path: &Path,
        payload: &P,
    ) -> Result<Option<Entity<P>>> {
        let Some(provider) = sole_provider(P::KIND) else {
            return Ok(None);
        };
        // What is wrong with the parent is said before what is wrong with the new entity.
        if context.idempotency.is_some()
            || !self.store.creates_in_one_step(path)
            || check_new(Some(provider), path, payload).is_err()
        {
            return Ok(None);
        }
        let _turn = self.turns.take(context, "create", path, None).await;
        self.store.create_at(context, path, provider, payload).await
    }

    /// Resolves the parent of something new; none under the root.
    async fn parent(&self, path: &Path) -> Result<Option<Resolved>> {
        match path.parent() {
            None => Ok(None),
            Some(parent) => {
                let parent = self.store.resolve(&parent).await?;
                guard::in_use(&parent)?;
                Ok(Some(parent))
            }
        }
    }

    /// Resolves what a list looks into; none for the root.
    async fn container(&self, parent: Option<&Path>, kind: Kind) -> Result<Option<Resolved>> {
        let Some(path) = parent else { return Ok(None) };
        let resolved = self.store.resolve(path).await?;
        guard::in_use(&resolved)?;
        require_managed(resolved.provider(), kind)?;
        Ok(Some(resolved))
    }

    fn prune_schema(&self, resolved: &Resolved, rule: &mut DropRule) -> Result<()> {
        if resolved.path().kind() == Kind::Schema && resolved.provider() == Some(Provider::Fileset) {
            let (catalog, schema): (Catalog, Schema) = (resolved.payload()?, resolved.payload()?);
            if !locations::files_are_left_alone(&catalog.properties) {
                let names = locations::Names::of(resolved.path());
                let places = locations::schema_places(&catalog.properties, &schema.properties, &names);
                rule.prune = places
                    .into_iter()
                    .filter(|place| self.directories.reaches(place))
                    .collect();
            }
        }
        Ok(())
    }
}

/// Whether a drop of this may leave directories behind.
fn may_hold_files(resolved: &Resolved) -> bool {
    match resolved.provider() {
        Some(provider) => provider == Provider::Fileset,
        None => true,
    }
}

/// What can be said of something new before it is written.
fn check_new<P: Payload>(provider: Option<Provider>, path: &Path, payload: &P) -> Result<()> {
    require_managed(provider, P::KIND)?;
    guard::check_new(provider, path.name(), payload)?;
    guard::check_locations(provider, P::KIND, payload.properties())
}

/// Everything that this server has is managed; a mirrored kind comes with its connector.
pub(crate) fn require_managed(provider: Option<Provider>, kind: Kind) -> Result<()> {
    match provider.map(|provider| authority(provider, kind)).transpose()? {
        Some(Authority::Managed) | None => Ok(()),
        Some(Authority::Mirrored) => Err(Error::Unsupported {
            operation: format!("a mirrored {kind}"),
            reason: "this server has no connector for it".to_owned(),
        }),
    }
}

/// Versions are named by their numbers, which sort otherwise than text.
fn number(name: &Name) -> u32 {
    name.as_str().parse().unwrap_or(u32::MAX)
}
