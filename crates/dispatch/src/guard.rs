//! The gates before a store operation: in use, drop rules, names and properties per provider.
//!
//! Gates above the direct parent are checked on the way down only; the store re-checks the direct parent, and the row
//! itself, under its locks (design §7.1).

use treeline_core::kinds::ModelVersion;
use treeline_core::{Error, Kind, Name, NameRule, Payload, Properties, Provider, Result, property_rules};
use treeline_storage::{DropRule, Resolved};

use crate::dispatcher::DropMode;

/// Refuses what lies below something disabled.
pub(crate) fn ancestors_in_use(resolved: &Resolved) -> Result<()> {
    match resolved.ancestors().iter().find(|level| !level.in_use()) {
        None => Ok(()),
        Some(level) => {
            let kind = level.kind();
            Err(Error::NotInUse {
                kind,
                path: resolved.path().up_to(kind).to_string(),
            })
        }
    }
}

/// Refuses to work inside something disabled.
pub(crate) fn in_use(resolved: &Resolved) -> Result<()> {
    ancestors_in_use(resolved)?;
    if resolved.in_use() {
        Ok(())
    } else {
        Err(Error::NotInUse {
            kind: resolved.path().kind(),
            path: resolved.path().to_string(),
        })
    }
}

/// What a drop of this kind requires and takes along.
pub(crate) fn drop_rule(kind: Kind, mode: DropMode) -> DropRule {
    let row = kind.row();
    match mode {
        DropMode::Plain => DropRule {
            cascade: row.always_cascades,
            require_disabled: row.has_in_use,
            prune: Vec::new(),
        },
        DropMode::Cascade => DropRule {
            cascade: true,
            require_disabled: false,
            prune: Vec::new(),
        },
    }
}

/// The name and the properties of something new.
pub(crate) fn check_new<P: Payload>(provider: Option<Provider>, name: &Name, payload: &P) -> Result<()> {
    name_rule(P::KIND, provider).check(name.as_str())?;
    property_rules(provider, P::KIND).check_create(payload.properties())?;
    payload.check()
}

/// The properties that changes touch.
pub(crate) fn check_changes<P: Payload>(provider: Option<Provider>, changes: &[P::Change]) -> Result<()> {
    let rules = property_rules(provider, P::KIND);
    changes
        .iter()
        .filter_map(P::property_change)
        .try_for_each(|change| rules.check_alter(change))
}

/// Catalogs and schemas of filesets say where their filesets live; what could never be a place is refused when it is
/// said, not when the first fileset needs it.
pub(crate) fn check_locations(provider: Option<Provider>, kind: Kind, properties: &Properties) -> Result<()> {
    let holds_locations = provider == Some(Provider::Fileset) && matches!(kind, Kind::Catalog | Kind::Schema);
    if !holds_locations {
        return Ok(());
    }
    properties
        .iter()
        .filter(|(key, _)| crate::locations::is_location_key(key))
        .try_for_each(|(key, value)| {
            if value.contains("{{") {
                return Ok(());
            }
            treeline_connectors::qualify(value)
                .map(drop)
                .map_err(|error| match error {
                    Error::Invalid { reason, .. } => {
                        Error::invalid("properties", format!("`{key}`: {reason}"))
                    }
                    other => other,
                })
        })
}

fn name_rule(kind: Kind, provider: Option<Provider>) -> NameRule {
    match (kind, provider) {
        // A schema's name becomes a directory's name there.
        (Kind::Schema, Some(Provider::Fileset)) => NameRule::NoSlash,
        (
            Kind::Metalake | Kind::Catalog | Kind::Schema | Kind::Fileset | Kind::Model | Kind::ModelVersion,
            _,
        ) => kind.row().name_rule,
    }
}

/// A version that is about to be linked; its name is given by the store.
pub(crate) fn check_version(version: &ModelVersion) -> Result<()> {
    property_rules(Some(Provider::Model), Kind::ModelVersion).check_create(&version.properties)?;
    version.check()
}
