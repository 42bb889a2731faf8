//! The fileset: files at one or several named locations, ours to remove or not.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::CommonChange;
use super::change::Described;
use crate::{Draft, Error, Kind, Missing, Name, Payload, Properties, PropertyChange, Result};

/// The name of a location, or of a URI, that was given without one.
pub const UNNAMED: &str = "unknown";

/// The property that says which location is meant when none is named.
pub const DEFAULT_LOCATION_NAME: &str = "default-location-name";

/// How many locations one fileset may have. Each is looked at, made and removed on its own, with several operations on
/// files.
pub const LOCATIONS_MAX: usize = 256;

/// Who owns the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FilesetType {
    /// We made the directories, and a drop removes them.
    Managed,
    /// Somebody else's files: a drop keeps them.
    External,
}

/// What a fileset keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fileset {
    /// Free text.
    pub comment: Option<String>,
    /// Who owns the files; fixed at creation.
    pub fileset_type: FilesetType,
    /// Name to qualified location (`file:/data/a`); fixed at creation, never empty, at most [`LOCATIONS_MAX`].
    pub locations: BTreeMap<String, String>,
    /// As given, and [`DEFAULT_LOCATION_NAME`].
    pub properties: Properties,
}

impl Fileset {
    /// The location that a request means: the one it names, the only one, or the default.
    /// [`Error::NotFound`] of the location's name where there is none.
    pub fn location(&self, named: Option<&str>) -> Result<&str> {
        let name = match named {
            Some(name) => name,
            None if self.locations.len() == 1 => {
                return Ok(self.locations.values().next().map_or("", String::as_str));
            }
            None => self
                .properties
                .get(DEFAULT_LOCATION_NAME)
                .map_or(UNNAMED, String::as_str),
        };
        self.locations
            .get(name)
            .map(String::as_str)
            .ok_or_else(|| Error::NotFound {
                what: Missing::LocationName,
                path: name.to_owned(),
            })
    }
}

impl Described for Fileset {
    fn described(&mut self) -> (&mut Option<String>, &mut Properties) {
        (&mut self.comment, &mut self.properties)
    }
}

impl Payload for Fileset {
    const KIND: Kind = Kind::Fileset;
    type Change = CommonChange;

    fn apply(draft: &mut Draft<Self>, change: &CommonChange) -> Result<()> {
        change.apply(draft);
        Ok(())
    }

    fn check(&self) -> Result<()> {
        if self.locations.is_empty() {
            return Err(Error::invalid(
                "storageLocations",
                "a fileset needs at least one location",
            ));
        }
        if self.locations.len() > LOCATIONS_MAX {
            let reason = format!("a fileset has at most {LOCATIONS_MAX} locations");
            return Err(Error::invalid("storageLocations", reason));
        }
        match self.properties.get(DEFAULT_LOCATION_NAME) {
            Some(name) if self.locations.contains_key(name) => Ok(()),
            Some(name) => {
                let reason =
                    format!("`{DEFAULT_LOCATION_NAME}` names `{name}`, which is none of its locations");
                Err(Error::invalid("properties", reason))
            }
            None => {
                let reason = format!("`{DEFAULT_LOCATION_NAME}` must say which location is meant by default");
                Err(Error::invalid("properties", reason))
            }
        }
    }

    fn property_change(change: &CommonChange) -> Option<&PropertyChange> {
        change.property()
    }

    fn new_name(change: &CommonChange) -> Option<&Name> {
        change.new_name()
    }

    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn sample() -> Fileset {
        let location = |name: &str| (name.to_owned(), format!("file:/srv/files/{name}"));
        Fileset {
            comment: Some("a fileset".to_owned()),
            fileset_type: FilesetType::Managed,
            locations: BTreeMap::from([location(UNNAMED), location("archive")]),
            properties: Properties::from([(DEFAULT_LOCATION_NAME.to_owned(), UNNAMED.to_owned())]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_found_by_name_alone_or_by_default() {
        let mut fileset = Fileset::sample();
        assert_eq!(fileset.location(Some("archive")), Ok("file:/srv/files/archive"));
        assert_eq!(fileset.location(None), Ok("file:/srv/files/unknown"));
        assert!(matches!(
            fileset.location(Some("x")),
            Err(Error::NotFound {
                what: Missing::LocationName,
                ..
            })
        ));
        fileset.locations.remove(UNNAMED);
        assert_eq!(fileset.location(None), Ok("file:/srv/files/archive"));
    }

    #[test]
    fn more_locations_than_the_bound_are_refused() {
        let mut fileset = Fileset::sample();
        let held = fileset.locations.len();
        for number in held..LOCATIONS_MAX {
            let location = format!("file:/srv/files/{number}");
            fileset.locations.insert(format!("l{number}"), location);
        }
        assert_eq!(fileset.check(), Ok(()));
        fileset.locations.insert("too-much".into(), "file:/srv/x".into());
        assert_eq!(
            fileset.check(),
            Err(Error::invalid(
                "storageLocations",
                "a fileset has at most 256 locations"
            ))
        );
    }

    #[test]
    fn the_default_location_must_be_one_of_the_locations() {
        let mut draft = Draft::new(Name::new("f").unwrap(), Fileset::sample());
        let set = |value: &str| {
            CommonChange::Property(PropertyChange::Set {
                key: DEFAULT_LOCATION_NAME.into(),
                value: value.into(),
            })
        };
        assert_eq!(draft.apply_all(&[set("archive")]), Ok(()));
        assert!(draft.clone().apply_all(&[set("elsewhere")]).is_err());
        assert!(
            draft
                .apply_all(&[PropertyChange::Remove(DEFAULT_LOCATION_NAME.into()).into()])
                .is_err()
        );
    }
}
