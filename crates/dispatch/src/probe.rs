//! Trying out a catalog without keeping anything.

use treeline_core::kinds::{Catalog, SwitchableChange};
use treeline_core::{Draft, Entity, Error, Kind, Path, Payload, Provider, Result};

use crate::dispatcher::Dispatcher;
use crate::{guard, locations};

/// What to try out.
#[derive(Clone, Debug)]
pub enum TestConnection {
    /// A catalog that is not there yet, under the name it would have.
    New(Path, Catalog),
    /// A catalog that is there, with these changes.
    Existing(Path, Vec<SwitchableChange>),
}

impl Dispatcher {
    /// Whether what stands behind a catalog can be reached.
    ///
    /// # Errors
    /// What creating or altering the catalog would refuse; [`Error::Unsupported`] where the provider has no probe;
    /// [`Error::ConnectionFailed`] where the probe fails.
    pub async fn test_connection(&self, test: TestConnection) -> Result<()> {
        let catalog = match test {
            TestConnection::New(path, catalog) => {
                let metalake = self.store.resolve(&path.up_to(Kind::Metalake)).await?;
                guard::in_use(&metalake)?;
                guard::check_new(catalog.provider(), path.name(), &catalog)?;
                match self.store.resolve(&path).await {
                    Ok(_) => return Err(Error::already_exists(Kind::Catalog, path.to_string())),
                    Err(Error::NotFound { .. }) => catalog,
                    Err(error) => return Err(error),
                }
            }
            TestConnection::Existing(path, changes) => {
                let resolved = self.resolve(&path).await?;
                guard::check_changes::<Catalog>(resolved.provider(), &changes)?;
                let entity: Entity<Catalog> = resolved.entity()?;
                let mut draft = Draft {
                    name: entity.name,
                    in_use: entity.in_use,
                    payload: entity.payload,
                };
                draft.apply_all(&changes)?;
                draft.payload
            }
        };
        guard::check_locations(Some(catalog.provider), Kind::Catalog, &catalog.properties)?;
        match catalog.provider {
            Provider::Model => Err(Error::Unsupported {
                operation: "testing the connection of a model catalog".to_owned(),
                reason: "nothing stands behind it but this server".to_owned(),
            }),
            Provider::Fileset => self.probe_places(&catalog).await,
        }
    }

    /// Looks at each place that the catalog names, unless it leaves files alone.
    async fn probe_places(&self, catalog: &Catalog) -> Result<()> {
        if locations::files_are_left_alone(&catalog.properties) {
            return Ok(());
        }
        for (key, value) in catalog
            .properties
            .iter()
            .filter(|(key, _)| locations::is_location_key(key))
        {
            if value.contains("{{") {
                continue;
            }
            let location = treeline_connectors::qualify(value)?;
            let reason = match self.directories.stat(&location).await {
                Ok(treeline_connectors::Stat::File) => "a file is there, not a directory".to_owned(),
                Ok(treeline_connectors::Stat::Absent | treeline_connectors::Stat::Directory) => continue,
                Err(error @ Error::Invalid { .. }) => return Err(error),
                Err(error) => error.to_string(),
            };
            return Err(Error::ConnectionFailed {
                target: format!("`{key}` at {location}"),
                reason,
            });
        }
        Ok(())
    }
}
