//! A version of a model: named by its number, reached by aliases too, with one or several URIs.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::UNNAMED;
use crate::{Alias, Draft, Error, Kind, Missing, Payload, Properties, PropertyChange, Result};

/// The property, of a version or of its model, that says which URI is meant when none is named.
pub const DEFAULT_URI_NAME: &str = "default-uri-name";

/// How many aliases one version may have. Each is a row of its own, written while the model's row is locked, and whoever
/// else writes that model waits meanwhile.
pub const ALIASES_MAX: usize = 256;

/// What a model version keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelVersion {
    /// Free text.
    pub comment: Option<String>,
    /// In byte order, at most [`ALIASES_MAX`]; each unique in the model (INV-7).
    pub aliases: BTreeSet<Alias>,
    /// Name to URI, never empty. Nobody here ever opens one.
    pub uris: BTreeMap<String, String>,
    /// As given.
    pub properties: Properties,
}

impl ModelVersion {
    /// The URI that a request means: the one it names, the only one, the version's default, the model's default.
    /// [`Error::NotFound`] of the URI's name, or [`Error::Invalid`] where nothing says which.
    pub fn uri(&self, named: Option<&str>, model: &Properties) -> Result<&str> {
        let default = || {
            self.properties
                .get(DEFAULT_URI_NAME)
                .or_else(|| model.get(DEFAULT_URI_NAME))
        };
        let name = match named {
            Some(name) => name,
            None if self.uris.len() == 1 => return Ok(self.uris.values().next().map_or("", String::as_str)),
            None => default().ok_or_else(|| {
                Error::invalid(
                    "uriName",
                    format!("there are several URIs and no `{DEFAULT_URI_NAME}`"),
                )
            })?,
        };
        self.uris
            .get(name)
            .map(String::as_str)
            .ok_or_else(|| Error::NotFound {
                what: Missing::UriName,
                path: name.to_owned(),
            })
    }
}

/// One change of a model version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelVersionChange {
    /// Sets or clears the comment.
    UpdateComment(Option<String>),
    /// Sets or removes a property.
    Property(PropertyChange),
    /// Replaces the URI of that name; a name that is not there is no error and changes nothing.
    UpdateUri {
        /// Which; [`UNNAMED`] if none was given.
        name: String,
        /// To what.
        uri: String,
    },
    /// Adds a URI; a name that is there keeps what it has.
    AddUri {
        /// Which.
        name: String,
        /// What.
        uri: String,
    },
    /// Removes a URI; the last one cannot go.
    RemoveUri(String),
    /// Adds and removes aliases. What stands in both lists cancels out.
    UpdateAliases {
        /// To add.
        add: BTreeSet<Alias>,
        /// To remove; one that is not there is no error.
        remove: BTreeSet<Alias>,
    },
}

impl Payload for ModelVersion {
    const KIND: Kind = Kind::ModelVersion;
    type Change = ModelVersionChange;

    fn apply(draft: &mut Draft<Self>, change: &ModelVersionChange) -> Result<()> {
        let version = &mut draft.payload;
        match change.clone() {
            ModelVersionChange::UpdateComment(comment) => version.comment = comment,
            ModelVersionChange::Property(change) => change.apply(&mut version.properties),
            ModelVersionChange::UpdateUri { name, uri } => {
                if let Some(held) = version.uris.get_mut(&name) {
                    *held = uri;
                }
            }
            ModelVersionChange::AddUri { name, uri } => {
                version.uris.entry(name).or_insert(uri);
            }
            ModelVersionChange::RemoveUri(name) => {
                version.uris.remove(&name);
            }
            ModelVersionChange::UpdateAliases { add, remove } => {
                version
                    .aliases
                    .retain(|alias| add.contains(alias) || !remove.contains(alias));
                version.aliases.extend(add.difference(&remove).cloned());
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        if self.uris.is_empty() {
            return Err(Error::invalid("uris", "a model version needs at least one URI"));
        }
        if self.aliases.len() > ALIASES_MAX {
            let reason = format!("a model version has at most {ALIASES_MAX} aliases");
            return Err(Error::invalid("aliases", reason));
        }
        let blank = self
            .uris
            .iter()
            .any(|(name, uri)| name.trim().is_empty() || uri.trim().is_empty());
        if blank {
            Err(Error::invalid("uris", "neither a name nor a URI may be blank"))
        } else {
            Ok(())
        }
    }

    fn property_change(change: &ModelVersionChange) -> Option<&PropertyChange> {
        match change {
            ModelVersionChange::Property(change) => Some(change),
            ModelVersionChange::UpdateComment(_)
            | ModelVersionChange::UpdateUri { .. }
            | ModelVersionChange::AddUri { .. }
            | ModelVersionChange::RemoveUri(_)
            | ModelVersionChange::UpdateAliases { .. } => None,
        }
    }

    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn aliases(&self) -> Option<&BTreeSet<Alias>> {
        Some(&self.aliases)
    }

    #[expect(clippy::expect_used, reason = "a constant alias")]
    fn sample() -> ModelVersion {
        ModelVersion {
            comment: Some("a version".to_owned()),
            aliases: BTreeSet::from([Alias::new("sample").expect("well-formed")]),
            uris: BTreeMap::from([(UNNAMED.to_owned(), "s3://models/ranking/0".to_owned())]),
            properties: Properties::from([("auc".to_owned(), "0.91".to_owned())]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;

    fn aliases(words: &[&str]) -> BTreeSet<Alias> {
        words.iter().map(|word| Alias::new(*word).unwrap()).collect()
    }

    #[test]
    fn an_alias_in_both_lists_stays_as_it_was() {
        let mut draft = Draft::new(Name::of_number(0), ModelVersion::sample());
        draft.payload.aliases = aliases(&["a1", "a2"]);
        let change = ModelVersionChange::UpdateAliases {
            add: aliases(&["a2", "a3", "a4"]),
            remove: aliases(&["a1", "a2", "a4"]),
        };
        assert_eq!(draft.apply_all(&[change]), Ok(()));
        assert_eq!(draft.payload.aliases, aliases(&["a2", "a3"]));
    }

    #[test]
    fn more_aliases_than_the_bound_are_refused_in_a_new_version_and_after_a_change() {
        let numbered = |count: usize| (0..count).map(|number| Alias::new(format!("a{number}")).unwrap());
        let mut version = ModelVersion {
            aliases: numbered(ALIASES_MAX).collect(),
            ..ModelVersion::sample()
        };
        assert_eq!(version.check(), Ok(()));
        let add_and_remove = |added: &str, removed: &[&str]| ModelVersionChange::UpdateAliases {
            add: aliases(&[added]),
            remove: aliases(removed),
        };
        let mut draft = Draft::new(Name::of_number(0), version.clone());
        assert_eq!(draft.apply_all(&[add_and_remove("one-more", &["a0"])]), Ok(()));
        assert_eq!(
            draft.apply_all(&[add_and_remove("too-much", &[])]),
            Err(Error::invalid(
                "aliases",
                "a model version has at most 256 aliases"
            ))
        );
        version.aliases.extend(aliases(&["too-much"]));
        assert!(matches!(version.check(), Err(Error::Invalid { .. })));
    }

    #[test]
    fn uris_are_added_once_replaced_by_name_and_never_all_removed() {
        let mut draft = Draft::new(Name::of_number(0), ModelVersion::sample());
        let changes = [
            ModelVersionChange::AddUri {
                name: UNNAMED.into(),
                uri: "other".into(),
            },
            ModelVersionChange::UpdateUri {
                name: "missing".into(),
                uri: "other".into(),
            },
            ModelVersionChange::AddUri {
                name: "second".into(),
                uri: "s3://second".into(),
            },
        ];
        assert_eq!(draft.apply_all(&changes), Ok(()));
        assert_eq!(draft.payload.uris[UNNAMED], "s3://models/ranking/0");
        assert_eq!(draft.payload.uris["second"], "s3://second");
        assert_eq!(draft.payload.uris.len(), 2);
        let remove = |name: &str| ModelVersionChange::RemoveUri(name.to_owned());
        assert!(
            draft
                .clone()
                .apply_all(&[remove(UNNAMED), remove("second")])
                .is_err()
        );
        assert_eq!(draft.apply_all(&[remove("second")]), Ok(()));
    }

    #[test]
    fn a_uri_is_found_by_name_alone_by_the_versions_default_or_by_the_models() {
        let mut version = ModelVersion::sample();
        let mut model = Properties::new();
        assert_eq!(version.uri(None, &model), Ok("s3://models/ranking/0"));
        version.uris.insert("n1".into(), "u1".into());
        version.uris.insert("n2".into(), "u2".into());
        assert!(matches!(version.uri(None, &model), Err(Error::Invalid { .. })));
        model.insert(DEFAULT_URI_NAME.into(), "n1".into());
        assert_eq!(version.uri(None, &model), Ok("u1"));
        version.properties.insert(DEFAULT_URI_NAME.into(), "n2".into());
        assert_eq!(version.uri(None, &model), Ok("u2"));
        assert!(matches!(
            version.uri(Some("n3"), &model),
            Err(Error::NotFound {
                what: Missing::UriName,
                ..
            })
        ));
    }
}
