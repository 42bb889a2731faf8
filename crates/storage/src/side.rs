//! Side rows: what an entity keeps outside its own row because another key decides about it.

use std::collections::BTreeSet;

use treeline_core::{Alias, EntityId, Error, Path, Taken};

use crate::failure::{Clash, Failure};
use crate::sql::{self, IDS_MAX, side, task};
use crate::transaction::Transaction;

/// One place where a new fileset keeps files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLocation {
    /// The location's name, unique in the fileset.
    pub name: String,
    /// The qualified location.
    pub location: String,
    /// Whether a drop removes the directory: it is ours, and we made it.
    pub remove_on_drop: bool,
    /// Whether the directory is to be made, which leaves a task until it is.
    pub make: bool,
}

/// What changes among the aliases of a version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AliasChange {
    pub(crate) attach: Vec<Alias>,
    pub(crate) detach: Vec<Alias>,
}

impl AliasChange {
    pub(crate) fn between(before: &BTreeSet<Alias>, after: &BTreeSet<Alias>) -> AliasChange {
        AliasChange {
            attach: after.difference(before).cloned().collect(),
            detach: before.difference(after).cloned().collect(),
        }
    }
}

/// Detaches and attaches aliases. One that another live version of the model holds is the answer (INV-7).
pub(crate) async fn change_aliases(
    transaction: &mut Transaction<'_>,
    model_id: EntityId,
    version_id: EntityId,
    model_path: &Path,
    change: &AliasChange,
) -> Result<(), Failure> {
    let values = |alias: &Alias| [model_id.into(), alias.as_str().into(), version_id.into()];
    for alias in &change.detach {
        transaction.run_one(&side::DETACH_ALIAS, &values(alias)).await?;
    }
    for alias in &change.attach {
        match transaction.run(&side::INSERT_ALIAS, &values(alias)).await {
            Err(Failure::Unique(Clash::Alias)) => {
                let path = format!("{model_path}.{alias}");
                return Err(Failure::Answer(Error::AlreadyExists {
                    what: Taken::Alias,
                    path,
                }));
            }
            other => other?,
        };
    }
    Ok(())
}

/// Keeps the places of a new fileset.
pub(crate) async fn insert_locations(
    transaction: &mut Transaction<'_>,
    id: EntityId,
    locations: &[NewLocation],
) -> Result<(), Failure> {
    for place in locations {
        let on_drop = if place.remove_on_drop { "remove" } else { "keep" };
        let values = [
            id.into(),
            place.name.as_str().into(),
            place.location.as_str().into(),
            on_drop.into(),
        ];
        transaction.run_one(&side::INSERT_LOCATION, &values).await?;
    }
    Ok(())
}

/// A directory that goes with a dropped fileset.
pub(crate) struct Removable {
    pub(crate) entity_id: EntityId,
    pub(crate) location: String,
}

/// Detaches all side rows of entities that are about to be dropped, and answers the directories that go with them.
/// Before the entities themselves: the liveness keys of the side rows point at their live state (INV-6).
pub(crate) async fn detach_all(
    transaction: &mut Transaction<'_>,
    ids: &[EntityId],
) -> Result<Vec<Removable>, Failure> {
    let mut removable = Vec::new();
    for batch in ids.chunks(IDS_MAX) {
        let values: Vec<_> = sql::ids(batch).collect();
        for mut row in transaction.rows(&side::FIND_REMOVABLE_LOCATIONS, &values).await? {
            let entity_id = crate::record::entity_id(row.int(0)?)?;
            removable.push(Removable {
                entity_id,
                location: row.text(1)?,
            });
        }
        transaction.run(&side::DETACH_ALIASES, &values).await?;
        transaction.run(&side::DETACH_LOCATIONS, &values).await?;
        transaction.run(&task::FORGET_MAKING, &values).await?;
    }
    Ok(removable)
}
