//! Row locks, and the proofs that they are held. Only here are a [`LockedParent`] and a [`LockedRow`] made.
//!
//! Order everywhere, so that two writers never wait for each other: metalake, catalog, schema, then everything else
//! by id (INV-10). A cascade locks level by level from the top, each level by id.

use treeline_core::{EntityId, Error, Name, Path};

use crate::failure::Failure;
use crate::hooks::mutant;
use crate::record::{self, Record};
use crate::resolve::Resolved;
use crate::sql::{Statement, entity};
use crate::transaction::Transaction;

/// A parent row that is locked, was live when locked, and still has the name under which it was resolved (INV-1).
/// Without one nothing can be inserted below it.
pub(crate) struct LockedParent {
    pub(crate) id: EntityId,
    /// The database's clock under the lock.
    pub(crate) now_ms: i64,
    in_use: bool,
    path: Option<Path>,
}

/// What a create or a rename happens under.
#[derive(Clone, Debug)]
pub(crate) enum Parent {
    /// The root row, above every metalake.
    Root,
    /// An entity as it was resolved.
    Entity(EntityId, Path),
}

impl Parent {
    pub(crate) fn of(resolved: Option<&Resolved>) -> Parent {
        resolved.map_or(Parent::Root, |resolved| {
            Parent::Entity(resolved.id(), resolved.path().clone())
        })
    }

    /// The parent of what was resolved.
    pub(crate) fn above(resolved: &Resolved) -> Parent {
        resolved
            .path()
            .parent()
            .map_or(Parent::Root, |path| Parent::Entity(resolved.parent_id(), path))
    }
}

/// Keeps the parent live and called as it is until the transaction ends; other creates go on (P1).
pub(crate) async fn parent_shared(
    transaction: &mut Transaction<'_>,
    parent: &Parent,
) -> Result<LockedParent, Failure> {
    lock_parent(transaction, &entity::LOCK_PARENT_SHARED, parent).await
}

/// The same against other renames too, so that two of them queue instead of deadlocking (P4).
pub(crate) async fn parent_alter(
    transaction: &mut Transaction<'_>,
    parent: &Parent,
) -> Result<LockedParent, Failure> {
    lock_parent(transaction, &entity::LOCK_PARENT_ALTER, parent).await
}

async fn lock_parent(
    transaction: &mut Transaction<'_>,
    statement: &Statement,
    parent: &Parent,
) -> Result<LockedParent, Failure> {
    let (id, path) = match parent {
        Parent::Root => (EntityId::ROOT, None),
        Parent::Entity(id, path) => (*id, Some(path)),
    };
    let gone = || match path {
        Some(path) => Failure::Answer(Error::not_found(path.kind(), path.to_string())),
        None => Failure::Broken("the root row is missing".to_owned()),
    };
    let Some(mut row) = transaction.row(statement, &[id.into()]).await? else {
        return Err(gone());
    };
    let name = row.text(1)?;
    if path.is_some_and(|path| path.name().as_str() != name) && !mutant("m-name-recheck") {
        return Err(gone());
    }
    Ok(LockedParent {
        id,
        in_use: row.flag(2)?,
        now_ms: row.int(4)?,
        path: path.cloned(),
    })
}

impl LockedParent {
    /// Nothing is created under what is disabled; checked under the lock, so a create cannot slip past.
    pub(crate) fn require_in_use(&self) -> Result<(), Failure> {
        match &self.path {
            Some(path) if !self.in_use => Err(Failure::Answer(Error::NotInUse {
                kind: path.kind(),
                path: path.to_string(),
            })),
            Some(_) | None => Ok(()),
        }
    }
}

/// A row that is locked for an alter, was live when locked, and still has the name under which it was resolved.
pub(crate) async fn row_alter(
    transaction: &mut Transaction<'_>,
    resolved: &Resolved,
) -> Result<Record, Failure> {
    let row = transaction
        .row(&entity::LOCK_ROW_ALTER, &[resolved.id().into()])
        .await?;
    match row.map(Record::decode).transpose()? {
        Some(record) if &record.name == resolved.path().name() => Ok(record),
        Some(_) | None => Err(gone(resolved)),
    }
}

/// A row that is locked for a drop.
pub(crate) struct LockedRow {
    pub(crate) version: treeline_core::Version,
    pub(crate) in_use: bool,
    /// Only where a mutant folds the look for children into the locking statement.
    pub(crate) has_child: Option<bool>,
}

/// `None` if the row is gone, or is no longer called as it was resolved: a drop acts on what it resolved, never on a
/// successor of the name (P3).
pub(crate) async fn row_drop(
    transaction: &mut Transaction<'_>,
    resolved: &Resolved,
) -> Result<Option<LockedRow>, Failure> {
    let Some(mut row) = transaction
        .row(&entity::LOCK_ROW_DROP, &[resolved.id().into()])
        .await?
    else {
        return Ok(None);
    };
    let parent_id = row.int(0)?;
    let name = Name::new(row.text(1)?)?;
    if parent_id != resolved.parent_id().get() || &name != resolved.path().name() {
        return Ok(None);
    }
    let has_child = if mutant("m-lock-then-look") {
        Some(row.flag(4)?)
    } else {
        None
    };
    Ok(Some(LockedRow {
        version: record::version(row.int(2)?)?,
        in_use: row.flag(3)?,
        has_child,
    }))
}

/// What a write answers when the row that it resolved is gone.
pub(crate) fn gone(resolved: &Resolved) -> Failure {
    Failure::Answer(Error::not_found(
        resolved.path().kind(),
        resolved.path().to_string(),
    ))
}
