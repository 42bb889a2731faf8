//! Catalogs over the wire, and the two ways to try one out.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use treeline_core::kinds::{Catalog, CommonChange, SwitchableChange};
use treeline_core::{CatalogType, Entity, Error, Kind, Name, NameRule, Provider, Result};
use treeline_dispatch::TestConnection;

use crate::app::App;
use crate::envelope::{self, Answer};
use crate::error::Asked;
use crate::extract::{Json, OptionalJson, Segments};
use crate::wire::{
    Create, GivenProperties, Listing, Moment, ShownAudit, ShownProperties, Updates, Wire, checked_name,
    remove_property, set_property,
};

/// A catalog to create.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CatalogCreate {
    /// Letters, digits, `_` and `-`, at most 64; neither `*` nor `system`.
    #[schemars(regex(pattern = NameRule::Catalog.pattern()))]
    name: String,
    /// What sort of catalog it is.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["relational", "fileset", "messaging", "model"]))]
    catalog_type: String,
    /// What stands behind it; filesets and models need not say. `hadoop` is an old word for `fileset`.
    #[schemars(extend("enum" = ["fileset", "hadoop", "model", null]))]
    provider: Option<String>,
    /// Free text.
    comment: Option<String>,
    /// Free properties, and those that the provider knows.
    properties: GivenProperties,
}

/// One change of a catalog.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "@type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum CatalogUpdate {
    /// Gives it another name.
    Rename {
        #[schemars(regex(pattern = NameRule::Catalog.pattern()))]
        new_name: String,
    },
    /// Sets the comment, or clears it with null.
    UpdateComment { new_comment: Option<String> },
    /// Sets one property; the value is not blank.
    SetProperty { property: String, value: String },
    /// Removes one property, if it is there.
    RemoveProperty { property: String },
}

/// Schemas behind one provider, with its own switch.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Catalog")]
pub(crate) struct ShownCatalog<'a> {
    #[schemars(with = "String")]
    name: &'a Name,
    #[serde(rename = "type")]
    #[schemars(with = "String", extend("enum" = ["relational", "fileset", "messaging", "model"]))]
    catalog_type: CatalogType,
    #[schemars(with = "String")]
    provider: Provider,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<&'a str>,
    /// As given, without the hidden ones, and with `in-use`.
    properties: ShownProperties<'a>,
    audit: ShownAudit<'a>,
}

impl Wire for Catalog {
    type Update = CatalogUpdate;
    type Shown<'a> = ShownCatalog<'a>;

    const CASCADE_FLAG: Option<&'static str> = Some("force");
    const ALTER_EXAMPLE: &'static str = r#"{"updates":[
        {"@type":"rename","newName":"files2"},
        {"@type":"updateComment","newComment":"all our files"},
        {"@type":"setProperty","property":"team","value":"data"},
        {"@type":"removeProperty","property":"old"}]}"#;

    fn change(update: CatalogUpdate) -> Result<SwitchableChange> {
        let change = match update {
            CatalogUpdate::Rename { new_name } => {
                CommonChange::Rename(checked_name(Kind::Catalog, &new_name)?)
            }
            CatalogUpdate::UpdateComment { new_comment } => CommonChange::UpdateComment(new_comment),
            CatalogUpdate::SetProperty { property, value } => set_property(property, value)?.into(),
            CatalogUpdate::RemoveProperty { property } => remove_property(property)?.into(),
        };
        Ok(SwitchableChange::Common(change))
    }

    fn show(entity: &Entity<Catalog>, _: Moment) -> ShownCatalog<'_> {
        ShownCatalog {
            name: &entity.name,
            catalog_type: entity.payload.catalog_type(),
            provider: entity.payload.provider,
            comment: entity.payload.comment.as_deref(),
            properties: ShownProperties::of(&entity.payload).with_switch(entity.in_use),
            audit: ShownAudit::modified_at_creation(&entity.audit),
        }
    }
}

impl Create for Catalog {
    type Body = CatalogCreate;
    type New = Catalog;

    const LISTING: Listing = Listing::NamesOrDetails;
    const CREATE_EXAMPLE: &'static str = r#"{"name":"files","type":"fileset","provider":"fileset","comment":"our files",
        "properties":{"location":"/tmp/treeline-example"}}"#;

    fn read(body: CatalogCreate) -> Result<(Name, Catalog)> {
        let name = checked_name(Kind::Catalog, &body.name)?;
        let provider = Provider::choose(body.catalog_type.parse()?, body.provider.as_deref())?;
        let properties = body.properties.unwrap_or_default();
        Ok((
            name,
            Catalog {
                provider,
                comment: body.comment,
                properties,
            },
        ))
    }
}

/// `POST …/catalogs/testConnection`: tries out a catalog that is not there yet.
pub(crate) async fn test_new(
    State(app): State<App>,
    at: Segments,
    Json(body): Json<CatalogCreate>,
) -> Answer {
    let asked = Asked::collection(Kind::Catalog);
    let target = || -> Result<TestConnection> {
        let metalake = at.path(Kind::Metalake)?;
        let (name, catalog) = Catalog::read(body)?;
        Ok(TestConnection::New(metalake.child(Kind::Catalog, name), catalog))
    };
    tested(asked, try_out(&app, target()).await)
}

/// `POST …/catalogs/{catalog}/testConnection`: tries out a catalog with these changes.
pub(crate) async fn test_existing(
    State(app): State<App>,
    at: Segments,
    OptionalJson(body): OptionalJson<Updates<CatalogUpdate>>,
) -> Answer {
    let asked = Asked::entity(Kind::Catalog);
    let target = || -> Result<TestConnection> {
        let path = at.path(Kind::Catalog)?;
        let updates = body.map_or_else(Vec::new, |body| body.updates);
        let changes = updates.into_iter().map(Catalog::change).collect::<Result<_>>()?;
        Ok(TestConnection::Existing(path, changes))
    };
    tested(asked, try_out(&app, target()).await)
}

async fn try_out(app: &App, target: Result<TestConnection>) -> Result<()> {
    app.dispatcher().test_connection(target?).await
}

/// What a client sees of a try: what the try found out comes with status 200, and the envelope says what it was.
fn tested(asked: Asked, outcome: Result<()>) -> Answer {
    let Err(error) = outcome else {
        return Ok(envelope::done());
    };
    let found_out = is_found_out(&error);
    let refusal = asked.refuse(error);
    if !found_out {
        return Err(refusal);
    }
    let mut response: Response = refusal.into_response();
    *response.status_mut() = StatusCode::OK;
    Ok(response)
}

fn is_found_out(error: &Error) -> bool {
    match error {
        Error::Invalid { .. }
        | Error::NotFound { .. }
        | Error::AlreadyExists { .. }
        | Error::NotInUse { .. }
        | Error::ConnectionFailed { .. } => true,
        Error::NotEmpty { .. }
        | Error::InUse { .. }
        | Error::Conflict { .. }
        | Error::PreconditionFailed { .. }
        | Error::KeyReused
        | Error::Contended { .. }
        | Error::Unsupported { .. }
        | Error::Forbidden { .. }
        | Error::Unauthenticated { .. }
        | Error::Unavailable { .. }
        | Error::Internal { .. } => false,
    }
}
