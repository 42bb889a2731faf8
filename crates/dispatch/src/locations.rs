//! Where a fileset's files are: from what the request, the schema and the catalog say, to qualified locations. Pure.
//!
//! The names are those of the request and those that the schema or the catalog know (`location` is the unnamed one,
//! `location-x` is `x`). For each, the request's own value wins; else it is the schema's place and the fileset's name,
//! where the schema's place is its own or the catalog's with the schema's name. A place with `{{placeholders}}` is
//! taken as it is, once they are filled in (contract 4.5).

use std::collections::{BTreeMap, BTreeSet};

use treeline_connectors::{contains, qualify};
use treeline_core::kinds::{DEFAULT_LOCATION_NAME, FilesetType, UNNAMED};
use treeline_core::{Error, Name, Path, Properties, Result};

use crate::filesets::NewFileset;

const UNNAMED_KEY: &str = "location";
const NAMED_PREFIX: &str = "location-";
const PLACEHOLDER_PREFIX: &str = "placeholder-";
const FILES_LEFT_ALONE: &str = "disable-filesystem-ops";

/// The names on the way to a fileset, as placeholders know them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names<'a> {
    catalog: &'a str,
    schema: &'a str,
    fileset: Option<&'a str>,
}

impl<'a> Names<'a> {
    /// The names on the path of a schema or of a fileset.
    ///
    /// # Panics
    /// For a path above schemas.
    pub(crate) fn of(path: &'a Path) -> Names<'a> {
        let names = path.names();
        Names {
            catalog: names[1].as_str(),
            schema: names[2].as_str(),
            fileset: names.get(3).map(Name::as_str),
        }
    }
}

/// Whether a catalog's files are somebody else's business: nothing is looked at, made or removed.
pub(crate) fn files_are_left_alone(catalog: &Properties) -> bool {
    catalog
        .get(FILES_LEFT_ALONE)
        .is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// Whether a property of a catalog or schema says where files are.
pub(crate) fn is_location_key(key: &str) -> bool {
    key == UNNAMED_KEY || key.starts_with(NAMED_PREFIX)
}

/// The locations of a new fileset, by name, and its properties with the default location's name.
pub(crate) fn resolve(
    new: &NewFileset,
    catalog: &Properties,
    schema: &Properties,
    names: &Names<'_>,
) -> Result<(BTreeMap<String, String>, Properties)> {
    let given = given_locations(new)?;
    if given.is_empty() && new.fileset_type == Some(FilesetType::External) {
        return Err(Error::invalid(
            "storageLocations",
            "an external fileset must say where its files are",
        ));
    }
    let known = [catalog, schema]
        .into_iter()
        .flat_map(|properties| properties.keys())
        .filter_map(|key| name_of(key));
    let all: BTreeSet<&str> = given.keys().map(String::as_str).chain(known).collect();
    let mut locations = BTreeMap::new();
    for name in all {
        Name::new(name)
            .map_err(|error| Error::invalid("storageLocations", format!("a location: {error}")))?;
        let raw = match given.get(name) {
            Some(value) => (*value).clone(),
            None => default_place(name, catalog, schema, names),
        };
        let filled = fill_placeholders(&raw, names, &new.properties)?;
        if files_are_left_alone(catalog) && filled.starts_with('/') {
            let reason = format!("`{filled}` needs a scheme, since the catalog leaves files alone");
            return Err(Error::invalid("storageLocations", reason));
        }
        locations.insert(name.to_owned(), qualify(&filled)?);
    }
    if locations.is_empty() {
        let reason = "neither the fileset nor its schema nor its catalog says where the files are";
        return Err(Error::invalid("storageLocations", reason));
    }
    for place in schema_places(catalog, schema, names) {
        if let Some(location) = locations.values().find(|location| contains(location, &place)) {
            let reason = format!("`{location}` would hold the whole schema, which is at `{place}`");
            return Err(Error::invalid("storageLocations", reason));
        }
    }
    let mut properties = new.properties.clone();
    add_default_name(&mut properties, &locations);
    Ok((locations, properties))
}

/// The places of a schema itself: what its filesets are put into. Those with placeholders belong to no schema.
pub(crate) fn schema_places(catalog: &Properties, schema: &Properties, names: &Names<'_>) -> Vec<String> {
    let of_schema = schema
        .iter()
        .filter(|(key, _)| is_location_key(key))
        .map(|(_, value)| value.clone());
    let of_catalog = catalog
        .iter()
        .filter(|(key, value)| is_location_key(key) && !schema.contains_key(*key) && !value.contains("{{"))
        .map(|(_, value)| below(value, names.schema));
    of_schema
        .chain(of_catalog)
        .filter(|value| !value.contains("{{"))
        .filter_map(|value| qualify(&value).ok())
        .collect()
}

fn given_locations(new: &NewFileset) -> Result<BTreeMap<String, &String>> {
    let mut given: BTreeMap<String, &String> = BTreeMap::new();
    for (name, value) in &new.storage_locations {
        given.insert(name.clone(), value);
    }
    if let Some(value) = &new.storage_location {
        match given.insert(UNNAMED.to_owned(), value) {
            Some(other) if other != value => {
                let reason = format!("is `{value}`, but storageLocations has `{UNNAMED}` as `{other}`");
                return Err(Error::invalid("storageLocation", reason));
            }
            Some(_) | None => {}
        }
    }
    Ok(given)
}

fn name_of(key: &str) -> Option<&str> {
    if key == UNNAMED_KEY {
        Some(UNNAMED)
    } else {
        key.strip_prefix(NAMED_PREFIX).filter(|name| !name.is_empty())
    }
}

fn key_of(name: &str) -> String {
    if name == UNNAMED {
        UNNAMED_KEY.to_owned()
    } else {
        format!("{NAMED_PREFIX}{name}")
    }
}

/// Where a location goes that the request does not give. One of the two levels knows the name.
fn default_place(name: &str, catalog: &Properties, schema: &Properties, names: &Names<'_>) -> String {
    let key = key_of(name);
    let fileset = names.fileset.unwrap_or_default();
    match (schema.get(&key), catalog.get(&key)) {
        (Some(place), _) if place.contains("{{") => place.clone(),
        (Some(place), _) => below(place, fileset),
        (None, Some(place)) if place.contains("{{") => place.clone(),
        (None, Some(place)) => below(&below(place, names.schema), fileset),
        (None, None) => String::new(),
    }
}

fn below(place: &str, name: &str) -> String {
    format!("{}/{name}", place.trim_end_matches('/'))
}

fn fill_placeholders(text: &str, names: &Names<'_>, properties: &Properties) -> Result<String> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let Some(length) = rest[start + 2..].find("}}") else {
            break;
        };
        let word = &rest[start + 2..start + 2 + length];
        let value = match word {
            "" => {
                return Err(Error::invalid(
                    "storageLocations",
                    format!("`{text}` has an empty placeholder"),
                ));
            }
            "catalog" => Some(names.catalog),
            "schema" => Some(names.schema),
            "fileset" => names.fileset,
            other => properties
                .get(&format!("{PLACEHOLDER_PREFIX}{other}"))
                .map(String::as_str),
        };
        let Some(value) = value else {
            let reason = format!(
                "nothing says what `{{{{{word}}}}}` in `{text}` is; set `{PLACEHOLDER_PREFIX}{word}`"
            );
            return Err(Error::invalid("storageLocations", reason));
        };
        filled.push_str(&rest[..start]);
        filled.push_str(value);
        rest = &rest[start + 2 + length + 2..];
    }
    filled.push_str(rest);
    Ok(filled)
}

/// With one location its name is the default; with several the request must say which.
fn add_default_name(properties: &mut Properties, locations: &BTreeMap<String, String>) {
    if let (1, Some(only)) = (locations.len(), locations.keys().next()) {
        properties
            .entry(DEFAULT_LOCATION_NAME.to_owned())
            .or_insert_with(|| only.clone());
    }
}

#[cfg(test)]
mod tests;
