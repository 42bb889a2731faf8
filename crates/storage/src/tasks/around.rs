//! What is still to be removed where a fileset is to be.

use async_trait::async_trait;

use super::places::{inside, places_above};
use crate::failure::Failure;
use crate::hooks::mutant;
use crate::sql::{PLACES_MAX, task};
use crate::transaction::{Transaction, Work};
use crate::value::{Row, Value};

/// What is still to be removed at or around a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// Nothing that a fileset there has to wait for.
    None,
    /// Something that nobody has begun with, or whose claim has run out.
    Free,
    /// Something that somebody has claimed, and so may have begun with.
    Claimed,
}

/// Whether a tree that overlaps this location, or the directory there, is still to be removed.
async fn removal_around(transaction: &mut Transaction<'_>, location: &str) -> Result<Removal, Failure> {
    if mutant("m-purge-claim") {
        return Ok(Removal::None);
    }
    let mut removal = Removal::None;
    for row in find_removals_around(transaction, location).await? {
        if row.int(6)? == 1 {
            return Ok(Removal::Claimed);
        }
        removal = Removal::Free;
    }
    Ok(removal)
}

/// Whether a create at this location has to wait.
pub(crate) async fn removal_overlaps(
    transaction: &mut Transaction<'_>,
    location: &str,
) -> Result<bool, Failure> {
    Ok(removal_around(transaction, location).await? != Removal::None)
}

/// The tasks that a fileset at this location has to wait for.
pub(super) async fn find_removals_around(
    transaction: &mut Transaction<'_>,
    location: &str,
) -> Result<Vec<Row>, Failure> {
    let above = places_above(location);
    let mut found = Vec::new();
    for chunk in above.chunks(PLACES_MAX) {
        let places = (0..PLACES_MAX).map(|place| Value::from(chunk.get(place).copied().unwrap_or(location)));
        let values: Vec<Value> = [location.into()]
            .into_iter()
            .chain(inside(location))
            .chain(places)
            .collect();
        found.extend(
            transaction
                .rows(&task::FIND_REMOVALS_OVERLAPPING, &values)
                .await?,
        );
    }
    Ok(found)
}

/// Looks for removals around a location.
pub(crate) struct RemovalAround {
    pub(crate) location: String,
}

#[async_trait]
impl Work for RemovalAround {
    type Output = Removal;
    const NAME: &'static str = "removal_around";

    async fn run(&self, transaction: &mut Transaction<'_>) -> Result<Removal, Failure> {
        removal_around(transaction, &self.location).await
    }
}
