//! The table of operations: every method on every path, under the name that metrics and the OpenAPI document use.
//!
//! The paths of kinds are built from the table of kinds. The router is written out beside this, and a test holds
//! them against each other.

use axum::http::Method;
use treeline_core::Kind;

/// One method on one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    /// Its name: the verb and the kind.
    pub id: String,
    /// How it is asked for.
    pub method: Method,
    /// Where, as the router matches it.
    pub path: String,
    /// What it does.
    pub verb: Verb,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// `GET` on a collection.
    List(Kind),
    /// `POST` on a collection.
    Create(Kind),
    /// `GET` on an entity, by name.
    Load(Kind),
    /// `PUT` on an entity.
    Alter(Kind),
    /// `PATCH` on an entity.
    Switch(Kind),
    /// `DELETE` on an entity.
    Drop(Kind),
    /// Tries out a catalog to be created.
    TestNew,
    /// Tries out a catalog.
    TestExisting,
    /// Where a file of a fileset is.
    FileLocation,
    /// The files of a fileset.
    Files,
    /// Where the artifact of a model version is.
    Uri,
    /// Which build this is.
    Version,
    /// A probe.
    Health,
    /// Who asks.
    Me,
    /// The part of the configuration that clients see.
    Configs,
    /// Where secrets can be kept.
    SecretProviders,
    /// Who waits for whom on this server.
    LocalLocks,
}

/// The path of a kind's collection.
pub(crate) fn collection(kind: Kind) -> String {
    let above = kind.parent().map_or_else(|| "/api".to_owned(), item);
    format!("{above}/{}", kind.row().segment)
}

/// The path of one entity of a kind.
pub(crate) fn item(kind: Kind) -> String {
    format!("{}/{{{}}}", collection(kind), parameter(kind))
}

/// The name of the path parameter that a kind's name stands in.
pub(crate) fn parameter(kind: Kind) -> &'static str {
    match kind {
        Kind::ModelVersion => "version",
        Kind::Metalake | Kind::Catalog | Kind::Schema | Kind::Fileset | Kind::Model => kind.as_str(),
    }
}

/// The path of a model version by its alias.
pub(crate) fn alias_item() -> String {
    format!("{}/aliases/{{alias}}", item(Kind::Model))
}

/// Other paths of the same operations: probes look for them at the root.
pub(crate) const PATH_ALIASES: [(&str, &str); 4] = [
    ("/health", "/api/health"),
    ("/health/live", "/api/health/live"),
    ("/health/ready", "/api/health/ready"),
    ("/health.html", "/api/health"),
];

/// All of them. An alias of a path is no operation of its own.
pub(crate) fn operations() -> Vec<Operation> {
    let mut all = Vec::new();
    for kind in Kind::all() {
        all.extend(of_kind(kind));
    }
    let catalog = item(Kind::Catalog);
    let fileset = item(Kind::Fileset);
    let version = item(Kind::ModelVersion);
    all.extend([
        get(
            "load-model-version-by-alias",
            &alias_item(),
            Verb::Load(Kind::ModelVersion),
        ),
        operation(
            "alter-model-version-by-alias",
            Method::PUT,
            &alias_item(),
            Verb::Alter(Kind::ModelVersion),
        ),
        operation(
            "drop-model-version-by-alias",
            Method::DELETE,
            &alias_item(),
            Verb::Drop(Kind::ModelVersion),
        ),
        get("get-model-version-uri", &format!("{version}/uri"), Verb::Uri),
        get(
            "get-model-version-uri-by-alias",
            &format!("{}/uri", alias_item()),
            Verb::Uri,
        ),
        operation(
            "test-catalog-to-create",
            Method::POST,
            &format!("{}/testConnection", collection(Kind::Catalog)),
            Verb::TestNew,
        ),
        operation(
            "test-catalog",
            Method::POST,
            &format!("{catalog}/testConnection"),
            Verb::TestExisting,
        ),
        get(
            "get-file-location",
            &format!("{fileset}/location"),
            Verb::FileLocation,
        ),
        get("list-files", &format!("{fileset}/files"), Verb::Files),
        get("get-version", "/api/version", Verb::Version),
        get("get-health", "/api/health", Verb::Health),
        get("get-liveness", "/api/health/live", Verb::Health),
        get("get-readiness", "/api/health/ready", Verb::Health),
        get("get-principal", "/api/authn/me", Verb::Me),
        get("get-configs", "/configs", Verb::Configs),
        get(
            "list-secret-providers",
            "/configs/secrets/providers",
            Verb::SecretProviders,
        ),
        get("list-local-locks", "/api/treeline/locks", Verb::LocalLocks),
    ]);
    all
}

/// The verbs that every kind has, as far as this one has them.
fn of_kind(kind: Kind) -> Vec<Operation> {
    let word = kind.as_str().replace('_', "-");
    let id = |verb: &str| format!("{verb}-{word}");
    let (collection, item) = (collection(kind), item(kind));
    let create = if kind == Kind::ModelVersion {
        "link"
    } else {
        "create"
    };
    let mut all = vec![
        get(&format!("list-{word}s"), &collection, Verb::List(kind)),
        operation(&id(create), Method::POST, &collection, Verb::Create(kind)),
        get(&id("load"), &item, Verb::Load(kind)),
        operation(&id("alter"), Method::PUT, &item, Verb::Alter(kind)),
        operation(&id("drop"), Method::DELETE, &item, Verb::Drop(kind)),
    ];
    if kind.row().has_in_use {
        all.push(operation(&id("switch"), Method::PATCH, &item, Verb::Switch(kind)));
    }
    all
}

fn get(id: &str, path: &str, verb: Verb) -> Operation {
    operation(id, Method::GET, path, verb)
}

fn operation(id: &str, method: Method, path: &str, verb: Verb) -> Operation {
    Operation {
        id: id.to_owned(),
        method,
        path: path.to_owned(),
        verb,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn paths_are_built_from_the_table_of_kinds() {
        assert_eq!(collection(Kind::Metalake), "/api/metalakes");
        assert_eq!(
            item(Kind::ModelVersion),
            "/api/metalakes/{metalake}/catalogs/{catalog}/schemas/{schema}/models/{model}/versions/{version}"
        );
    }

    #[test]
    fn no_name_and_no_place_is_taken_twice() {
        let all = operations();
        let names: HashSet<_> = all.iter().map(|operation| &operation.id).collect();
        let places: HashSet<_> = all
            .iter()
            .map(|operation| (&operation.method, &operation.path))
            .collect();
        assert_eq!((names.len(), places.len()), (all.len(), all.len()));
    }
}
