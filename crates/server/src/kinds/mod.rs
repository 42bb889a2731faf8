//! One file a kind: what clients send, what they see, and the verbs that only this kind has.

mod catalog;
mod fileset;
mod metalake;
mod model;
mod model_version;
mod schema;

pub(crate) use catalog::{test_existing, test_new};
pub(crate) use fileset::{FileInfo, files, location};
pub(crate) use model_version::{
    ModelVersionLink, alter_by_alias, drop_by_alias, link, list_versions, load_by_alias, uri, uri_by_alias,
};
