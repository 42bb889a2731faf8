//! The few entities that most tests begin with, and where they are in the API.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};

use crate::{Bed, Client};

/// A metalake `m` with a fileset catalog `files` and a model catalog `models`, a schema `s` in each.
#[derive(Clone, Debug)]
pub struct Tree {
    files: PathBuf,
}

impl Tree {
    /// Makes it.
    pub async fn plant(bed: &Bed, client: &mut Client) -> Result<Tree> {
        client.post("/api/metalakes", &json!({"name": "m"})).await?.ok()?;
        for (name, catalog_type) in [("files", "fileset"), ("models", "model")] {
            client
                .post(Tree::CATALOGS, &json!({"name": name, "type": catalog_type}))
                .await?
                .ok()?;
            client
                .post(
                    &format!("{}/{name}/schemas", Tree::CATALOGS),
                    &json!({"name": "s"}),
                )
                .await?
                .ok()?;
        }
        Ok(Tree { files: bed.files() })
    }

    /// The catalogs of the metalake.
    pub const CATALOGS: &str = "/api/metalakes/m/catalogs";
    /// The schemas of the fileset catalog.
    pub const SCHEMAS: &str = "/api/metalakes/m/catalogs/files/schemas";
    /// The filesets.
    pub const FILESETS: &str = "/api/metalakes/m/catalogs/files/schemas/s/filesets";
    /// The models.
    pub const MODELS: &str = "/api/metalakes/m/catalogs/models/schemas/s/models";

    /// Where a fileset of this tree may keep its files.
    pub fn location(&self, name: &str) -> String {
        self.files.join(name).display().to_string()
    }

    /// The body that creates a fileset with one location, named as the fileset is.
    pub fn fileset(&self, name: &str) -> Value {
        json!({"name": name, "storageLocation": self.location(name)})
    }

    /// The names of the directories that filesets have made.
    pub fn directories(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.files)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort_unstable();
        Ok(names)
    }
}
