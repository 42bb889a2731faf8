//! Filesets over the wire, and where their files are.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::HeaderMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use treeline_core::kinds::{CommonChange, Fileset, FilesetType, UNNAMED};
use treeline_core::{Entity, Error, Kind, Name, NameRule, Path, Result};
use treeline_dispatch::{Dispatcher, FileStat, NewFileset, WriteContext};

use crate::app::App;
use crate::envelope::{self, Answer, Each};
use crate::error::Asked;
use crate::extract::{Query, Segments};
use crate::wire::{
    Create, GivenProperties, Listing, Moment, New, ShownAudit, ShownProperties, Wire, checked_name,
    remove_property, set_property_or_blank,
};

/// The header in which a client says what it means to do with a file.
const OPERATION_HEADER: &str = "FilesetDataOperation";

/// A fileset to create.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct FilesetCreate {
    /// Letters, digits, `_`, `=` and `-`, at most 64.
    #[schemars(regex(pattern = NameRule::NoSlash.pattern()))]
    name: String,
    /// Free text.
    comment: Option<String>,
    /// Who owns the files; managed unless said otherwise.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["managed", "external", null]))]
    fileset_type: Option<String>,
    /// The location without a name; its name is `unknown`.
    storage_location: Option<String>,
    /// The locations by name.
    storage_locations: Option<BTreeMap<String, String>>,
    /// Free properties, `placeholder-*` and `default-location-name`.
    properties: GivenProperties,
    /// Not served yet: only empty.
    secret_bindings: Option<BTreeMap<String, Value>>,
    /// Not served yet: only empty.
    secret_references: Option<BTreeMap<String, Value>>,
}

/// One change of a fileset.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "@type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum FilesetUpdate {
    /// Gives it another name; the files stay where they are.
    Rename {
        #[schemars(regex(pattern = NameRule::NoSlash.pattern()))]
        new_name: String,
    },
    /// Sets the comment, or clears it with null.
    UpdateComment { new_comment: Option<String> },
    /// Clears the comment.
    RemoveComment {},
    /// Sets one property; the value may be empty.
    SetProperty { property: String, value: String },
    /// Removes one property, if it is there.
    RemoveProperty { property: String },
}

/// Files at one or several named locations.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Fileset")]
pub(crate) struct ShownFileset<'a> {
    #[schemars(with = "String")]
    name: &'a Name,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<&'a str>,
    #[serde(rename = "type")]
    #[schemars(with = "String", extend("enum" = ["managed", "external"]))]
    fileset_type: FilesetType,
    /// The location named `unknown`, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    storage_location: Option<&'a str>,
    storage_locations: &'a BTreeMap<String, String>,
    properties: ShownProperties<'a>,
    audit: ShownAudit<'a>,
}

/// One file or directory of a fileset.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileInfo<'a> {
    name: &'a str,
    is_dir: bool,
    /// In bytes; 0 for a directory.
    size: u64,
    /// Milliseconds since 1970.
    last_modified: i64,
    /// `/fileset/<catalog>/<schema>/<fileset>/<directory>`.
    path: &'a str,
}

impl Wire for Fileset {
    type Update = FilesetUpdate;
    type Shown<'a> = ShownFileset<'a>;

    const CASCADE_FLAG: Option<&'static str> = None;
    const ALTER_EXAMPLE: &'static str = r#"{"updates":[
        {"@type":"rename","newName":"orders2"},
        {"@type":"updateComment","newComment":"the orders of this year"},
        {"@type":"removeComment"},
        {"@type":"setProperty","property":"format","value":"parquet"},
        {"@type":"removeProperty","property":"old"}]}"#;

    fn change(update: FilesetUpdate) -> Result<CommonChange> {
        Ok(match update {
            FilesetUpdate::Rename { new_name } => {
                CommonChange::Rename(checked_name(Kind::Fileset, &new_name)?)
            }
            FilesetUpdate::UpdateComment { new_comment } => CommonChange::UpdateComment(new_comment),
            FilesetUpdate::RemoveComment {} => CommonChange::UpdateComment(None),
            FilesetUpdate::SetProperty { property, value } => set_property_or_blank(property, value)?.into(),
            FilesetUpdate::RemoveProperty { property } => remove_property(property)?.into(),
        })
    }

    fn show(entity: &Entity<Fileset>, _: Moment) -> ShownFileset<'_> {
        let fileset = &entity.payload;
        ShownFileset {
            name: &entity.name,
            comment: fileset.comment.as_deref(),
            fileset_type: fileset.fileset_type,
            storage_location: fileset.locations.get(UNNAMED).map(String::as_str),
            storage_locations: &fileset.locations,
            properties: ShownProperties::of(fileset),
            audit: (&entity.audit).into(),
        }
    }
}

impl Create for Fileset {
    type Body = FilesetCreate;
    type New = NewFileset;

    const LISTING: Listing = Listing::Names;
    const CREATE_EXAMPLE: &'static str = r#"{"name":"orders","comment":"the orders","type":"managed",
        "storageLocations":{"unknown":"/tmp/treeline-example/orders"},"properties":{"format":"csv"}}"#;

    fn read(body: FilesetCreate) -> Result<(Name, NewFileset)> {
        let name = checked_name(Kind::Fileset, &body.name)?;
        let secrets = [&body.secret_bindings, &body.secret_references];
        if secrets.into_iter().flatten().any(|secrets| !secrets.is_empty()) {
            return Err(Error::Unsupported {
                operation: "a fileset with secrets".to_owned(),
                reason: "this server keeps none".to_owned(),
            });
        }
        let new = NewFileset {
            comment: body.comment,
            fileset_type: body.fileset_type.as_deref().map(fileset_type).transpose()?,
            storage_location: body
                .storage_location
                .filter(|location| !location.trim().is_empty()),
            storage_locations: body.storage_locations.unwrap_or_default(),
            properties: body.properties.unwrap_or_default(),
        };
        Ok((name, new))
    }
}

impl New<Fileset> for NewFileset {
    async fn create(
        self,
        dispatcher: &Dispatcher,
        context: &WriteContext,
        path: &Path,
    ) -> Result<Entity<Fileset>> {
        dispatcher.create_fileset(context, path, self).await
    }
}

fn fileset_type(word: &str) -> Result<FilesetType> {
    if word.eq_ignore_ascii_case("managed") {
        Ok(FilesetType::Managed)
    } else if word.eq_ignore_ascii_case("external") {
        Ok(FilesetType::External)
    } else {
        Err(Error::invalid(
            "type",
            format!("`{word}` is neither managed nor external"),
        ))
    }
}

/// `GET …/filesets/{fileset}/location`: where one of its files is.
pub(crate) async fn location(
    State(app): State<App>,
    at: Segments,
    query: Query,
    headers: HeaderMap,
) -> Answer {
    let asked = Asked::entity(Kind::Fileset);
    let path = at.path(Kind::Fileset).map_err(|error| asked.refuse(error))?;
    let missing = || asked.refuse(Error::invalid("sub_path", "is missing; it may be empty"));
    let sub_path = query.text("sub_path").ok_or_else(missing)?;
    let operation = headers
        .get(OPERATION_HEADER)
        .and_then(|value| value.to_str().ok());
    let rename = operation.is_some_and(|word| word.trim().eq_ignore_ascii_case("rename"));
    let found = app
        .dispatcher()
        .file_location(&path, sub_path, query.text("location_name"), rename)
        .await;
    Ok(envelope::one(
        "fileLocation",
        found.map_err(|error| asked.refuse(error))?,
    ))
}

/// `GET …/filesets/{fileset}/files`: one level of its files.
pub(crate) async fn files(State(app): State<App>, at: Segments, query: Query) -> Answer {
    let asked = Asked::entity(Kind::Fileset);
    let path = at.path(Kind::Fileset).map_err(|error| asked.refuse(error))?;
    let sub_path = query.text("sub_path").unwrap_or("/");
    let found = app
        .dispatcher()
        .list_files(&path, sub_path, query.text("location_name"))
        .await;
    let found = found.map_err(|error| asked.refuse(error))?;
    let directory = virtual_path(&path, sub_path);
    Ok(envelope::one(
        "files",
        Each(|| found.iter().map(|file| show(file, &directory))),
    ))
}

fn show<'a>(file: &'a FileStat, directory: &'a str) -> FileInfo<'a> {
    FileInfo {
        name: &file.name,
        is_dir: file.is_dir,
        size: file.size,
        last_modified: file.modified_at_ms,
        path: directory,
    }
}

/// The directory as clients of the virtual file system name it: without the metalake, below `/fileset`.
fn virtual_path(fileset: &Path, sub_path: &str) -> String {
    let mut path = String::from("/fileset");
    for name in fileset.names().iter().skip(1) {
        path.push('/');
        path.push_str(name.as_str());
    }
    path.push('/');
    path.push_str(sub_path.trim().trim_start_matches('/'));
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<(Name, NewFileset)> {
        Fileset::read(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn null_and_blank_and_empty_are_as_if_not_given() {
        let (_, new) = read(
            r#"{"name":"f","comment":null,"type":null,"storageLocation":" ","storageLocations":{},
                "properties":null,"secretBindings":{},"secretReferences":null}"#,
        )
        .unwrap();
        assert_eq!(new, NewFileset::default());
    }

    #[test]
    fn the_type_is_read_in_any_case() {
        let (_, new) = read(r#"{"name":"f","type":"EXTERNAL"}"#).unwrap();
        assert_eq!(new.fileset_type, Some(FilesetType::External));
        assert!(read(r#"{"name":"f","type":"x"}"#).is_err());
    }

    #[test]
    fn secrets_are_refused_as_unsupported() {
        let refused = read(r#"{"name":"f","secretBindings":{"k":{"provider":"p","plaintext":"x"}}}"#);
        assert!(matches!(refused, Err(Error::Unsupported { .. })));
    }

    #[test]
    fn a_virtual_path_leaves_the_metalake_out() {
        let path = Path::of(Kind::Fileset, &["m", "c", "s", "f"]).unwrap();
        assert_eq!(virtual_path(&path, "/"), "/fileset/c/s/f/");
        assert_eq!(virtual_path(&path, "a/b"), "/fileset/c/s/f/a/b");
        assert_eq!(virtual_path(&path, " /a "), "/fileset/c/s/f/a");
    }
}
