//! The operations that a server offers, each asking once who decides.

use std::collections::BTreeMap;

use treeline_core::kinds::{Catalog, CatalogChange, Fileset, FilesetType, ModelVersion};
use treeline_core::{Alias, Entity, Error, Kind, Name, Path, Payload, Properties, Result};
use treeline_storage::WriteContext;

/// Every operation of the catalog. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Dispatcher {}

/// What a drop does with what hangs below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropMode {
    /// Refuses what is enabled or not empty.
    Plain,
    /// Takes along everything below, enabled or not.
    Cascade,
}

/// What a client says of a fileset to create; the rest follows from its schema and catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewFileset {
    /// Free text.
    pub comment: Option<String>,
    /// Managed unless said otherwise.
    pub fileset_type: Option<FilesetType>,
    /// The location without a name.
    pub storage_location: Option<String>,
    /// The locations by name.
    pub storage_locations: BTreeMap<String, String>,
    /// Free properties.
    pub properties: Properties,
}

/// One file or directory of a fileset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// Its last segment.
    pub name: String,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// In bytes; 0 for a directory.
    pub size: u64,
    /// Milliseconds since 1970, on the file system's clock.
    pub modified_at_ms: i64,
}

/// What to try out.
#[derive(Clone, Debug)]
pub enum TestConnection {
    /// A catalog that is not there yet.
    New(Path, Catalog),
    /// A catalog that is there, with these changes.
    Existing(Path, Vec<CatalogChange>),
}

fn later<T>() -> Result<T> {
    Err(Error::internal("not wired yet"))
}

impl Dispatcher {
    /// Creates a metalake, catalog, schema or model (P1) and answers it as it was written.
    pub async fn create<P: Payload>(&self, context: &WriteContext, path: &Path, payload: P) -> Result<Entity<P>> {
        let _ = (context, path, payload);
        later()
    }

    /// Creates a fileset and its directories.
    pub async fn create_fileset(&self, context: &WriteContext, path: &Path, new: NewFileset) -> Result<Entity<Fileset>> {
        let _ = (context, path, new);
        later()
    }

    /// Links a version to a model: the next number, a strict create and its aliases in one transaction.
    pub async fn link(&self, context: &WriteContext, model: &Path, version: ModelVersion) -> Result<Entity<ModelVersion>> {
        let _ = (context, model, version);
        later()
    }

    /// Reads one entity.
    pub async fn load<P: Payload>(&self, path: &Path) -> Result<Entity<P>> {
        let _ = path;
        later()
    }

    /// The path of the version that an alias means now.
    pub async fn version_of_alias(&self, model: &Path, alias: &Alias) -> Result<Path> {
        let _ = (model, alias);
        later()
    }

    /// The names under a parent (none: the root), in byte order (model versions: by number).
    pub async fn list_names(&self, parent: Option<&Path>, kind: Kind) -> Result<Vec<Name>> {
        let _ = (parent, kind);
        later()
    }

    /// The entities under a parent (none: the root), in byte order of their names (model versions: by number).
    pub async fn list<P: Payload>(&self, parent: Option<&Path>) -> Result<Vec<Entity<P>>> {
        let _ = parent;
        later()
    }

    /// Applies the changes of one request (P2, P4) and answers the entity as it then is.
    pub async fn alter<P: Payload>(&self, context: &WriteContext, path: &Path, changes: Vec<P::Change>) -> Result<Entity<P>> {
        let _ = (context, path, changes);
        later()
    }

    /// Drops an entity (P3). `false` if there was none, unless the client pinned a version.
    pub async fn drop(&self, context: &WriteContext, path: &Path, mode: DropMode) -> Result<bool> {
        let _ = (context, path, mode);
        later()
    }

    /// Where a file of a fileset is. `rename` says that the client means to rename it, which needs a sub-path.
    pub async fn file_location(&self, fileset: &Path, sub_path: &str, location_name: Option<&str>, rename: bool) -> Result<String> {
        let _ = (fileset, sub_path, location_name, rename);
        later()
    }

    /// One level of the files of a fileset.
    pub async fn list_files(&self, fileset: &Path, sub_path: &str, location_name: Option<&str>) -> Result<Vec<FileEntry>> {
        let _ = (fileset, sub_path, location_name);
        later()
    }

    /// Where the artifact of a model version is.
    pub async fn version_uri(&self, version: &Path, uri_name: Option<&str>) -> Result<String> {
        let _ = (version, uri_name);
        later()
    }

    /// Tries out a catalog without keeping anything. [`Error::Unsupported`] where the provider has no probe.
    pub async fn test_connection(&self, test: TestConnection) -> Result<()> {
        let _ = test;
        later()
    }

    /// Whether the database answers, within the bound of the readiness probe.
    pub async fn ready(&self) -> Result<()> {
        later()
    }
}
