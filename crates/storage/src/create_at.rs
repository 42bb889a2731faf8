//! P1 without a look at the parent first, for PostgreSQL: one round trip where [`Create`] and its resolution take two.
//!
//! It is for what lies in a schema and whose kind says of which provider the catalog must be, so that everything about
//! the new entity is checked beforehand. The statement goes the whole way down by name, as a resolution does, and takes
//! the lock of the portable form on the schema. Where it writes nothing, the portable form resolves, locks and says why.

use std::sync::Arc;

use async_trait::async_trait;
use treeline_core::{Path, Provider};

use crate::context::WriteContext;
use crate::create::{Create, Created, NewRow, new_record};
use crate::failure::Failure;
use crate::feed;
use crate::ids::Ids;
use crate::lock::Parent;
use crate::record::Record;
use crate::resolve::Resolve;
use crate::sql::fused::FUSED_CREATE_AT;
use crate::tasks::Claim;
use crate::transaction::{Fused, Proof, Transaction, Work};

/// One strict create at a path that nobody has resolved.
pub(crate) struct CreateAt {
    pub(crate) context: WriteContext,
    pub(crate) ids: Arc<Ids>,
    /// Of the new entity.
    pub(crate) path: Path,
    /// Of the schema.
    pub(crate) parent: Path,
    /// What the catalog is.
    pub(crate) provider: Provider,
    pub(crate) row: NewRow,
}

#[async_trait]
impl Work for CreateAt {
    /// None where something above is disabled, or the catalog is of another provider: nothing was written.
    type Output = Option<Record>;
    const NAME: &'static str = "create";

    async fn run(&self, transaction: &mut Transaction<'_>) -> Result<Option<Record>, Failure> {
        let resolve = Resolve {
            path: self.parent.clone(),
            with_payloads: false,
        };
        let parent = resolve.run(transaction).await?;
        let enabled = parent.in_use() && parent.ancestors().iter().all(|level| level.in_use());
        if !enabled || parent.provider() != Some(self.provider) {
            return Ok(None);
        }
        let create = Create {
            context: self.context.clone(),
            ids: Arc::clone(&self.ids),
            parent: Parent::of(Some(&parent)),
            path: self.path.clone(),
            metalake_id: Some(parent.metalake_id()),
            row: self.row.clone(),
            // Without locations there is nothing to claim.
            locations: Vec::new(),
            claim: Claim::default(),
        };
        match create.run(transaction).await? {
            Created::Done(record, _) | Created::Kept(record) => Ok(Some(record)),
            Created::Blocked => Err(Failure::Broken("blocked without a location".to_owned())),
        }
    }

    fn fuse(&self) -> Option<Fused<Option<Record>>> {
        let id = self.ids.next().ok()?;
        let parent = self.parent.names();
        let values = vec![
            parent[1].as_str().into(),
            parent[2].as_str().into(),
            parent[0].as_str().into(),
            self.provider.as_str().into(),
            id.into(),
            self.row.kind.as_str().into(),
            self.row.name.as_str().into(),
            self.row.payload.as_str().into(),
            self.context.principal.as_str().into(),
            feed::path_text(&feed::names(&self.path)).ok()?.into(),
            self.context.feed_id().into(),
        ];
        let (row, principal) = (self.row.clone(), self.context.principal.clone());
        let answer = move |created_at_ms| Some(new_record(id, row, principal, created_at_ms));
        Some(Fused {
            statement: &FUSED_CREATE_AT,
            values,
            answer: Box::new(answer),
            nothing: None,
        })
    }

    fn proof(&self, output: &Option<Record>) -> Option<Proof> {
        let record = output.as_ref()?;
        Some(self.context.proof(record.id, record.version))
    }
}
