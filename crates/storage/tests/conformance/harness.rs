//! Everything that the suite needs to know about a backend, so that the tests need not.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

use libtest_mimic::Failed;
use sqlx::{Connection, Executor};
use treeline_core::kinds::{Catalog, Metalake, Model, Schema};
use treeline_core::{Entity, Error, Kind, Name, NewEntity, Path, Payload, Result};
use treeline_storage::{Resolved, Store, StoreOptions, WriteContext};

use crate::counts::Counts;
use crate::pooler;
use crate::proxy::Proxy;

/// One test of the suite.
pub(crate) struct Test {
    pub(crate) name: &'static str,
    pub(crate) run: fn(Bed) -> Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// Lists async functions over a [`Bed`] as tests.
macro_rules! tests {
    ($($name:ident),+ $(,)?) => {
        pub(crate) const TESTS: &[crate::harness::Test] = &[$(crate::harness::Test {
            name: stringify!($name),
            run: |bed| Box::pin($name(bed)),
        }),+];
    };
}
pub(crate) use tests;

/// A database server, or a place for files.
#[derive(Clone)]
pub(crate) struct Backend {
    pub(crate) name: &'static str,
    /// The URL of a server, on which each test makes a database of its own; none for SQLite, several for a cluster.
    servers: Vec<String>,
}

impl Backend {
    pub(crate) fn is_server(&self) -> bool {
        !self.servers.is_empty()
    }

    /// Whether it is a cluster of several nodes.
    pub(crate) fn is_cluster(&self) -> bool {
        self.servers.len() > 1
    }

    /// Whether the poolers stand before this server.
    #[expect(clippy::print_stderr, reason = "says what does not take part")]
    pub(crate) fn has_pooler(&self) -> bool {
        let known = std::env::var_os(pooler::VARIABLE).is_some();
        if self.name == "postgres" && !known {
            eprintln!("not run: poolers, since {} is not set", pooler::VARIABLE);
        }
        self.name == "postgres" && known
    }
}

/// SQLite, and every server whose URL is in the environment.
#[expect(clippy::print_stderr, reason = "says which backends do not take part")]
pub(crate) fn backends() -> Vec<Backend> {
    let mut backends = vec![Backend {
        name: "sqlite",
        servers: Vec::new(),
    }];
    for name in ["postgres", "mysql", "mariadb", "galera"] {
        let variable = format!("TREELINE_TEST_{}_URL", name.to_uppercase());
        match std::env::var(&variable) {
            Ok(servers) => backends.push(Backend {
                name,
                servers: servers.split_whitespace().map(str::to_owned).collect(),
            }),
            Err(_) => eprintln!("not run: {name}, since {variable} is not set"),
        }
    }
    backends
}

impl Backend {
    pub(crate) fn run(&self, test: &'static Test) -> std::result::Result<(), Failed> {
        let counts = Counts::new();
        let _counting = metrics::set_default_local_recorder(counts);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            // Until the thread ends.
            .on_thread_start(|| std::mem::forget(metrics::set_default_local_recorder(counts)))
            .build()?;
        runtime.block_on(async {
            let directory = tempfile::tempdir()?;
            let other_node = self.servers.get(1).cloned();
            let url = match self.servers.first() {
                None => format!("sqlite:{}", directory.path().join("treeline.db").display()),
                Some(server) => make_database(server, other_node.as_deref()).await?,
            };
            let options = StoreOptions::new(url);
            let bed = Bed {
                store: Store::open(options.clone()).await?,
                options,
                other_node,
                counts,
            };
            (test.run)(bed.clone()).await;
            let findings = bed.store.check().await?;
            assert!(findings.is_empty(), "the audit found: {findings:?}");
            Ok(())
        })
    }
}

/// How the names of all databases of the suite begin: whoever connects to one says it.
pub(crate) const DATABASE: &str = "conformance_";

/// Makes a database on a server and answers its URL. It stays there: the server is thrown away as a whole.
async fn make_database(server: &str, other_node: Option<&str>) -> sqlx::Result<String> {
    // As long as a name may be where it may be shortest, on PostgreSQL.
    let name = format!("{DATABASE}{:0>50}", fastrand::u64(..));
    execute(server, format!("CREATE DATABASE {name}")).await?;
    if let Some(node) = other_node {
        // Until the other node has it, nobody can connect to it there.
        execute(node, "SET SESSION wsrep_sync_wait = 1; SELECT 1".to_owned()).await?;
    }
    let (server, _) = server.rsplit_once('/').unwrap();
    Ok(format!("{server}/{name}"))
}

/// Runs a statement on the database of a URL, as somebody who is not a store.
async fn execute(url: &str, statement: String) -> sqlx::Result<()> {
    hold(url, statement).await.map(drop)
}

async fn hold(url: &str, statement: String) -> sqlx::Result<Stranger> {
    let statement = sqlx::raw_sql(sqlx::AssertSqlSafe(statement));
    if url.starts_with("postgres") {
        let mut session = sqlx::PgConnection::connect(url).await?;
        session.execute(statement).await?;
        Ok(Stranger::Postgres(session))
    } else {
        let url = url.replacen("mariadb:", "mysql:", 1);
        let mut session = sqlx::MySqlConnection::connect(&url).await?;
        session.execute(statement).await?;
        Ok(Stranger::MySql(session))
    }
}

/// A session of somebody who is not a store, with whatever it holds.
pub(crate) enum Stranger {
    Postgres(sqlx::PgConnection),
    MySql(sqlx::MySqlConnection),
}

impl Stranger {
    /// Once this is answered, the server has let go of what the session held, or is about to.
    pub(crate) async fn end(self) {
        match self {
            Stranger::Postgres(session) => session.close().await.unwrap(),
            Stranger::MySql(session) => session.close().await.unwrap(),
        }
    }
}

/// A database of a test's own, with a store on it.
#[derive(Clone)]
pub(crate) struct Bed {
    pub(crate) store: Store,
    pub(crate) options: StoreOptions,
    /// The URL of the other node of a cluster.
    pub(crate) other_node: Option<String>,
    /// What all stores of this test have counted.
    pub(crate) counts: &'static Counts,
}

impl Bed {
    /// The same database as another server reaches it: on a cluster, at the other node.
    pub(crate) fn elsewhere(&self, options: &StoreOptions) -> StoreOptions {
        let mut options = options.clone();
        if let Some(node) = &self.other_node {
            let (node, _) = node.rsplit_once('/').unwrap();
            let (_, database) = options.url.rsplit_once('/').unwrap();
            options.url = format!("{node}/{database}");
        }
        options
    }

    /// A second store on the same database: another server, as far as the database can tell.
    pub(crate) async fn another_store(&self, change: impl FnOnce(&mut StoreOptions)) -> Store {
        let mut options = self.elsewhere(&self.options);
        change(&mut options);
        Store::open(options).await.unwrap()
    }

    /// Runs a statement on the database behind the store's back. Only a database server can be asked.
    pub(crate) async fn execute(&self, statement: impl Into<String>) {
        execute(&self.options.url, statement.into()).await.unwrap();
    }

    /// The same, and keeps what it has locked until its session ends.
    pub(crate) async fn hold(&self, statement: impl Into<String>) -> Stranger {
        hold(&self.options.url, statement.into()).await.unwrap()
    }

    /// Where one more database is, which is empty.
    pub(crate) async fn another_database(&self) -> StoreOptions {
        let mut options = self.options.clone();
        options.url = make_database(&options.url, self.other_node.as_deref())
            .await
            .unwrap();
        options
    }

    /// The name of the database.
    pub(crate) fn database(&self) -> &str {
        self.options.url.rsplit('/').next().unwrap()
    }

    /// Whether this database runs creates and updates as one statement.
    pub(crate) fn fuses(&self) -> bool {
        self.options.url.starts_with("postgres")
    }

    /// The way to the same database through a wire that can be cut: the wire, and the URL.
    pub(crate) async fn through_proxy(&self) -> (Proxy, String) {
        let (scheme, rest) = self.options.url.split_once("://").unwrap();
        let (user, rest) = rest.split_once('@').unwrap();
        let (server, database) = rest.split_once('/').unwrap();
        let proxy = Proxy::start(server.to_owned()).await;
        // In the clear, or the wire could not read along.
        let plain = if scheme == "postgres" {
            "sslmode=disable"
        } else {
            "ssl-mode=disabled"
        };
        let url = format!("{scheme}://{user}@127.0.0.1:{}/{database}?{plain}", proxy.port());
        (proxy, url)
    }

    pub(crate) async fn create<P: Payload>(
        &self,
        parent: Option<&Path>,
        text: &str,
        payload: P,
    ) -> Entity<P> {
        self.try_create(parent, text, payload).await.unwrap()
    }

    pub(crate) async fn try_create<P: Payload>(
        &self,
        parent: Option<&Path>,
        text: &str,
        payload: P,
    ) -> Result<Entity<P>> {
        let parent = match parent {
            Some(path) => Some(self.store.resolve(path).await?),
            None => None,
        };
        self.store
            .create(
                &context(),
                parent.as_ref(),
                NewEntity {
                    name: name(text),
                    payload,
                },
            )
            .await
    }

    pub(crate) async fn resolve(&self, path: &Path) -> Resolved {
        self.store.resolve(path).await.unwrap()
    }

    /// A metalake `ml` with a catalog `c` and a schema `s`; the schema's path.
    pub(crate) async fn schema(&self) -> Path {
        self.create(None, "ml", Metalake::sample()).await;
        let metalake = Path::metalake(name("ml"));
        self.create(Some(&metalake), "c", Catalog::sample()).await;
        let catalog = metalake.child(Kind::Catalog, name("c"));
        self.create(Some(&catalog), "s", Schema::sample()).await;
        catalog.child(Kind::Schema, name("s"))
    }

    /// The schema of [`Bed::schema`] with a model `m` in it; the model's path.
    pub(crate) async fn model(&self) -> Path {
        let schema = self.schema().await;
        self.create(Some(&schema), "m", Model::default()).await;
        schema.child(Kind::Model, name("m"))
    }

    /// Every row of a table, by column.
    pub(crate) async fn rows(&self, table: &str) -> Vec<BTreeMap<String, serde_json::Value>> {
        let dump = self.store.dump().await.unwrap();
        dump.lines()
            .map(|line| serde_json::from_str::<BTreeMap<String, serde_json::Value>>(line).unwrap())
            .filter(|row| row["table"] == table)
            .collect()
    }

    /// How many rows of a table have this value in that column.
    pub(crate) async fn count(
        &self,
        table: &str,
        column: &str,
        value: impl Into<serde_json::Value>,
    ) -> usize {
        let value = value.into();
        self.rows(table)
            .await
            .iter()
            .filter(|row| row[column] == value)
            .count()
    }
}

/// The reason of the refusal, which names the key to mend.
pub(crate) async fn refused(options: StoreOptions) -> String {
    match Store::open(options).await {
        Err(Error::Invalid { field, reason }) if field == "database" => reason,
        Err(Error::Unavailable { reason }) => reason,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn context() -> WriteContext {
    WriteContext::new("tester", "request")
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}
