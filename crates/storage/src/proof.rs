//! How it is found out whether a commit took effect whose answer was lost (INV-12).

use async_trait::async_trait;
use treeline_core::{EntityId, Version};

use crate::failure::Failure;
use crate::sql::feed::FIND_PROOF;
use crate::transaction::{Transaction, Work};

/// What proves that a write took effect: its row in the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proof {
    pub(crate) id: EntityId,
    pub(crate) version: Version,
    /// What the feed calls the request.
    pub(crate) feed_id: String,
}

/// The look for it.
pub(crate) struct LookForProof(pub(crate) Proof);

#[async_trait]
impl Work for LookForProof {
    type Output = bool;
    const NAME: &'static str = "look_for_proof";

    async fn run(&self, transaction: &mut Transaction<'_>) -> Result<bool, Failure> {
        let values = [
            self.0.id.into(),
            self.0.version.into(),
            self.0.feed_id.as_str().into(),
        ];
        Ok(transaction.row(&FIND_PROOF, &values).await?.is_some())
    }
}
