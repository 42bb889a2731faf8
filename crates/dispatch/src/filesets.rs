//! What filesets have beside the operations of every kind: locations, directories, and files to look at.

use std::collections::BTreeMap;

use tokio::time::{Duration, Instant};
use treeline_connectors::{FileStat, Stat};
use treeline_core::kinds::{Catalog, Fileset, FilesetType, Schema};
use treeline_core::{Entity, Error, Kind, NewEntity, Path, Properties, Result};
use treeline_storage::{CreatedWithLocations, KeptCreate, NewLocation, Task, Undone, WriteContext};

use crate::directories::{give_up_after, rest};
use crate::dispatcher::{Dispatcher, require_managed};
use crate::{guard, locations};

/// Entries of one directory that a list answers.
const FILES_MAX: usize = 10_000;

/// What a client says of a fileset to create; the rest follows from its schema and catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewFileset {
    /// Free text.
    pub comment: Option<String>,
    /// Managed unless said otherwise.
    pub fileset_type: Option<FilesetType>,
    /// The location without a name.
    pub storage_location: Option<String>,
    /// The locations by name.
    pub storage_locations: BTreeMap<String, String>,
    /// Free properties.
    pub properties: Properties,
}

/// When a create that was asked for was carried out.
enum Created {
    /// By this request; its directories are there.
    Now(Entity<Fileset>),
    /// By the same request under its key, which may be making the directories yet.
    Before(Entity<Fileset>),
}

impl Dispatcher {
    /// Creates a fileset and its directories.
    ///
    /// 1. What is still to be removed at or around its locations is removed first.
    /// 2. A directory that is there already is adopted, and stays when the fileset is dropped; a file is refused.
    /// 3. The row is committed with a claimed task for each directory to make.
    /// 4. A removal that was claimed before the commit, and so did not see the fileset, is waited for.
    /// 5. The directories are made and their tasks settled; if one cannot be made, the row is dropped again.
    ///
    /// A repeat under a key that comes between 3 and 5 waits for their end (INV-17).
    ///
    /// # Errors
    /// As [`Dispatcher::create`]; [`Error::Invalid`] for a location that is refused or missing; [`Error::Contended`] for a
    /// repeat whose directories somebody else makes for too long.
    pub async fn create_fileset(
        &self,
        context: &WriteContext,
        path: &Path,
        new: NewFileset,
    ) -> Result<Entity<Fileset>> {
        let deadline = Instant::now() + Duration::from_millis(self.settings.directory_wait_ms);
        loop {
            let recall = || self.recall_fileset(context);
            let create = self.create_fileset_now(context, path, &new, deadline);
            match self.once(context, recall, create).await? {
                Created::Now(entity) => return Ok(entity),
                Created::Before(entity) if self.stands(context, &entity, deadline).await? => {
                    return Ok(entity);
                }
                // It was undone, and is done anew.
                Created::Before(_) => give_up_after(deadline)?,
            }
        }
    }

    async fn recall_fileset(&self, context: &WriteContext) -> Result<Option<Created>> {
        let kept = self.store.recall_entity(context).await?;
        Ok(kept.map(Created::Before))
    }

    async fn create_fileset_now(
        &self,
        context: &WriteContext,
        path: &Path,
        new: &NewFileset,
        deadline: Instant,
    ) -> Result<Created> {
        let parent = self
            .store
            .resolve_with_payloads(&path.up_to(Kind::Schema))
            .await?;
        guard::in_use(&parent)?;
        require_managed(parent.provider(), Kind::Fileset)?;
        let (catalog, schema): (Catalog, Schema) = (parent.payload()?, parent.payload()?);
        let names = locations::Names::of(path);
        let (places, properties) = locations::resolve(new, &catalog.properties, &schema.properties, &names)?;
        let payload = Fileset {
            comment: new.comment.clone(),
            fileset_type: new.fileset_type.unwrap_or(FilesetType::Managed),
            locations: places,
            properties,
        };
        guard::check_new(parent.provider(), path.name(), &payload)?;
        let left_alone = locations::files_are_left_alone(&catalog.properties);
        let keyed = context.idempotency.is_some();
        loop {
            let mut places = self.plan_locations(&payload, left_alone, deadline).await?;
            // What is adopted is looked at again after the commit, and that may undo the create too. A repeat finds that out by
            // a task.
            places
                .iter_mut()
                .for_each(|place| place.make |= keyed && !left_alone);
            let new = NewEntity {
                name: path.name().clone(),
                payload: payload.clone(),
            };
            let turn = self.turns.take(context, "create", path, None).await;
            let created = self
                .store
                .create_with_locations(context, Some(&parent), new, places)
                .await;
            // The directories come after the turn.
            drop(turn);
            match created? {
                CreatedWithLocations::Blocked => give_up_after(deadline)?,
                CreatedWithLocations::Kept(entity) => return Ok(Created::Before(entity)),
                CreatedWithLocations::Done(entity, tasks) => {
                    let taken = self.take_places(&entity.payload, tasks.clone(), left_alone, deadline);
                    let entity = match taken.await {
                        Ok(()) => entity,
                        // Under a key it stands, since it has no task: a repeat may have been answered.
                        Err(error) if keyed && left_alone => return Err(error),
                        Err(error) => self.undo_create(context, path, entity, tasks, error).await?,
                    };
                    return Ok(Created::Now(entity));
                }
            }
        }
    }

    /// Waits until a create that its key keeps cannot be undone any more. `false`: it was undone. What nobody makes any
    /// longer is made here, as a sweep would.
    async fn stands(
        &self,
        context: &WriteContext,
        entity: &Entity<Fileset>,
        deadline: Instant,
    ) -> Result<bool> {
        #[cfg(feature = "test-hooks")]
        if treeline_storage::hooks::mutant("m-idempotency-wait") {
            return Ok(true);
        }
        let mut failed = None;
        loop {
            let kept = self.store.kept_create(context, entity.id).await?;
            match kept {
                KeptCreate::Stands => return Ok(true),
                KeptCreate::Undone => return Ok(false),
                KeptCreate::Making | KeptCreate::Left => {}
            }
            give_up_after(deadline).map_err(|contended| failed.take().unwrap_or(contended))?;
            if kept == KeptCreate::Left {
                failed = self.make_left(entity, deadline).await.err();
            }
            rest("create.waits", entity.name.as_str()).await?;
        }
    }

    /// Makes the directories that somebody else has left to be made, after steps 3 and 4 of a create.
    async fn make_left(&self, entity: &Entity<Fileset>, deadline: Instant) -> Result<()> {
        for location in entity.payload.locations.values() {
            self.directories
                .outlast_removals_around(location, deadline)
                .await?;
        }
        self.directories.make_left(entity.id, deadline).await
    }

    /// Where a file of a fileset is. `rename` says that the client means to rename it, which needs a sub-path.
    ///
    /// # Errors
    /// [`Error::NotFound`] of the fileset or of the location's name; [`Error::Unsupported`] for a rename of the
    /// location itself.
    pub async fn file_location(
        &self,
        fileset: &Path,
        sub_path: &str,
        location_name: Option<&str>,
        rename: bool,
    ) -> Result<String> {
        let entity = self.load::<Fileset>(fileset).await?;
        let below = sub_path.trim();
        if rename && below.trim_matches('/').is_empty() {
            return Err(Error::Unsupported {
                operation: "renaming the location of a fileset".to_owned(),
                reason: "only what is below it can be renamed; give a sub_path".to_owned(),
            });
        }
        let below = checked_sub_path(below)?;
        let location = entity.payload.location(location_name)?;
        Ok(match below {
            "" => location.to_owned(),
            below if below.starts_with('/') => format!("{location}{below}"),
            below => format!("{location}/{below}"),
        })
    }

    /// One level of the files of a fileset, in byte order of their names.
    ///
    /// # Errors
    /// As [`Dispatcher::file_location`]; [`Error::Invalid`] where there is nothing; [`Error::Unsupported`] where the
    /// catalog leaves files alone.
    pub async fn list_files(
        &self,
        fileset: &Path,
        sub_path: &str,
        location_name: Option<&str>,
    ) -> Result<Vec<FileStat>> {
        let resolved = self.store.resolve_with_payloads(fileset).await?;
        guard::ancestors_in_use(&resolved)?;
        let (catalog, fileset): (Catalog, Fileset) = (resolved.payload()?, resolved.payload()?);
        if locations::files_are_left_alone(&catalog.properties) {
            return Err(Error::Unsupported {
                operation: "listing files".to_owned(),
                reason: "the catalog has `disable-filesystem-ops`".to_owned(),
            });
        }
        let below = checked_sub_path(sub_path.trim())?.trim_matches('/');
        let location = fileset.location(location_name)?;
        let place = if below.is_empty() {
            location.to_owned()
        } else {
            format!("{location}/{below}")
        };
        self.directories
            .list(&treeline_connectors::qualify(&place)?, FILES_MAX)
            .await
    }

    /// What the store keeps of each location, after looking at what is there now.
    async fn plan_locations(
        &self,
        fileset: &Fileset,
        left_alone: bool,
        deadline: Instant,
    ) -> Result<Vec<NewLocation>> {
        let mut planned = Vec::with_capacity(fileset.locations.len());
        for (name, location) in &fileset.locations {
            // Whether or not the files here are ours to touch, those of another catalog's fileset may be.
            self.directories
                .finish_removals_around(location, deadline)
                .await?;
            let found = if left_alone {
                Stat::Directory
            } else {
                self.directories.stat(location).await?
            };
            if found == Stat::File {
                let reason = format!("there is a file at `{location}`; a fileset needs a directory");
                return Err(Error::invalid("storageLocations", reason));
            }
            let make = found == Stat::Absent;
            let managed = fileset.fileset_type == FilesetType::Managed;
            #[cfg(feature = "test-hooks")]
            let ours = make || treeline_storage::hooks::mutant("m-adopted");
            #[cfg(not(feature = "test-hooks"))]
            let ours = make;
            planned.push(NewLocation {
                name: name.clone(),
                location: location.clone(),
                remove_on_drop: ours && managed,
                make,
            });
        }
        Ok(planned)
    }

    /// Sees to it that the directories of a fileset are there which was committed just now. A removal around them that was
    /// claimed before could not see the fileset, and may have taken what was found there and adopted.
    async fn take_places(
        &self,
        fileset: &Fileset,
        tasks: Vec<Task>,
        left_alone: bool,
        deadline: Instant,
    ) -> Result<()> {
        for location in fileset.locations.values() {
            self.directories
                .outlast_removals_around(location, deadline)
                .await?;
            let is_adopted = !tasks.iter().any(|task| task.location == *location);
            if is_adopted && !left_alone {
                self.directories.require(location).await?;
            }
        }
        self.directories.make(tasks).await
    }

    /// A create whose directory cannot be made is no create: the row just written is dropped, and no other. Unless others
    /// were faster ([`Undone`]): then its caller is told what its key keeps. If this process ends here, a repeat, or the
    /// sweep, keeps trying to make the directory instead.
    async fn undo_create(
        &self,
        context: &WriteContext,
        path: &Path,
        entity: Entity<Fileset>,
        tasks: Vec<Task>,
        refused: Error,
    ) -> Result<Entity<Fileset>> {
        let undone = {
            let _turn = self.turns.take(context, "undo", path, None).await;
            self.store.undo_create(context, path, entity.id, tasks).await
        };
        match undone {
            Ok(Undone::Done) => self.directories.remove_caused_by(entity.id).await,
            Ok(Undone::Settled | Undone::Dropped) => return Ok(entity),
            Ok(Undone::Renamed) => {}
            Err(error) => {
                tracing::warn!(%path, %error, "a fileset without its directory could not be dropped")
            }
        }
        Err(refused)
    }
}

/// A sub-path never leaves its fileset.
fn checked_sub_path(sub_path: &str) -> Result<&str> {
    let climbs = sub_path.split('/').any(|segment| segment == "..");
    if climbs || sub_path.chars().any(char::is_control) {
        return Err(Error::invalid(
            "sub_path",
            "has a `..` segment or a control character",
        ));
    }
    Ok(sub_path)
}

#[cfg(test)]
mod tests;
