//! One row of `entities`, without its kind's types: what the protocols work on, so that they compile once.

use serde::{Deserialize, Serialize};
use treeline_core::{
    Audit, Entity, EntityId, EntityTag, Error, Kind, Name, Payload, Provider, Result, Version,
};

use crate::failure::Failure;
use crate::value::Row;

/// A row as it was read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) id: EntityId,
    pub(crate) kind: Kind,
    pub(crate) version: Version,
    pub(crate) name: Name,
    pub(crate) in_use: bool,
    pub(crate) provider: Option<Provider>,
    pub(crate) payload: String,
    pub(crate) audit: Audit,
}

impl Record {
    /// Decodes the columns `id, kind, version, name, in_use, provider, payload` and the audit, in that order.
    pub(crate) fn decode(mut row: Row) -> std::result::Result<Record, Failure> {
        Ok(Record {
            id: entity_id(row.int(0)?)?,
            kind: kind(&row.text(1)?)?,
            version: version(row.int(2)?)?,
            name: name(row.text(3)?)?,
            in_use: row.flag(4)?,
            provider: provider(row.maybe_text(5)?)?,
            payload: row.text(6)?,
            audit: audit(&mut row, 7)?,
        })
    }

    pub(crate) fn tag(&self) -> EntityTag {
        EntityTag {
            id: self.id,
            version: self.version,
        }
    }

    /// The row with its kind's types. A payload that does not decode is a damaged database.
    pub(crate) fn into_entity<P: Payload>(self) -> Result<Entity<P>> {
        let payload = decode_payload(self.id, self.kind, &self.payload)?;
        Ok(Entity {
            id: self.id,
            version: self.version,
            name: self.name,
            in_use: self.in_use,
            payload,
            audit: self.audit,
        })
    }
}

/// Reads a payload back. The other half of [`encode_payload`], and checked like it.
pub(crate) fn decode_payload<P: Payload>(id: EntityId, kind: Kind, text: &str) -> Result<P> {
    if kind != P::KIND {
        return Err(Error::internal(format!(
            "row {id} is a {kind}, and was read as a {}",
            P::KIND
        )));
    }
    serde_json::from_str(text).map_err(|error| Error::internal(format!("the payload of row {id}: {error}")))
}

/// How long the text of a payload may be. The outcome of a keyed write has it as a JSON string, which is at most twice as
/// long, and that must fit a MEDIUMTEXT of MySQL and one packet of MariaDB: 16 MiB both.
const PAYLOAD_BYTES_MAX: usize = 8_000_000;

/// The text that the store keeps: equal payloads give equal bytes.
///
/// # Errors
/// [`Error::Invalid`] for one that is longer than the store keeps.
pub(crate) fn encode_payload<P: Payload>(payload: &P) -> Result<String> {
    let text = serde_json::to_string(payload)
        .map_err(|error| Error::internal(format!("a payload of a {}: {error}", P::KIND)))?;
    if text.len() > PAYLOAD_BYTES_MAX {
        let reason = format!(
            "it would hold {} bytes, and {PAYLOAD_BYTES_MAX} is the most that is kept of one",
            text.len()
        );
        return Err(Error::invalid(P::KIND.as_str(), reason));
    }
    Ok(text)
}

pub(crate) fn audit(row: &mut Row, column: usize) -> std::result::Result<Audit, Failure> {
    Ok(Audit {
        creator: row.text(column)?,
        created_at_ms: row.int(column + 1)?,
        last_modifier: row.maybe_text(column + 2)?,
        last_modified_at_ms: row.maybe_int(column + 3)?,
    })
}

pub(crate) fn entity_id(number: i64) -> std::result::Result<EntityId, Failure> {
    EntityId::new(number).map_err(|_| Failure::Broken(format!("the database holds the id {number}")))
}

pub(crate) fn version(number: i64) -> std::result::Result<Version, Failure> {
    Version::new(number).map_err(|_| Failure::Broken(format!("the database holds the version {number}")))
}

pub(crate) fn kind(word: &str) -> std::result::Result<Kind, Failure> {
    word.parse()
        .map_err(|_| Failure::Broken(format!("the database holds the kind `{word}`")))
}

pub(crate) fn name(text: String) -> std::result::Result<Name, Failure> {
    Name::new(text).map_err(|error| Failure::Broken(format!("the database holds a bad name: {error}")))
}

pub(crate) fn provider(word: Option<String>) -> std::result::Result<Option<Provider>, Failure> {
    word.map(|word| word.parse().map_err(Failure::Answer)).transpose()
}
