//! Models over the wire; their versions have a file of their own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use treeline_core::kinds::{CommonChange, Model};
use treeline_core::{Entity, Kind, Name, NameRule, Result};

use crate::wire::{
    Create, GivenProperties, Listing, Moment, ShownAudit, ShownProperties, Wire, checked_name,
    remove_property, set_property,
};

/// A model to register.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelCreate {
    /// Letters, digits, `_`, `/`, `=` and `-`, at most 64; not `*`.
    #[schemars(regex(pattern = NameRule::Default.pattern()))]
    name: String,
    /// Free text.
    comment: Option<String>,
    /// Free properties; `default-uri-name` says which URI of a version is meant when none is named.
    properties: GivenProperties,
}

/// One change of a model.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "@type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum ModelUpdate {
    /// Gives it another name; its versions go along.
    Rename {
        #[schemars(regex(pattern = NameRule::Default.pattern()))]
        new_name: String,
    },
    /// Sets the comment, or clears it with null.
    UpdateComment { new_comment: Option<String> },
    /// Sets one property; the value is not blank.
    SetProperty { property: String, value: String },
    /// Removes one property, if it is there.
    RemoveProperty { property: String },
}

/// A holder of versions.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Model")]
pub(crate) struct ShownModel<'a> {
    #[schemars(with = "String")]
    name: &'a Name,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<&'a str>,
    properties: ShownProperties<'a>,
    /// How many versions were ever linked, which is the number of the next one.
    latest_version: u32,
    audit: ShownAudit<'a>,
}

impl Wire for Model {
    type Update = ModelUpdate;
    type Shown<'a> = ShownModel<'a>;

    const CASCADE_FLAG: Option<&'static str> = None;
    const ALTER_EXAMPLE: &'static str = r#"{"updates":[
        {"@type":"rename","newName":"ranking2"},
        {"@type":"updateComment","newComment":"ranks the results"},
        {"@type":"setProperty","property":"task","value":"ranking"},
        {"@type":"removeProperty","property":"old"}]}"#;

    fn change(update: ModelUpdate) -> Result<CommonChange> {
        Ok(match update {
            ModelUpdate::Rename { new_name } => CommonChange::Rename(checked_name(Kind::Model, &new_name)?),
            ModelUpdate::UpdateComment { new_comment } => CommonChange::UpdateComment(new_comment),
            ModelUpdate::SetProperty { property, value } => set_property(property, value)?.into(),
            ModelUpdate::RemoveProperty { property } => remove_property(property)?.into(),
        })
    }

    fn show(entity: &Entity<Model>, _: Moment) -> ShownModel<'_> {
        ShownModel {
            name: &entity.name,
            comment: entity.payload.comment.as_deref(),
            properties: ShownProperties::of(&entity.payload),
            latest_version: entity.payload.latest_version,
            audit: (&entity.audit).into(),
        }
    }
}

impl Create for Model {
    type Body = ModelCreate;
    type New = Model;

    const LISTING: Listing = Listing::Names;
    const CREATE_EXAMPLE: &'static str =
        r#"{"name":"ranking","comment":"ranks","properties":{"task":"ranking"}}"#;

    fn read(body: ModelCreate) -> Result<(Name, Model)> {
        let name = checked_name(Kind::Model, &body.name)?;
        let properties = body.properties.unwrap_or_default();
        Ok((
            name,
            Model {
                comment: body.comment,
                properties,
                latest_version: 0,
            },
        ))
    }
}
