//! From a path to the rows that it names now, in one round trip.

use async_trait::async_trait;
use treeline_core::{Entity, EntityId, EntityTag, Error, Kind, Path, Payload, Provider, Result};

use crate::failure::Failure;
use crate::record::{self, Record, decode_payload};
use crate::sql;
use crate::transaction::{Transaction, Work};
use crate::value::Value;

/// What a path named when it was read. Writes act on these ids and re-check under their locks what they rest on.
#[derive(Clone, Debug)]
pub struct Resolved {
    pub(crate) path: Path,
    pub(crate) ancestors: Vec<Level>,
    pub(crate) leaf: Record,
}

/// One level above the leaf.
#[derive(Clone, Debug)]
pub struct Level {
    pub(crate) kind: Kind,
    pub(crate) id: EntityId,
    pub(crate) in_use: bool,
    pub(crate) provider: Option<Provider>,
    pub(crate) payload: Option<String>,
}

impl Level {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its own flag.
    pub fn in_use(&self) -> bool {
        self.in_use
    }
}

impl Resolved {
    /// The path that was resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The row.
    pub fn id(&self) -> EntityId {
        self.leaf.id
    }

    /// The row and the version that was read.
    pub fn tag(&self) -> EntityTag {
        self.leaf.tag()
    }

    /// The row's own flag.
    pub fn in_use(&self) -> bool {
        self.leaf.in_use
    }

    /// The levels above, top first.
    pub fn ancestors(&self) -> &[Level] {
        &self.ancestors
    }

    /// The provider of the catalog on the way, or of the row itself.
    pub fn provider(&self) -> Option<Provider> {
        self.leaf
            .provider
            .or_else(|| self.ancestors.iter().find_map(|level| level.provider))
    }

    /// The entity, with its kind's types.
    pub fn entity<P: Payload>(&self) -> Result<Entity<P>> {
        self.leaf.clone().into_entity()
    }

    /// The payload of a level on the way, or of the row itself. Levels above answer theirs only after
    /// [`crate::Store::resolve_with_payloads`].
    pub fn payload<P: Payload>(&self) -> Result<P> {
        if P::KIND == self.leaf.kind {
            return decode_payload(self.leaf.id, self.leaf.kind, &self.leaf.payload);
        }
        let level = self.ancestors.iter().find(|level| level.kind == P::KIND);
        match level.and_then(|level| level.payload.as_deref().map(|text| (level, text))) {
            Some((level, text)) => decode_payload(level.id, level.kind, text),
            None => Err(Error::internal(format!(
                "{} was resolved without the payload of its {}",
                self.path,
                P::KIND
            ))),
        }
    }

    /// The id of the metalake at the top.
    pub(crate) fn metalake_id(&self) -> EntityId {
        self.ancestors.first().map_or(self.leaf.id, |level| level.id)
    }

    /// The id of the row directly above.
    pub(crate) fn parent_id(&self) -> EntityId {
        self.ancestors.last().map_or(EntityId::ROOT, |level| level.id)
    }
}

/// Reads a path.
pub(crate) struct Resolve {
    pub(crate) path: Path,
    pub(crate) with_payloads: bool,
}

#[async_trait]
impl Work for Resolve {
    type Output = Resolved;
    const NAME: &'static str = "resolve";

    async fn run(&self, transaction: &mut Transaction<'_>) -> std::result::Result<Resolved, Failure> {
        let names = self.path.names();
        let below = self
            .path
            .levels()
            .skip(1)
            .flat_map(|(kind, name)| [kind.as_str(), name.as_str()]);
        let values: Vec<Value> = below.chain([names[0].as_str()]).map(Value::from).collect();
        let statement = sql::resolve::resolve(names.len(), self.with_payloads);
        let Some(mut row) = transaction.row(statement, &values).await? else {
            return Err(self.missing(Kind::Metalake));
        };
        let mut ancestors = Vec::with_capacity(names.len() - 1);
        let mut column = 0;
        for (level, (kind, _)) in self.path.levels().enumerate() {
            let Some(id) = row.maybe_int(column)? else {
                return Err(self.missing(kind));
            };
            let id = record::entity_id(id)?;
            let in_use = row.flag(column + 1)?;
            let provider = record::provider(row.maybe_text(column + 2)?)?;
            column += 3;
            if level + 1 < names.len() {
                let payload = if self.with_payloads {
                    Some(row.text(column)?)
                } else {
                    None
                };
                column += usize::from(self.with_payloads);
                ancestors.push(Level {
                    kind,
                    id,
                    in_use,
                    provider,
                    payload,
                });
                continue;
            }
            let leaf = Record {
                id,
                kind: record::kind(&row.text(column)?)?,
                version: record::version(row.int(column + 1)?)?,
                name: record::name(row.text(column + 2)?)?,
                in_use,
                provider,
                payload: row.text(column + 3)?,
                audit: record::audit(&mut row, column + 4)?,
            };
            return Ok(Resolved {
                path: self.path.clone(),
                ancestors,
                leaf,
            });
        }
        Err(Failure::Broken(format!("{} has no levels", self.path)))
    }
}

impl Resolve {
    fn missing(&self, kind: Kind) -> Failure {
        Failure::Answer(Error::not_found(kind, self.path.up_to(kind).to_string()))
    }
}
