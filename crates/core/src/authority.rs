//! Who decides about an object: our store, or the system that it lives in.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Error, Kind, Result};

/// What sort of catalog it is; fixed at creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CatalogType {
    /// Tables and views.
    Relational,
    /// Filesets.
    Fileset,
    /// Topics.
    Messaging,
    /// Models.
    Model,
}

/// What stands behind a catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// Our own filesets.
    Fileset,
    /// Our own models.
    Model,
}

/// Which side is right about an object (design §1: one authority per object).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Authority {
    /// Our row is the object.
    Managed,
    /// The external system is right, and our row is a mirror that converges to it.
    Mirrored,
}

/// Who decides about objects of this kind under this provider. [`Error::Unsupported`] where the provider has no
/// such objects.
pub fn authority(provider: Provider, kind: Kind) -> Result<Authority> {
    match (provider, kind) {
        (_, Kind::Metalake | Kind::Catalog | Kind::Schema)
        | (Provider::Fileset, Kind::Fileset)
        | (Provider::Model, Kind::Model | Kind::ModelVersion) => Ok(Authority::Managed),
        (Provider::Fileset, Kind::Model | Kind::ModelVersion) | (Provider::Model, Kind::Fileset) => {
            Err(Error::Unsupported {
                operation: format!("a {kind} in a catalog of provider `{provider}`"),
                reason: "this provider has none".to_owned(),
            })
        }
    }
}

/// The only provider that has objects of this kind, where there is but one: then the kind alone says what its catalog is.
pub const fn sole_provider(kind: Kind) -> Option<Provider> {
    match kind {
        Kind::Fileset => Some(Provider::Fileset),
        Kind::Model | Kind::ModelVersion => Some(Provider::Model),
        Kind::Metalake | Kind::Catalog | Kind::Schema => None,
    }
}

impl CatalogType {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            CatalogType::Relational => "relational",
            CatalogType::Fileset => "fileset",
            CatalogType::Messaging => "messaging",
            CatalogType::Model => "model",
        }
    }
}

impl fmt::Display for CatalogType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for CatalogType {
    type Err = Error;

    fn from_str(word: &str) -> Result<CatalogType> {
        [
            CatalogType::Relational,
            CatalogType::Fileset,
            CatalogType::Messaging,
            CatalogType::Model,
        ]
        .into_iter()
        .find(|catalog_type| catalog_type.as_str().eq_ignore_ascii_case(word))
        .ok_or_else(|| {
            Error::invalid(
                "type",
                format!("`{word}` is none of relational, fileset, messaging, model"),
            )
        })
    }
}

impl Provider {
    /// The word on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Provider::Fileset => "fileset",
            Provider::Model => "model",
        }
    }

    /// The type of the catalogs that this provider stands behind.
    pub const fn catalog_type(self) -> CatalogType {
        match self {
            Provider::Fileset => CatalogType::Fileset,
            Provider::Model => CatalogType::Model,
        }
    }

    /// The provider that a client means: by its word, by an old word for it, or by the type alone where that is
    /// enough. [`Error::Invalid`] names the providers that there are.
    pub fn choose(catalog_type: CatalogType, word: Option<&str>) -> Result<Provider> {
        let provider = match (word, catalog_type) {
            (None, CatalogType::Fileset) | (Some("fileset" | "hadoop"), _) => Provider::Fileset,
            (None, CatalogType::Model) | (Some("model"), _) => Provider::Model,
            (None, CatalogType::Relational | CatalogType::Messaging) => {
                return Err(Error::invalid(
                    "provider",
                    format!("a {catalog_type} catalog needs one"),
                ));
            }
            (Some(word), _) => {
                let reason = format!("`{word}` is none that this server has: fileset, model");
                return Err(Error::invalid("provider", reason));
            }
        };
        if provider.catalog_type() == catalog_type {
            Ok(provider)
        } else {
            Err(Error::invalid(
                "provider",
                format!("`{provider}` does not make a {catalog_type} catalog"),
            ))
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Provider {
    type Err = Error;

    fn from_str(word: &str) -> Result<Provider> {
        [Provider::Fileset, Provider::Model]
            .into_iter()
            .find(|provider| provider.as_str() == word)
            .ok_or_else(|| Error::internal(format!("the database names an unknown provider `{word}`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sole_provider_is_the_only_one_that_has_the_kind() {
        for kind in Kind::all() {
            let having: Vec<Provider> = [Provider::Fileset, Provider::Model]
                .into_iter()
                .filter(|provider| authority(*provider, kind).is_ok())
                .collect();
            let sole = match having[..] {
                [provider] => Some(provider),
                _ => None,
            };
            assert_eq!(sole_provider(kind), sole, "{kind}");
        }
    }

    #[test]
    fn the_type_alone_is_enough_for_filesets_and_models_only() {
        assert_eq!(
            Provider::choose(CatalogType::Fileset, None),
            Ok(Provider::Fileset)
        );
        assert_eq!(
            Provider::choose(CatalogType::Fileset, Some("hadoop")),
            Ok(Provider::Fileset)
        );
        assert_eq!(Provider::choose(CatalogType::Model, None), Ok(Provider::Model));
        assert!(Provider::choose(CatalogType::Relational, None).is_err());
        assert!(Provider::choose(CatalogType::Model, Some("fileset")).is_err());
        assert!(Provider::choose(CatalogType::Relational, Some("hive")).is_err());
    }
}
