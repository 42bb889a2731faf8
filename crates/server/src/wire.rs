//! How entities go over the wire: what every kind has to say for the generic verbs, and the parts that all share.
//!
//! The types of the wire are apart from those of the catalog. They borrow from the entity that they show, so that an
//! answer is written from it without a copy.

use std::fmt;
use std::future::Future;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use treeline_core::{
    Audit, Entity, Error, Kind, Name, Path, Payload, Properties, PropertyChange, PropertyRules, Provider,
    Result, property_rules,
};
use treeline_dispatch::{Dispatcher, WriteContext};

/// A kind that clients see.
pub(crate) trait Wire: Payload {
    /// One change, as clients send it.
    type Update: DeserializeOwned + JsonSchema + Send + 'static;
    /// The entity, as clients see it.
    type Shown<'a>: Serialize + JsonSchema;

    /// The query parameter that makes a drop take along what hangs below.
    const CASCADE_FLAG: Option<&'static str>;
    /// An alter with every variant.
    const ALTER_EXAMPLE: &'static str;

    /// The change that an update asks for.
    fn change(update: Self::Update) -> Result<Self::Change>;

    /// The entity, as clients see it at that moment.
    fn show(entity: &Entity<Self>, moment: Moment) -> Self::Shown<'_>;
}

/// A kind that clients create under a name.
pub(crate) trait Create: Wire {
    /// The body of a create.
    type Body: DeserializeOwned + JsonSchema + Send + 'static;
    /// What an entity is made from.
    type New: New<Self>;

    /// How the list of all names looks.
    const LISTING: Listing;
    /// A create with every field.
    const CREATE_EXAMPLE: &'static str;

    /// The name, and what goes under it.
    fn read(body: Self::Body) -> Result<(Name, Self::New)>;
}

/// What the dispatcher makes an entity of this kind from: for most kinds what they keep.
pub(crate) trait New<W: Wire>: Send + 'static {
    /// Has it created.
    fn create(
        self,
        dispatcher: &Dispatcher,
        context: &WriteContext,
        path: &Path,
    ) -> impl Future<Output = Result<Entity<W>>> + Send;
}

impl<W: Wire> New<W> for W {
    async fn create(self, dispatcher: &Dispatcher, context: &WriteContext, path: &Path) -> Result<Entity<W>> {
        dispatcher.create(context, path, self).await
    }
}

/// What a list shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listing {
    /// Always the whole entities.
    Full,
    /// The identifiers, or with `details=true` the whole entities.
    NamesOrDetails,
    /// The identifiers.
    Names,
}

/// When an entity is shown: a metalake shows its switch only when it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// In the answer of the write that made it so.
    Written,
    /// In a load or a list.
    Read,
}

/// The body of an alter: changes, applied in their order, all or none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "{U}s")]
pub(crate) struct Updates<U> {
    /// The changes; none of them is no error.
    pub updates: Vec<U>,
}

/// The body that turns an entity on or off.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Switch")]
pub(crate) struct SwitchBody {
    /// Whether it is to be in use.
    pub in_use: bool,
}

/// Free properties, as they are given. No properties is the same as none at all.
pub(crate) type GivenProperties = Option<Properties>;

/// Sets a property to something.
pub(crate) fn set_property(key: String, value: String) -> Result<PropertyChange> {
    let key = not_blank("property", key)?;
    let value = not_blank("value", value)?;
    Ok(PropertyChange::Set { key, value })
}

/// Sets a property, to nothing but white space too.
pub(crate) fn set_property_or_blank(key: String, value: String) -> Result<PropertyChange> {
    let key = not_blank("property", key)?;
    Ok(PropertyChange::Set { key, value })
}

/// Removes a property.
pub(crate) fn remove_property(key: String) -> Result<PropertyChange> {
    not_blank("property", key).map(PropertyChange::Remove)
}

/// [`Error::Invalid`] where there is nothing but white space.
pub(crate) fn not_blank(field: &'static str, text: String) -> Result<String> {
    if text.trim().is_empty() {
        Err(Error::invalid(field, "is blank"))
    } else {
        Ok(text)
    }
}

/// A name that a client gives to an entity of this kind.
pub(crate) fn checked_name(kind: Kind, name: &str) -> Result<Name> {
    kind.row().name_rule.check(name)
}

/// Who and when.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Audit")]
pub(crate) struct ShownAudit<'a> {
    creator: &'a str,
    create_time: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_modifier: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_modified_time: Option<Timestamp>,
}

impl<'a> From<&'a Audit> for ShownAudit<'a> {
    fn from(audit: &'a Audit) -> ShownAudit<'a> {
        ShownAudit {
            creator: &audit.creator,
            create_time: Timestamp(audit.created_at_ms),
            last_modifier: audit.last_modifier.as_deref(),
            last_modified_time: audit.last_modified_at_ms.map(Timestamp),
        }
    }
}

impl<'a> ShownAudit<'a> {
    /// With a last modifier from the beginning, as catalogs have it.
    pub(crate) fn modified_at_creation(audit: &'a Audit) -> ShownAudit<'a> {
        ShownAudit {
            last_modifier: Some(audit.last_modifier.as_deref().unwrap_or(&audit.creator)),
            last_modified_time: Some(Timestamp(
                audit.last_modified_at_ms.unwrap_or(audit.created_at_ms),
            )),
            ..ShownAudit::from(audit)
        }
    }
}

/// Milliseconds since 1970, shown as an ISO 8601 instant in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String", extend("format" = "date-time"))]
pub(crate) struct Timestamp(pub i64);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAY_MS: i64 = 86_400_000;
        let (days, ms) = (self.0.div_euclid(DAY_MS), self.0.rem_euclid(DAY_MS));
        let (year, month, day) = civil(days);
        let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z",
            ms % 1_000
        )
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The Gregorian date of a day counted from 1970. Years are counted from March, so that the leap day comes last.
fn civil(days: i64) -> (i64, i64, i64) {
    const ERA_DAYS: i64 = 146_097; // 400 years
    const MARCH_FIRST_OF_0: i64 = 719_468; // days from it to 1970
    let shifted = days + MARCH_FIRST_OF_0;
    let (era, day_of_era) = (shifted.div_euclid(ERA_DAYS), shifted.rem_euclid(ERA_DAYS));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// The properties that a client may see, and the switch of what has one.
#[derive(Clone, Copy, Debug, JsonSchema)]
#[schemars(with = "Properties")]
pub(crate) struct ShownProperties<'a> {
    kind: Kind,
    provider: Option<Provider>,
    properties: &'a Properties,
    in_use: Option<bool>,
}

impl<'a> ShownProperties<'a> {
    /// The free properties of a payload.
    pub(crate) fn of<P: Payload>(payload: &'a P) -> ShownProperties<'a> {
        let (kind, provider) = (P::KIND, payload.provider());
        ShownProperties {
            kind,
            provider,
            properties: payload.properties(),
            in_use: None,
        }
    }

    /// And the switch.
    pub(crate) fn with_switch(self, in_use: bool) -> ShownProperties<'a> {
        ShownProperties {
            in_use: Some(in_use),
            ..self
        }
    }
}

impl Serialize for ShownProperties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let rules = rules(self.kind, self.provider);
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.properties.iter().filter(|(key, _)| !rules.hidden(key)) {
            map.serialize_entry(key, value)?;
        }
        if let Some(in_use) = self.in_use {
            map.serialize_entry("in-use", if in_use { "true" } else { "false" })?;
        }
        map.end()
    }
}

/// The rules of a kind, made once and not at each answer.
fn rules(kind: Kind, provider: Option<Provider>) -> &'static PropertyRules {
    type PerKind = Vec<PropertyRules>;
    fn per_kind(provider: Option<Provider>) -> PerKind {
        Kind::all().map(|kind| property_rules(provider, kind)).collect()
    }
    static NONE: LazyLock<PerKind> = LazyLock::new(|| per_kind(None));
    static FILESET: LazyLock<PerKind> = LazyLock::new(|| per_kind(Some(Provider::Fileset)));
    static MODEL: LazyLock<PerKind> = LazyLock::new(|| per_kind(Some(Provider::Model)));
    let rules = match provider {
        None => &NONE,
        Some(Provider::Fileset) => &FILESET,
        Some(Provider::Model) => &MODEL,
    };
    &rules[kind as usize]
}

/// A full name, as lists show it.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[schemars(rename = "NameIdentifier")]
pub(crate) struct Identifier<'a> {
    #[schemars(with = "Vec<String>")]
    namespace: &'a [Name],
    #[schemars(with = "String")]
    name: &'a Name,
}

impl<'a> Identifier<'a> {
    /// The name of something under this parent; none at the top.
    pub(crate) fn under(parent: Option<&'a Path>, name: &'a Name) -> Identifier<'a> {
        Identifier {
            namespace: parent.map_or(&[], Path::names),
            name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_shown_in_utc() {
        let shown = |ms: i64| Timestamp(ms).to_string();
        assert_eq!(shown(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(shown(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(shown(1_787_393_730_123), "2026-08-22T10:15:30.123Z");
        assert_eq!(shown(4_107_542_399_999), "2100-02-28T23:59:59.999Z");
        assert_eq!(shown(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
        assert_eq!(shown(-1), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn hidden_properties_are_not_shown_and_the_switch_is() {
        let mut catalog = treeline_core::kinds::Catalog::sample();
        catalog.properties.insert("metalake-in-use".into(), "true".into());
        catalog
            .properties
            .insert("gravitino.identifier".into(), "x".into());
        let shown = ShownProperties::of(&catalog).with_switch(false);
        assert_eq!(
            serde_json::to_string(&shown).unwrap(),
            r#"{"cloud.name":"other","in-use":"false"}"#
        );
    }

    #[test]
    fn an_identifier_has_the_names_above_it() {
        let parent = Path::of(Kind::Catalog, &["m", "c"]).unwrap();
        let name = Name::new("s").unwrap();
        let json = |identifier: &Identifier<'_>| serde_json::to_string(identifier).unwrap();
        assert_eq!(
            json(&Identifier::under(Some(&parent), &name)),
            r#"{"namespace":["m","c"],"name":"s"}"#
        );
        assert_eq!(
            json(&Identifier::under(None, &name)),
            r#"{"namespace":[],"name":"s"}"#
        );
    }
}
