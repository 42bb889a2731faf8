//! Metalakes over the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use treeline_core::kinds::{CommonChange, Metalake, SwitchableChange};
use treeline_core::{Entity, Kind, Name, NameRule, Result};

use crate::wire::{
    Create, GivenProperties, Listing, Moment, ShownAudit, ShownProperties, Wire, checked_name,
    remove_property, set_property,
};

/// A metalake to create.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MetalakeCreate {
    /// Letters, digits and `_`, at most 64; not `system`.
    #[schemars(regex(pattern = NameRule::Metalake.pattern()))]
    name: String,
    /// Free text.
    comment: Option<String>,
    /// Free properties; `in-use` is reserved.
    properties: GivenProperties,
}

/// One change of a metalake.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "@type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum MetalakeUpdate {
    /// Gives it another name.
    Rename {
        #[schemars(regex(pattern = NameRule::Metalake.pattern()))]
        new_name: String,
    },
    /// Sets the comment, or clears it with null.
    UpdateComment { new_comment: Option<String> },
    /// Sets one property; the value is not blank.
    SetProperty { property: String, value: String },
    /// Removes one property, if it is there.
    RemoveProperty { property: String },
}

/// The top of a tree, with its own switch.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Metalake")]
pub(crate) struct ShownMetalake<'a> {
    #[schemars(with = "String")]
    name: &'a Name,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<&'a str>,
    /// As given; with `in-use` where it is loaded or listed.
    properties: ShownProperties<'a>,
    audit: ShownAudit<'a>,
}

impl Wire for Metalake {
    type Update = MetalakeUpdate;
    type Shown<'a> = ShownMetalake<'a>;

    const CASCADE_FLAG: Option<&'static str> = Some("force");
    const ALTER_EXAMPLE: &'static str = r#"{"updates":[
        {"@type":"rename","newName":"lake2"},
        {"@type":"updateComment","newComment":null},
        {"@type":"setProperty","property":"team","value":"data"},
        {"@type":"removeProperty","property":"old"}]}"#;

    fn change(update: MetalakeUpdate) -> Result<SwitchableChange> {
        let change = match update {
            MetalakeUpdate::Rename { new_name } => {
                CommonChange::Rename(checked_name(Kind::Metalake, &new_name)?)
            }
            MetalakeUpdate::UpdateComment { new_comment } => CommonChange::UpdateComment(new_comment),
            MetalakeUpdate::SetProperty { property, value } => set_property(property, value)?.into(),
            MetalakeUpdate::RemoveProperty { property } => remove_property(property)?.into(),
        };
        Ok(SwitchableChange::Common(change))
    }

    fn show(entity: &Entity<Metalake>, moment: Moment) -> ShownMetalake<'_> {
        let properties = ShownProperties::of(&entity.payload);
        ShownMetalake {
            name: &entity.name,
            comment: entity.payload.comment.as_deref(),
            properties: match moment {
                Moment::Written => properties,
                Moment::Read => properties.with_switch(entity.in_use),
            },
            audit: (&entity.audit).into(),
        }
    }
}

impl Create for Metalake {
    type Body = MetalakeCreate;
    type New = Metalake;

    const LISTING: Listing = Listing::Full;
    const CREATE_EXAMPLE: &'static str = r#"{"name":"lake","comment":"ours","properties":{"team":"data"}}"#;

    fn read(body: MetalakeCreate) -> Result<(Name, Metalake)> {
        let name = checked_name(Kind::Metalake, &body.name)?;
        Ok((
            name,
            Metalake {
                comment: body.comment,
                properties: body.properties.unwrap_or_default(),
            },
        ))
    }
}
