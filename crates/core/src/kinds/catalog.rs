//! The catalog: schemas behind one provider, with its own switch.

use serde::{Deserialize, Serialize};

use super::require_in_use;
use crate::{CatalogType, Draft, Kind, Name, Payload, Properties, Provider, Result};

/// What a catalog keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalog {
    /// What stands behind it; fixed at creation. Its type follows from it.
    pub provider: Provider,
    /// Free text.
    pub comment: Option<String>,
    /// As given; the `in-use` that clients see is not among them.
    pub properties: Properties,
}

impl Catalog {
    /// What sort of catalog it is.
    pub fn catalog_type(&self) -> CatalogType {
        self.provider.catalog_type()
    }
}

/// One change of a catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogChange {
    /// Gives it another name (P4).
    Rename(Name),
    /// Sets or clears the comment.
    UpdateComment(Option<String>),
    /// Sets one property.
    SetProperty {
        /// Which.
        key: String,
        /// To what.
        value: String,
    },
    /// Removes one property; one that is not there is no error.
    RemoveProperty(String),
    /// Enables or disables it; the one change that a disabled catalog takes.
    SetInUse(bool),
}

impl Payload for Catalog {
    const KIND: Kind = Kind::Catalog;
    type Change = CatalogChange;

    fn apply(draft: &mut Draft<Self>, change: &CatalogChange) -> Result<()> {
        if let CatalogChange::SetInUse(in_use) = change {
            draft.in_use = *in_use;
            return Ok(());
        }
        require_in_use(Kind::Catalog, &draft.name, draft.in_use)?;
        match change.clone() {
            CatalogChange::Rename(name) => draft.name = name,
            CatalogChange::UpdateComment(comment) => draft.payload.comment = comment,
            CatalogChange::SetProperty { key, value } => {
                draft.payload.properties.insert(key, value);
            }
            CatalogChange::RemoveProperty(key) => {
                draft.payload.properties.remove(&key);
            }
            CatalogChange::SetInUse(in_use) => draft.in_use = in_use,
        }
        Ok(())
    }

    fn touched_property(change: &CatalogChange) -> Option<(&str, Option<&str>)> {
        match change {
            CatalogChange::SetProperty { key, value } => Some((key, Some(value))),
            CatalogChange::RemoveProperty(key) => Some((key, None)),
            CatalogChange::Rename(_) | CatalogChange::UpdateComment(_) | CatalogChange::SetInUse(_) => None,
        }
    }

    fn new_name(change: &CatalogChange) -> Option<&Name> {
        if let CatalogChange::Rename(name) = change {
            Some(name)
        } else {
            None
        }
    }

    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn provider(&self) -> Option<Provider> {
        Some(self.provider)
    }

    fn sample() -> Catalog {
        Catalog {
            provider: Provider::Fileset,
            comment: Some("a catalog".to_owned()),
            properties: Properties::from([("cloud.name".to_owned(), "other".to_owned())]),
        }
    }
}
