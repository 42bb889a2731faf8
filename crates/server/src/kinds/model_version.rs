//! Versions of a model over the wire: linked without a name, found by number or by alias.
//!
//! An alias is looked up first and then acted on under the number that it meant at that moment.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::LOCATION;
use axum::response::Response;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use treeline_core::kinds::{ModelVersion, ModelVersionChange, UNNAMED};
use treeline_core::{Alias, Entity, Error, Kind, Name, Path, Result};

use crate::app::App;
use crate::entity_routes::{answer_alter, answer_drop, load_at};
use crate::envelope::{self, Answer, Each};
use crate::error::{Asked, Refusal};
use crate::extract::{Json, Query, Segments, Write};
use crate::wire::{
    GivenProperties, Moment, ShownAudit, ShownProperties, Updates, Wire, not_blank, remove_property,
    set_property,
};

/// A version to link to a model.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelVersionLink {
    /// The URI without a name; its name is `unknown`.
    uri: Option<String>,
    /// The URIs by name. There must be one at least, here or in `uri`.
    uris: Option<BTreeMap<String, String>>,
    /// Other names of the version, unique in the model, never numbers.
    aliases: Option<Vec<String>>,
    /// Free text.
    comment: Option<String>,
    /// Free properties; `default-uri-name` says which URI is meant when none is named.
    properties: GivenProperties,
}

/// One change of a model version.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "@type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum ModelVersionUpdate {
    /// Sets the comment, or clears it with null.
    UpdateComment { new_comment: Option<String> },
    /// Sets one property; the value is not blank.
    SetProperty { property: String, value: String },
    /// Removes one property, if it is there.
    RemoveProperty { property: String },
    /// Replaces the URI of that name, if it is there.
    UpdateUri {
        uri_name: Option<String>,
        new_uri: String,
    },
    /// Adds a URI; a name that is there keeps its own.
    AddUri { uri_name: String, uri: String },
    /// Removes a URI; the last one cannot go.
    RemoveUri { uri_name: String },
    /// Adds and removes aliases; what stands in both lists cancels out.
    UpdateAliases {
        aliases_to_add: Option<Vec<String>>,
        aliases_to_remove: Option<Vec<String>>,
    },
}

/// A version of a model.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ModelVersion")]
pub(crate) struct ShownModelVersion<'a> {
    version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<&'a str>,
    /// In byte order.
    #[schemars(with = "Vec<String>")]
    aliases: Words<'a>,
    /// The URI named `unknown`, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<&'a str>,
    uris: &'a BTreeMap<String, String>,
    properties: ShownProperties<'a>,
    audit: ShownAudit<'a>,
}

/// Aliases as a list of words, written without a copy.
#[derive(Debug)]
struct Words<'a>(&'a BTreeSet<Alias>);

impl Serialize for Words<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Alias::as_str))
    }
}

impl ModelVersionLink {
    pub(crate) const EXAMPLE: &'static str = r#"{"uris":{"unknown":"s3://models/ranking/0"},"aliases":["prod"],
        "comment":"the first","properties":{"auc":"0.91"}}"#;

    fn read(self) -> Result<ModelVersion> {
        let mut uris = self.uris.unwrap_or_default();
        if let Some(uri) = self.uri.filter(|uri| !uri.trim().is_empty()) {
            let held = uris.entry(UNNAMED.to_owned()).or_insert_with(|| uri.clone());
            if *held != uri {
                return Err(Error::invalid(
                    "uri",
                    format!("`uris` has another one named `{UNNAMED}`"),
                ));
            }
        }
        Ok(ModelVersion {
            comment: self.comment,
            aliases: aliases(self.aliases)?,
            uris,
            properties: self.properties.unwrap_or_default(),
        })
    }
}

fn aliases(words: Option<Vec<String>>) -> Result<BTreeSet<Alias>> {
    words.unwrap_or_default().into_iter().map(Alias::new).collect()
}

impl Wire for ModelVersion {
    type Update = ModelVersionUpdate;
    type Shown<'a> = ShownModelVersion<'a>;

    const CASCADE_FLAG: Option<&'static str> = None;
    const ALTER_EXAMPLE: &'static str = r#"{"updates":[
        {"@type":"updateComment","newComment":"the best so far"},
        {"@type":"setProperty","property":"auc","value":"0.93"},
        {"@type":"removeProperty","property":"old"},
        {"@type":"updateUri","newUri":"s3://models/ranking/0b"},
        {"@type":"addUri","uriName":"mirror","uri":"gs://models/ranking/0"},
        {"@type":"removeUri","uriName":"old"},
        {"@type":"updateAliases","aliasesToAdd":["best"],"aliasesToRemove":["prod"]}]}"#;

    fn change(update: ModelVersionUpdate) -> Result<ModelVersionChange> {
        Ok(match update {
            ModelVersionUpdate::UpdateComment { new_comment } => {
                ModelVersionChange::UpdateComment(new_comment)
            }
            ModelVersionUpdate::SetProperty { property, value } => {
                ModelVersionChange::Property(set_property(property, value)?)
            }
            ModelVersionUpdate::RemoveProperty { property } => {
                ModelVersionChange::Property(remove_property(property)?)
            }
            ModelVersionUpdate::UpdateUri { uri_name, new_uri } => ModelVersionChange::UpdateUri {
                name: not_blank("uriName", uri_name.unwrap_or_else(|| UNNAMED.to_owned()))?,
                uri: not_blank("newUri", new_uri)?,
            },
            ModelVersionUpdate::AddUri { uri_name, uri } => ModelVersionChange::AddUri {
                name: not_blank("uriName", uri_name)?,
                uri: not_blank("uri", uri)?,
            },
            ModelVersionUpdate::RemoveUri { uri_name } => {
                ModelVersionChange::RemoveUri(not_blank("uriName", uri_name)?)
            }
            ModelVersionUpdate::UpdateAliases {
                aliases_to_add: None,
                aliases_to_remove: None,
            } => {
                return Err(Error::invalid(
                    "aliasesToAdd",
                    "is missing, and so is `aliasesToRemove`",
                ));
            }
            ModelVersionUpdate::UpdateAliases {
                aliases_to_add,
                aliases_to_remove,
            } => {
                let (add, remove) = (aliases(aliases_to_add)?, aliases(aliases_to_remove)?);
                ModelVersionChange::UpdateAliases { add, remove }
            }
        })
    }

    fn show(entity: &Entity<ModelVersion>, _: Moment) -> ShownModelVersion<'_> {
        let version = &entity.payload;
        ShownModelVersion {
            version: number(&entity.name),
            comment: version.comment.as_deref(),
            aliases: Words(&version.aliases),
            uri: version.uris.get(UNNAMED).map(String::as_str),
            uris: &version.uris,
            properties: ShownProperties::of(version),
            audit: (&entity.audit).into(),
        }
    }
}

/// The number that names a version; the store gives no other names.
fn number(name: &Name) -> u32 {
    name.as_str().parse().unwrap_or(0)
}

/// `GET …/models/{model}/versions`: the numbers, or with `details=true` the whole versions.
pub(crate) async fn list_versions(State(app): State<App>, at: Segments, query: Query) -> Answer {
    let asked = Asked::collection(Kind::ModelVersion);
    let model = at.path(Kind::Model).map_err(|error| asked.refuse(error))?;
    if query.flag("details") {
        let found = app.dispatcher().list::<ModelVersion>(Some(&model)).await;
        return Ok(envelope::entities(
            "infos",
            &found.map_err(|error| asked.refuse(error))?,
        ));
    }
    let found = app
        .dispatcher()
        .list_names(Some(&model), Kind::ModelVersion)
        .await;
    let found = found.map_err(|error| asked.refuse(error))?;
    Ok(envelope::one("versions", Each(|| found.iter().map(number))))
}

/// `POST …/models/{model}/versions`: links a version under the next number. The answer carries no body by contract;
/// its `Location` says which number it was.
pub(crate) async fn link(
    State(app): State<App>,
    at: Segments,
    write: Write,
    Json(body): Json<ModelVersionLink>,
) -> Answer {
    let asked = Asked {
        only_if_absent: write.only_if_absent,
        ..Asked::collection(Kind::ModelVersion)
    };
    let model = at.path(Kind::Model).map_err(|error| asked.refuse(error))?;
    let version = body.read().map_err(|error| asked.refuse(error))?;
    let (dispatcher, parent) = (app.dispatcher().clone(), model.clone());
    let linked = app
        .write(asked, async move {
            dispatcher.link(&write.context, &parent, version).await
        })
        .await?;
    let mut response: Response = envelope::tagged(envelope::done(), linked.tag());
    if let Ok(location) = url_of(&model, &linked.name).try_into() {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}

fn url_of(model: &Path, number: &Name) -> String {
    let mut url = String::from("/api");
    for (kind, name) in model.levels() {
        let name = utf8_percent_encode(name.as_str(), NON_ALPHANUMERIC);
        url.push_str(&format!("/{}/{name}", kind.row().segment));
    }
    format!("{url}/{}/{number}", Kind::ModelVersion.row().segment)
}

/// `GET …/models/{model}/aliases/{alias}`.
pub(crate) async fn load_by_alias(State(app): State<App>, at: Segments, headers: HeaderMap) -> Answer {
    let path = version_at(&app, &at).await.map_err(refuse)?;
    load_at::<ModelVersion>(&app, &path, &headers).await
}

/// `PUT …/models/{model}/aliases/{alias}`.
pub(crate) async fn alter_by_alias(
    State(app): State<App>,
    at: Segments,
    write: Write,
    Json(body): Json<Updates<ModelVersionUpdate>>,
) -> Answer {
    let (model, alias) = aliased(&at).map_err(refuse)?;
    let dispatcher = app.dispatcher().clone();
    answer_alter::<ModelVersion, _>(&app, body, |changes| async move {
        dispatcher
            .alter_by_alias(&write.context, &model, &alias, changes)
            .await
    })
    .await
}

/// `DELETE …/models/{model}/aliases/{alias}`: drops the version, not the alias.
pub(crate) async fn drop_by_alias(State(app): State<App>, at: Segments, write: Write) -> Answer {
    let (dispatcher, context) = (app.dispatcher().clone(), write.context.clone());
    let (found, named) = (aliased(&at), at.last().to_owned());
    let drop = async move {
        let (model, alias) = found?;
        dispatcher.drop_by_alias(&context, &model, &alias).await
    };
    answer_drop::<ModelVersion>(&app, write, named, drop).await
}

/// `GET …/models/{model}/versions/{version}/uri`.
pub(crate) async fn uri(State(app): State<App>, at: Segments, query: Query) -> Answer {
    let path = at.path(Kind::ModelVersion).map_err(refuse)?;
    uri_at(&app, &path, &query).await
}

/// `GET …/models/{model}/aliases/{alias}/uri`.
pub(crate) async fn uri_by_alias(State(app): State<App>, at: Segments, query: Query) -> Answer {
    let path = version_at(&app, &at).await.map_err(refuse)?;
    uri_at(&app, &path, &query).await
}

async fn uri_at(app: &App, path: &Path, query: &Query) -> Answer {
    let found = app.dispatcher().version_uri(path, query.text("uriName")).await;
    Ok(envelope::one("uri", found.map_err(refuse)?))
}

/// The path of the version that the alias in the path means.
async fn version_at(app: &App, at: &Segments) -> Result<Path> {
    let (model, alias) = aliased(at)?;
    app.dispatcher().version_of_alias(&model, &alias).await
}

/// The model and the alias in the path. A word that can be no alias means no version.
fn aliased(at: &Segments) -> Result<(Path, Alias)> {
    let model = at.path(Kind::Model)?;
    let word = at.last();
    let alias =
        Alias::new(word).map_err(|_| Error::not_found(Kind::ModelVersion, format!("{model}.{word}")))?;
    Ok((model, alias))
}

fn refuse(error: Error) -> Refusal {
    Asked::entity(Kind::ModelVersion).refuse(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<ModelVersion> {
        serde_json::from_str::<ModelVersionLink>(json).unwrap().read()
    }

    #[test]
    fn a_bare_uri_goes_among_the_others_as_unknown() {
        let version = read(r#"{"uri":"u","uris":{"n1":"u1"},"aliases":["b","a","b"]}"#).unwrap();
        assert_eq!(version.uris[UNNAMED], "u");
        assert_eq!(version.uris["n1"], "u1");
        assert_eq!(
            version.aliases.iter().map(Alias::as_str).collect::<Vec<_>>(),
            ["a", "b"]
        );
        assert!(read(r#"{"uri":"u","uris":{"unknown":"u"}}"#).is_ok());
        assert!(read(r#"{"uri":"u","uris":{"unknown":"other"}}"#).is_err());
        assert!(read(r#"{"uri":"u","aliases":["7"]}"#).is_err());
    }

    #[test]
    fn updating_aliases_needs_one_of_the_lists() {
        let change = |json: &str| ModelVersion::change(serde_json::from_str(json).unwrap());
        assert!(change(r#"{"@type":"updateAliases"}"#).is_err());
        assert!(change(r#"{"@type":"updateAliases","aliasesToAdd":null,"aliasesToRemove":["a"]}"#).is_ok());
        let unnamed = ModelVersionChange::UpdateUri {
            name: UNNAMED.into(),
            uri: "u".into(),
        };
        assert_eq!(
            change(r#"{"@type":"updateUri","uriName":null,"newUri":"u"}"#),
            Ok(unnamed)
        );
        assert!(change(r#"{"@type":"updateUri","newUri":" "}"#).is_err());
    }

    #[test]
    fn the_url_of_a_version_keeps_each_name_in_one_segment() {
        let model = Path::of(Kind::Model, &["m", "c", "s", "a/b"]).unwrap();
        let url = url_of(&model, &Name::of_number(4));
        assert_eq!(
            url,
            "/api/metalakes/m/catalogs/c/schemas/s/models/a%2Fb/versions/4"
        );
    }
}
