//! What models have beside the operations of every kind: versions that are linked, aliases, and URIs.

use treeline_core::kinds::{Model, ModelVersion, ModelVersionChange};
use treeline_core::{Alias, Entity, Error, Kind, Path, Result};
use treeline_storage::WriteContext;

use crate::dispatcher::{Dispatcher, DropMode, require_managed};
use crate::guard;

impl Dispatcher {
    /// Links a version to a model: the next number, a strict create and its aliases in one transaction.
    ///
    /// # Errors
    /// [`Error::NotFound`] of the model or a level above; [`Error::AlreadyExists`] for an alias that another version
    /// of the model holds; [`Error::Invalid`] without a URI.
    pub async fn link(
        &self,
        context: &WriteContext,
        model: &Path,
        version: ModelVersion,
    ) -> Result<Entity<ModelVersion>> {
        let link = async {
            let resolved = self.resolve(model).await?;
            require_managed(resolved.provider(), Kind::ModelVersion)?;
            guard::check_version(&version)?;
            let _turn = self.turns.take(context, "link", model, None).await;
            self.store.link(context, resolved, &version).await
        };
        self.once(context, || self.store.recall_entity(context), link)
            .await
    }

    /// Applies changes to the version that an alias names, as [`Dispatcher::alter`] does. A repeat under a key gets its
    /// answer, whatever the alias names by then.
    pub async fn alter_by_alias(
        &self,
        context: &WriteContext,
        model: &Path,
        alias: &Alias,
        changes: Vec<ModelVersionChange>,
    ) -> Result<Entity<ModelVersion>> {
        let alter = async {
            let version = self.version_of_alias(model, alias).await?;
            self.alter_now(context, &version, changes).await
        };
        self.once(context, || self.store.recall_entity(context), alter)
            .await
    }

    /// Drops the version that an alias names, as [`Dispatcher::drop`] does; again, a repeat gets its answer.
    pub async fn drop_by_alias(&self, context: &WriteContext, model: &Path, alias: &Alias) -> Result<bool> {
        let drop = async {
            let version = self.version_of_alias(model, alias).await?;
            self.drop_now(context, &version, DropMode::Plain).await
        };
        self.once(context, || self.store.recall_drop(context), drop).await
    }

    /// The path of the version that an alias names now. [`Error::NotFound`] of the version where there is none.
    pub async fn version_of_alias(&self, model: &Path, alias: &Alias) -> Result<Path> {
        let resolved = self.resolve(model).await?;
        match self.store.version_of_alias(&resolved, alias).await? {
            Some(number) => Ok(model.child(Kind::ModelVersion, number)),
            None => Err(Error::not_found(Kind::ModelVersion, format!("{model}.{alias}"))),
        }
    }

    /// Where the artifact of a model version is.
    ///
    /// # Errors
    /// [`Error::NotFound`] of the version or of the URI's name; [`Error::Invalid`] where nothing says which URI.
    pub async fn version_uri(&self, version: &Path, uri_name: Option<&str>) -> Result<String> {
        let resolved = self.store.resolve_with_payloads(version).await?;
        guard::ancestors_in_use(&resolved)?;
        let (model, version): (Model, ModelVersion) = (resolved.payload()?, resolved.payload()?);
        version.uri(uri_name, &model.properties).map(str::to_owned)
    }
}
