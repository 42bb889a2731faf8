//! The catalog: schemas behind one provider, with its own switch.

use serde::{Deserialize, Serialize};

use super::SwitchableChange;
use super::change::Described;
use crate::{CatalogType, Draft, Kind, Name, Payload, Properties, PropertyChange, Provider, Result};

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

impl Described for Catalog {
    fn described(&mut self) -> (&mut Option<String>, &mut Properties) {
        (&mut self.comment, &mut self.properties)
    }
}

impl Payload for Catalog {
    const KIND: Kind = Kind::Catalog;
    type Change = SwitchableChange;

    fn apply(draft: &mut Draft<Self>, change: &SwitchableChange) -> Result<()> {
        change.apply(draft)
    }

    fn property_change(change: &SwitchableChange) -> Option<&PropertyChange> {
        change.common()?.property()
    }

    fn new_name(change: &SwitchableChange) -> Option<&Name> {
        change.common()?.new_name()
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
