//! Metalakes over the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use treeline_core::kinds::{Metalake, MetalakeChange};
use treeline_core::{Entity, Kind, Name, Path, Result};
use treeline_dispatch::{Dispatcher, WriteContext};

use crate::wire::{
    Create, GivenProperties, Listing, Moment, ShownAudit, ShownProperties, Switch, Wire, checked_name,
    property_key, set_property,
};

/// A metalake to create.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MetalakeCreate {
    /// Letters, digits and `_`, at most 64; not `system`.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_]{1,64}$"))]
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
        #[schemars(regex(pattern = r"^[A-Za-z0-9_]{1,64}$"))]
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

    fn change(update: MetalakeUpdate) -> Result<MetalakeChange> {
        Ok(match update {
            MetalakeUpdate::Rename { new_name } => {
                MetalakeChange::Rename(checked_name(Kind::Metalake, &new_name)?)
            }
            MetalakeUpdate::UpdateComment { new_comment } => MetalakeChange::UpdateComment(new_comment),
            MetalakeUpdate::SetProperty { property, value } => {
                let (key, value) = set_property(property, value)?;
                MetalakeChange::SetProperty { key, value }
            }
            MetalakeUpdate::RemoveProperty { property } => {
                MetalakeChange::RemoveProperty(property_key(property)?)
            }
        })
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

    async fn create(
        dispatcher: &Dispatcher,
        context: &WriteContext,
        path: &Path,
        new: Metalake,
    ) -> Result<Entity<Metalake>> {
        dispatcher.create(context, path, new).await
    }
}

impl Switch for Metalake {
    fn switch(in_use: bool) -> MetalakeChange {
        MetalakeChange::SetInUse(in_use)
    }
}
