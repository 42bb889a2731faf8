//! Free properties, and which keys are not free: reserved, hidden or immutable, per provider and kind.

use std::collections::BTreeMap;

use crate::{Error, Kind, Provider, Result};

/// Key to value, in byte order of the keys, so that equal properties serialise to equal bytes.
pub type Properties = BTreeMap<String, String>;

/// One change of the free properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PropertyChange {
    /// Sets one property.
    Set {
        /// Which.
        key: String,
        /// To what.
        value: String,
    },
    /// Removes one property; one that is not there is no error.
    Remove(String),
}

impl PropertyChange {
    /// Which property it touches.
    pub fn key(&self) -> &str {
        match self {
            PropertyChange::Set { key, .. } | PropertyChange::Remove(key) => key,
        }
    }

    /// What it is set to; none where it is removed.
    pub fn value(&self) -> Option<&str> {
        match self {
            PropertyChange::Set { value, .. } => Some(value),
            PropertyChange::Remove(_) => None,
        }
    }

    pub(crate) fn apply(&self, properties: &mut Properties) {
        match self.clone() {
            PropertyChange::Set { key, value } => properties.insert(key, value),
            PropertyChange::Remove(key) => properties.remove(&key),
        };
    }
}

/// What is said of one key, or of every key with a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PropertyRule {
    /// The key; with a `*` at its end, every key that begins so.
    pub key: &'static str,
    /// Set by the server alone: refused in a create and in an alter.
    pub reserved: bool,
    /// Never part of an answer.
    pub hidden: bool,
    /// May be given at creation and never changed.
    pub immutable: bool,
    /// What its value must parse as.
    pub value: PropertyValue,
}

/// What the value of a known key must parse as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropertyValue {
    /// Anything.
    Text,
    /// `true` or `false`, in any case.
    Bool,
    /// A non-negative whole number.
    Integer,
    /// One of these words, in any case.
    OneOf(&'static [&'static str]),
}

/// The rules of one (provider, kind).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PropertyRules {
    rules: Vec<PropertyRule>,
}

impl PropertyRules {
    /// Checks the properties of a create: no reserved key, no blank key, known values decode.
    pub fn check_create(&self, properties: &Properties) -> Result<()> {
        for (key, value) in properties {
            check_key(key)?;
            if let Some(rule) = self.rule(key) {
                if rule.reserved {
                    return Err(refused(key, "is reserved; the server sets it"));
                }
                check_value(key, value, rule.value)?;
            }
        }
        Ok(())
    }

    /// Checks one change of an alter: its key is neither reserved nor immutable.
    pub fn check_alter(&self, change: &PropertyChange) -> Result<()> {
        let key = change.key();
        check_key(key)?;
        let Some(rule) = self.rule(key) else { return Ok(()) };
        if rule.reserved {
            return Err(refused(key, "is reserved; the server sets it"));
        }
        if rule.immutable {
            return Err(refused(key, "cannot be changed after creation"));
        }
        match change.value() {
            Some(value) => check_value(key, value, rule.value),
            None => Ok(()),
        }
    }

    /// Whether the key must not be part of an answer.
    pub fn hidden(&self, key: &str) -> bool {
        self.rule(key).is_some_and(|rule| rule.hidden)
    }

    fn rule(&self, key: &str) -> Option<&PropertyRule> {
        self.rules.iter().find(|rule| match rule.key.strip_suffix('*') {
            Some(prefix) => key.starts_with(prefix),
            None => key == rule.key,
        })
    }
}

const fn free(key: &'static str, value: PropertyValue) -> PropertyRule {
    PropertyRule {
        key,
        reserved: false,
        hidden: false,
        immutable: false,
        value,
    }
}

const fn reserved(key: &'static str) -> PropertyRule {
    PropertyRule {
        key,
        reserved: true,
        hidden: false,
        immutable: false,
        value: PropertyValue::Text,
    }
}

const fn reserved_hidden(key: &'static str) -> PropertyRule {
    PropertyRule {
        hidden: true,
        ..reserved(key)
    }
}

const fn immutable(key: &'static str) -> PropertyRule {
    PropertyRule {
        immutable: true,
        ..free(key, PropertyValue::Text)
    }
}

const CLOUDS: &[&str] = &["aws", "azure", "gcp", "on_premise", "other"];

const EVERYWHERE: &[PropertyRule] = &[reserved_hidden("gravitino.identifier")];
const METALAKE: &[PropertyRule] = &[reserved("in-use")];
const CATALOG: &[PropertyRule] = &[
    reserved("in-use"),
    reserved_hidden("metalake-in-use"),
    immutable("package"),
    immutable("authorization-provider"),
    immutable("ops-impl"),
    free("cloud.name", PropertyValue::OneOf(CLOUDS)),
];
const FILESET_CATALOG: &[PropertyRule] = &[
    reserved("location-unknown"),
    immutable("location-*"),
    free("disable-filesystem-ops", PropertyValue::Bool),
    free("filesystem-conn-timeout-secs", PropertyValue::Integer),
    free("fileset-cache-eviction-interval-ms", PropertyValue::Integer),
    free("fileset-cache-max-size", PropertyValue::Integer),
];
const FILESET_SCHEMA: &[PropertyRule] = &[reserved("location-unknown"), immutable("location-*")];
const FILESET: &[PropertyRule] = &[
    reserved("placeholder-catalog"),
    reserved("placeholder-schema"),
    reserved("placeholder-fileset"),
    immutable("placeholder-*"),
];

/// The rules for properties of this kind under this provider (none above catalogs).
pub fn property_rules(provider: Option<Provider>, kind: Kind) -> PropertyRules {
    let own: &[&[PropertyRule]] = match (kind, provider) {
        (Kind::Metalake, _) => &[METALAKE],
        (Kind::Catalog, Some(Provider::Fileset)) => &[CATALOG, FILESET_CATALOG],
        (Kind::Catalog, Some(Provider::Model) | None) => &[CATALOG],
        (Kind::Schema, Some(Provider::Fileset)) => &[FILESET_SCHEMA],
        (Kind::Fileset, _) => &[FILESET],
        (Kind::Schema, Some(Provider::Model) | None) | (Kind::Model | Kind::ModelVersion, _) => &[],
    };
    let rules = own.iter().copied().flatten().chain(EVERYWHERE).copied().collect();
    PropertyRules { rules }
}

fn check_key(key: &str) -> Result<()> {
    if key.trim().is_empty() {
        return Err(Error::invalid("properties", "a key is blank"));
    }
    Ok(())
}

fn check_value(key: &str, value: &str, expected: PropertyValue) -> Result<()> {
    let (fits, wanted) = match expected {
        PropertyValue::Text => (true, String::new()),
        PropertyValue::Bool => (
            ["true", "false"]
                .iter()
                .any(|word| word.eq_ignore_ascii_case(value)),
            "true or false".to_owned(),
        ),
        PropertyValue::Integer => (value.parse::<u64>().is_ok(), "a whole number".to_owned()),
        PropertyValue::OneOf(words) => (
            words.iter().any(|word| word.eq_ignore_ascii_case(value)),
            words.join(", "),
        ),
    };
    if fits {
        Ok(())
    } else {
        Err(refused(key, &format!("must be {wanted}")))
    }
}

fn refused(key: &str, reason: &str) -> Error {
    Error::invalid("properties", format!("`{key}` {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(key: &str, value: &str) -> Properties {
        Properties::from([(key.to_owned(), value.to_owned())])
    }

    fn set(key: &str, value: &str) -> PropertyChange {
        PropertyChange::Set {
            key: key.to_owned(),
            value: value.to_owned(),
        }
    }

    #[test]
    fn reserved_keys_are_refused_at_creation_and_in_an_alter() {
        let rules = property_rules(Some(Provider::Fileset), Kind::Catalog);
        for key in [
            "in-use",
            "metalake-in-use",
            "gravitino.identifier",
            "location-unknown",
        ] {
            assert!(rules.check_create(&one(key, "x")).is_err(), "{key}");
            assert!(rules.check_alter(&set(key, "x")).is_err(), "{key}");
            assert!(
                rules
                    .check_alter(&PropertyChange::Remove(key.to_owned()))
                    .is_err(),
                "{key}"
            );
        }
    }

    #[test]
    fn immutable_keys_are_given_once() {
        let rules = property_rules(Some(Provider::Fileset), Kind::Catalog);
        assert!(rules.check_create(&one("location-a", "/tmp/a")).is_ok());
        assert!(rules.check_alter(&set("location-a", "/tmp/b")).is_err());
        assert!(rules.check_alter(&set("location", "/tmp/b")).is_ok());
    }

    #[test]
    fn known_values_must_decode() {
        let rules = property_rules(Some(Provider::Fileset), Kind::Catalog);
        assert!(rules.check_create(&one("disable-filesystem-ops", "TRUE")).is_ok());
        assert!(rules.check_create(&one("disable-filesystem-ops", "yes")).is_err());
        assert!(rules.check_create(&one("cloud.name", "aws")).is_ok());
        assert!(rules.check_create(&one("cloud.name", "moon")).is_err());
    }

    #[test]
    fn hidden_keys_are_known_for_every_kind() {
        for kind in Kind::all() {
            assert!(property_rules(Some(Provider::Fileset), kind).hidden("gravitino.identifier"));
        }
    }
}
