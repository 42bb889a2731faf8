//! Entities by name, and the requests that are made of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, ensure};
use hyper::Method;
use serde_json::{Value, json};
use treeline_core::{Kind, Version};
use treeline_tests::Answer;

/// The header that names the principal, and the two that there are.
pub(crate) const AUTHORIZATION: &str = "authorization";
pub(crate) const PRINCIPAL_A: &str = "Basic YTp4";
pub(crate) const PRINCIPAL_B: &str = "Basic Yjp4";

/// One place in the tree, whether anything is there or not.
#[derive(Clone, Debug)]
pub(crate) struct Entity {
    pub(crate) kind: Kind,
    /// From the metalake down.
    names: Vec<String>,
    ground: Arc<Ground>,
}

/// What all entities of one test share.
#[derive(Debug)]
pub(crate) struct Ground {
    /// Where filesets keep their files.
    pub(crate) files: PathBuf,
    /// The provider of its catalogs.
    pub(crate) provider: &'static str,
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
    /// The name under which sync points know what it is about.
    pub(crate) name: String,
    /// A link is an alter of the model and a create of the version in one; it has points of its own.
    links: bool,
}

impl Entity {
    pub(crate) fn metalake(name: String, ground: Arc<Ground>) -> Entity {
        Entity {
            kind: Kind::Metalake,
            names: vec![name],
            ground,
        }
    }

    /// Something below.
    pub(crate) fn child(&self, kind: Kind, name: impl Into<String>) -> Entity {
        let mut names = self.names.clone();
        names.push(name.into());
        Entity {
            kind,
            names,
            ground: Arc::clone(&self.ground),
        }
    }

    /// Another name under the same parent.
    pub(crate) fn sibling(&self, name: impl Into<String>) -> Entity {
        let mut sibling = self.clone();
        sibling.names.pop();
        sibling.names.push(name.into());
        sibling
    }

    /// The one above; none above a metalake.
    pub(crate) fn parent(&self) -> Option<Entity> {
        let mut parent = self.clone();
        parent.names.pop();
        parent.kind = self.kind.parent()?;
        Some(parent)
    }

    /// Its own name; the number of a version.
    pub(crate) fn name(&self) -> &str {
        self.names.last().map_or("", String::as_str)
    }

    /// Where a fileset of this name keeps its files.
    pub(crate) fn directory(&self) -> PathBuf {
        let names = self.names.join("-");
        self.ground.files.join(names)
    }

    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.name())
    }

    fn collection(&self) -> String {
        let above: String = self
            .kind
            .lineage()
            .iter()
            .zip(&self.names)
            .take(self.names.len() - 1)
            .map(|(kind, name)| format!("/{}/{name}", kind.row().segment))
            .collect();
        format!("/api{above}/{}", self.kind.row().segment)
    }

    /// Creates it, or links it. A fileset makes its own directory.
    pub(crate) fn create(&self) -> Call {
        self.create_in(&self.directory())
    }

    /// The same, with the directory of a fileset.
    pub(crate) fn create_in(&self, directory: &Path) -> Call {
        self.create_with(json!({"storageLocation": directory}))
    }

    /// An external fileset: its directory is not ours.
    pub(crate) fn create_external(&self, directory: &Path) -> Call {
        self.create_with(json!({"storageLocation": directory, "type": "external"}))
    }

    /// The same as [`Entity::create`] with a mark in four places, for whoever wants to know whether he sees one state. A
    /// fileset has it a fifth time, in a directory of its own; `treeline check` compares that with the side row.
    pub(crate) fn create_marked(&self, mark: &str) -> Call {
        let directory = format!("{}-{}", self.directory().display(), slug(mark));
        let mut call = self.create_in(Path::new(&directory));
        let mut body: Value = serde_json::from_str(&call.body).unwrap_or_default();
        body["comment"] = json!(mark);
        body["properties"] = json!({"left": mark, "right": mark, "made": mark});
        call.body = body.to_string();
        call
    }

    /// Sets another mark in three places at once. What the row was made with stays.
    pub(crate) fn mark(&self, mark: &str) -> Call {
        let set = |key| json!({"@type": "setProperty", "property": key, "value": mark});
        let comment = json!({"@type": "updateComment", "newComment": mark});
        self.call(
            Method::PUT,
            self.path(),
            &json!({"updates": [set("left"), comment, set("right")]}),
        )
    }

    /// Fails unless an answer shows one state: one mark in three places, which is the one that the row was made with just as
    /// long as the row is at its first version and nobody has modified it, and the directory that it was made with.
    pub(crate) fn is_of_one_mark(&self, answer: &Answer) -> Result<()> {
        let shown = &answer.json[self.kind.as_str()];
        let (properties, audit) = (&shown["properties"], &shown["audit"]);
        let marks = [&shown["comment"], &properties["left"], &properties["right"]];
        let made = properties["made"].as_str().unwrap_or_default();
        let is_new = answer.tag()?.version == Version::FIRST;
        let directory = shown["storageLocation"].as_str().unwrap_or_default();
        let holds = [
            shown["name"] == self.name() && audit["creator"].is_string(),
            marks[0].is_string() && marks.iter().all(|mark| *mark == marks[0]),
            !made.is_empty() && (*marks[0] == made) == is_new,
            audit["lastModifier"].is_string() != is_new,
            self.kind != Kind::Fileset || directory.ends_with(&slug(made)),
        ];
        ensure!(
            holds.iter().all(|holds| *holds),
            "not one state, {holds:?}, at {}: {}",
            answer.tag()?,
            answer.text
        );
        Ok(())
    }

    fn create_with(&self, of_fileset: Value) -> Call {
        let mut body = match self.kind {
            Kind::Catalog => json!({"type": self.ground.provider}),
            Kind::Fileset => of_fileset,
            Kind::ModelVersion => return self.link(&[]),
            Kind::Metalake | Kind::Schema | Kind::Model => json!({}),
        };
        body["name"] = json!(self.name());
        self.call(Method::POST, self.collection(), &body)
    }

    /// Links a version with aliases. Its number is given by the server.
    pub(crate) fn link(&self, aliases: &[&str]) -> Call {
        let model = self.names.len() - 2;
        let body = json!({"uri": "s3://bucket/model", "aliases": aliases});
        Call {
            name: self.names[model].clone(),
            links: true,
            ..self.call(Method::POST, self.collection(), &body)
        }
    }

    pub(crate) fn load(&self) -> Call {
        self.call(Method::GET, self.path(), &Value::Null)
    }

    /// The names of everything of its kind beside it.
    pub(crate) fn list(&self) -> Call {
        self.call(Method::GET, self.collection(), &Value::Null)
    }

    pub(crate) fn set(&self, key: &str, value: &str) -> Call {
        self.update(json!({"@type": "setProperty", "property": key, "value": value}))
    }

    pub(crate) fn rename(&self, to: &Entity) -> Call {
        self.update(json!({"@type": "rename", "newName": to.name()}))
    }

    /// Changes the aliases of a version.
    pub(crate) fn aliases(&self, add: &[&str], remove: &[&str]) -> Call {
        self.update(json!({"@type": "updateAliases", "aliasesToAdd": add, "aliasesToRemove": remove}))
    }

    pub(crate) fn enable(&self) -> Call {
        self.call(Method::PATCH, self.path(), &json!({"inUse": true}))
    }

    pub(crate) fn disable(&self) -> Call {
        self.call(Method::PATCH, self.path(), &json!({"inUse": false}))
    }

    /// Drops it and all below it, enabled or not.
    pub(crate) fn drop(&self) -> Call {
        let mode = match self.kind {
            Kind::Metalake | Kind::Catalog => "?force=true",
            Kind::Schema => "?cascade=true",
            Kind::Fileset | Kind::Model | Kind::ModelVersion => "",
        };
        self.call(Method::DELETE, format!("{}{mode}", self.path()), &Value::Null)
    }

    /// Drops it only if it is empty, and disabled where it can be.
    pub(crate) fn drop_plainly(&self) -> Call {
        self.call(Method::DELETE, self.path(), &Value::Null)
    }

    fn update(&self, change: Value) -> Call {
        self.call(Method::PUT, self.path(), &json!({"updates": [change]}))
    }

    fn call(&self, method: Method, path: String, body: &Value) -> Call {
        Call {
            method,
            path,
            headers: Vec::new(),
            body: if body.is_null() {
                String::new()
            } else {
                body.to_string()
            },
            name: self.name().to_owned(),
            links: false,
        }
    }
}

/// A mark as it can stand in a path.
fn slug(mark: &str) -> String {
    mark.replace(' ', "-")
}

impl Call {
    /// Only if the state is still that one.
    pub(crate) fn if_match(mut self, tag: impl std::fmt::Display) -> Call {
        self.headers.push(("if-match", format!("\"{tag}\"")));
        self
    }

    /// Under a key of the client's own. Keys belong to principals, so whoever sends it, it is A's.
    pub(crate) fn keyed(mut self, key: &str) -> Call {
        self.headers.push(("idempotency-key", key.to_owned()));
        self.headers.push((AUTHORIZATION, PRINCIPAL_A.to_owned()));
        self
    }

    /// Its sync points are known under another name: those of a directory by the directory's.
    pub(crate) fn at(mut self, name: &str) -> Call {
        name.clone_into(&mut self.name);
        self
    }

    /// The point of this call that is called so for a create.
    pub(crate) fn point<'p>(&self, point: &'p str) -> &'p str {
        match (self.links, point) {
            (true, "create.resolved") => "link.resolved",
            (true, "create.parent_locked") => "link.model_locked",
            (true, "create.inserted") => "link.written",
            _ => point,
        }
    }
}
