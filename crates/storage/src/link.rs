//! Linking a version to a model: in one transaction, an alter of the model and a strict create of the child.
//!
//! 1. Lock the model's row in the alter mode, and re-check its name.
//! 2. Take the next number out of its payload; its version rises (INV-3), so two links never get one number.
//! 3. Insert the version under that number, and its aliases.
//! 4. Two feed rows: the model's, then the version's.

use std::sync::Arc;

use async_trait::async_trait;
use treeline_core::kinds::Model;
use treeline_core::{Kind, Name, Operation};

use crate::context::WriteContext;
use crate::create::{self, NewRow};
use crate::failure::Failure;
use crate::feed::{self, Entry};
use crate::hooks::sync_point;
use crate::ids::Ids;
use crate::lock::{self, Parent};
use crate::record::{Record, decode_payload, encode_payload};
use crate::resolve::Resolved;
use crate::side::{self, AliasChange};
use crate::sql::entity;
use crate::transaction::{Proof, Transaction, Work};

/// One link.
pub(crate) struct Link {
    pub(crate) context: WriteContext,
    pub(crate) ids: Arc<Ids>,
    pub(crate) model: Arc<Resolved>,
    /// The version's payload.
    pub(crate) payload: String,
    pub(crate) aliases: AliasChange,
}

#[async_trait]
impl Work for Link {
    type Output = Record;
    const NAME: &'static str = "link";

    async fn run(&self, transaction: &mut Transaction<'_>) -> Result<Record, Failure> {
        let record = lock::row_alter(transaction, &self.model).await?;
        sync_point!("link.model_locked", record.name.as_str());
        let model_path = self.model.path();
        let mut model: Model = decode_payload(record.id, record.kind, &record.payload)?;
        let number = model.take_number()?;
        let values = [
            record.in_use.into(),
            encode_payload(&model)?.into(),
            self.context.principal.as_str().into(),
            record.id.into(),
            record.version.into(),
        ];
        transaction.run_one(&entity::UPDATE_ENTITY, &values).await?;

        let row = NewRow {
            kind: Kind::ModelVersion,
            name: Name::of_number(number),
            provider: None,
            payload: self.payload.clone(),
        };
        let path = model_path.child(Kind::ModelVersion, row.name.clone());
        let parent = lock::parent_shared(transaction, &Parent::of(Some(&self.model))).await?;
        let id = self.ids.next()?;
        let metalake_id = self.model.metalake_id();
        let version =
            create::insert(transaction, &self.context, id, &parent, metalake_id, &row, &path).await?;
        side::change_aliases(transaction, record.id, id, model_path, &self.aliases).await?;

        let altered = Entry {
            id: record.id,
            kind: record.kind,
            names: &feed::names(model_path),
            operation: Operation::Alter,
            version: record.version.next(),
        };
        feed::append(transaction, &self.context, altered).await?;
        create::append_created(transaction, &self.context, &version, &feed::names(&path)).await?;
        sync_point!("link.written", record.name.as_str());
        Ok(version)
    }

    fn proof(&self, output: &Record) -> Option<Proof> {
        Some(self.context.proof(output.id, output.version))
    }
}
