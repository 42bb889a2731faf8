//! Somebody who locks rows against the order of the protocols, in test builds only: nobody of ours does, so a deadlock
//! with one of ours has to be made.

use async_trait::async_trait;
use treeline_core::EntityId;

use crate::failure::Failure;
use crate::hooks::sync_point;
use crate::sql::{self, entity, idempotency};
use crate::transaction::{Transaction, Work};
use crate::value::Value;

/// InnoDB ends the transaction that has written less, so the stranger writes a little first.
const WRITES: usize = 16;

/// Locks one row and then another, and rolls back.
pub(crate) struct Stranger {
    pub(crate) first: EntityId,
    pub(crate) second: EntityId,
    /// What its sync point, `stranger.first_locked`, is armed by.
    pub(crate) name: String,
}

#[async_trait]
impl Work for Stranger {
    type Output = ();
    const NAME: &'static str = "stranger";

    async fn run(&self, transaction: &mut Transaction<'_>) -> Result<(), Failure> {
        for number in 0..WRITES {
            let key = format!("{}-{number}", self.name);
            let values = ["stranger".into(), key.as_str().into(), "".into()];
            transaction.run_one(&idempotency::INSERT_KEY, &values).await?;
        }
        lock(transaction, self.first).await?;
        sync_point!("stranger.first_locked", self.name.as_str());
        lock(transaction, self.second).await?;
        // It has done what it came for, and leaves nothing behind.
        Err(Failure::Lost)
    }
}

async fn lock(transaction: &mut Transaction<'_>, id: EntityId) -> Result<(), Failure> {
    let values: Vec<Value> = sql::ids(&[id]).collect();
    transaction.rows(&entity::LOCK_ROWS_DROP, &values).await.map(drop)
}
