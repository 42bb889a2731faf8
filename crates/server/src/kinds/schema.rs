//! Schemas over the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use treeline_core::kinds::Schema;
use treeline_core::{Entity, Kind, Name, NameRule, PropertyChange, Result};

use crate::wire::{
    Create, GivenProperties, Listing, Moment, ShownAudit, ShownProperties, Wire, checked_name,
    remove_property, set_property,
};

/// A schema to create.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SchemaCreate {
    /// Letters, digits, `_`, `/`, `=` and `-`, at most 64; not `*`, and without `/` in a catalog of filesets.
    #[schemars(regex(pattern = NameRule::Default.pattern()))]
    name: String,
    /// Free text.
    comment: Option<String>,
    /// Free properties, and those that the provider knows.
    properties: GivenProperties,
}

/// One change of a schema.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "@type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum SchemaUpdate {
    /// Sets one property; the value is not blank.
    SetProperty { property: String, value: String },
    /// Removes one property, if it is there.
    RemoveProperty { property: String },
}

/// A collection of filesets or models.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Schema")]
pub(crate) struct ShownSchema<'a> {
    #[schemars(with = "String")]
    name: &'a Name,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<&'a str>,
    /// As given, without the hidden ones.
    properties: ShownProperties<'a>,
    audit: ShownAudit<'a>,
}

impl Wire for Schema {
    type Update = SchemaUpdate;
    type Shown<'a> = ShownSchema<'a>;

    const CASCADE_FLAG: Option<&'static str> = Some("cascade");
    const ALTER_EXAMPLE: &'static str = r#"{"updates":[
        {"@type":"setProperty","property":"tier","value":"gold"},
        {"@type":"removeProperty","property":"old"}]}"#;

    fn change(update: SchemaUpdate) -> Result<PropertyChange> {
        match update {
            SchemaUpdate::SetProperty { property, value } => set_property(property, value),
            SchemaUpdate::RemoveProperty { property } => remove_property(property),
        }
    }

    fn show(entity: &Entity<Schema>, _: Moment) -> ShownSchema<'_> {
        ShownSchema {
            name: &entity.name,
            comment: entity.payload.comment.as_deref(),
            properties: ShownProperties::of(&entity.payload),
            audit: (&entity.audit).into(),
        }
    }
}

impl Create for Schema {
    type Body = SchemaCreate;
    type New = Schema;

    const LISTING: Listing = Listing::Names;
    const CREATE_EXAMPLE: &'static str =
        r#"{"name":"sales","comment":"what was sold","properties":{"tier":"gold"}}"#;

    fn read(body: SchemaCreate) -> Result<(Name, Schema)> {
        let name = checked_name(Kind::Schema, &body.name)?;
        Ok((
            name,
            Schema {
                comment: body.comment,
                properties: body.properties.unwrap_or_default(),
            },
        ))
    }
}
