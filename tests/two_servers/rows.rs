//! The table of rows, and which of them run where.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use anyhow::{Context as _, Result};
use treeline_core::Kind;

use crate::lab::{Backend, Lab};
use crate::race::{Race, Sizes};
use crate::{
    churn, cluster, create, drops, idempotency, in_use, parent, rename, retry, storm, update, version,
};

/// One row of the list.
pub(crate) struct Row {
    /// The name of its function: the id, then the claim.
    pub(crate) name: &'static str,
    pub(crate) kinds: &'static [Kind],
    pub(crate) needs: Needs,
    pub(crate) tell: for<'r> fn(&'r mut Race) -> Story<'r>,
}

/// What a row is about that not every backend has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    /// The wire to a database server, which SQLite does not have.
    Server,
    /// Several nodes of one database.
    Cluster,
    /// The same, and a pair that has begun on an empty database just now, one server after the other.
    EmptyCluster,
}

impl Needs {
    const fn has(self, backend: Backend) -> bool {
        match self {
            Needs::Nothing => true,
            Needs::Server => !backend.has_one_writer(),
            Needs::Cluster | Needs::EmptyCluster => backend.has_two_primaries(),
        }
    }
}

/// A row being told.
pub(crate) type Story<'r> = Pin<Box<dyn Future<Output = Result<()>> + 'r>>;

/// Lists async functions over a [`Race`] as rows, each with its kinds.
macro_rules! rows {
    ($($name:ident of $kinds:expr),+ $(,)?) => {
        pub(crate) const ROWS: &[crate::rows::Row] = &[$(crate::rows::Row {
            name: stringify!($name),
            kinds: $kinds,
            needs: crate::rows::Needs::Nothing,
            tell: |race| Box::pin($name(race)),
        }),+];
    };
}
pub(crate) use rows;

/// Every kind but versions, which are linked and not created.
pub(crate) const CREATED: &[Kind] = &[
    Kind::Metalake,
    Kind::Catalog,
    Kind::Schema,
    Kind::Fileset,
    Kind::Model,
];
/// Those of them that can be renamed.
pub(crate) const RENAMED: &[Kind] = &[Kind::Metalake, Kind::Catalog, Kind::Fileset, Kind::Model];
/// Those of them that hold others.
pub(crate) const PARENTS: &[Kind] = &[Kind::Metalake, Kind::Catalog, Kind::Schema, Kind::Model];
/// Every kind that is made under another.
pub(crate) const CHILDREN: &[Kind] = &[
    Kind::Catalog,
    Kind::Schema,
    Kind::Fileset,
    Kind::Model,
    Kind::ModelVersion,
];
/// What is made in a schema.
pub(crate) const LEAVES: &[Kind] = &[Kind::Fileset, Kind::Model];

fn all() -> impl Iterator<Item = &'static Row> {
    [
        create::ROWS,
        parent::ROWS,
        update::ROWS,
        rename::ROWS,
        in_use::ROWS,
        version::ROWS,
        drops::ROWS,
        churn::ROWS,
        storm::ROWS,
        idempotency::ROWS,
        retry::ROWS,
        cluster::ROWS,
    ]
    .into_iter()
    .flatten()
}

impl Row {
    /// The id that the list knows it by.
    pub(crate) fn id(&self) -> String {
        let mut words = self.name.split('_');
        let id: Vec<&str> = words.by_ref().take(3).collect();
        id.join("-").to_uppercase()
    }
}

/// One row, of one kind, on one backend, in one order.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) row: &'static Row,
    pub(crate) kind: Kind,
    pub(crate) backend: Backend,
    /// Whether the second server is A.
    pub(crate) swapped: bool,
}

/// Why a row has not failed though it was not told: its servers were not there.
#[derive(Debug)]
pub(crate) struct NotBegun;

impl fmt::Display for NotBegun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the servers could not be started")
    }
}

/// What runs: everything in a soak; otherwise the first server is A, and MySQL, MariaDB and
/// Galera, or all if one kind is to be enough, take one kind a row in turn.
/// To show that a row can fail, one kind of it is enough everywhere: always the first, so that a row more or less
/// changes nothing for the others.
pub(crate) fn cases(lab: &Lab) -> Vec<Case> {
    let mut cases = Vec::new();
    for backend in lab.backends() {
        for (number, row) in all().enumerate() {
            if !row.needs.has(backend) || !lab.wants(&row.id()) {
                continue;
            }
            let turn = number + backend as usize;
            let kinds = if lab.has_mutants() {
                &row.kinds[..1]
            } else if lab.soak || (!lab.one_kind && matches!(backend, Backend::Sqlite | Backend::Postgres)) {
                row.kinds
            } else {
                &row.kinds[turn % row.kinds.len()..][..1]
            };
            let orders: &[bool] = if lab.soak { &[false, true] } else { &[false] };
            for kind in kinds {
                cases.extend(orders.iter().map(|swapped| Case {
                    row,
                    kind: *kind,
                    backend,
                    swapped: *swapped,
                }));
            }
        }
    }
    cases
}

impl Case {
    pub(crate) fn name(&self) -> String {
        let order = if self.swapped { "::swapped" } else { "" };
        format!(
            "{}::{}::{}{order}",
            self.row.name,
            self.backend.name(),
            self.kind.as_str()
        )
    }

    /// Tells the row on a pair, and gives the pair back. One that failed may have left anything in the middle.
    pub(crate) async fn run(&self, lab: &Lab) -> Result<()> {
        let pair = match self.row.needs {
            // That they can be started is what such a row shows.
            Needs::EmptyCluster => lab.start_in_turn(self.backend).await?,
            Needs::Nothing | Needs::Server | Needs::Cluster => {
                lab.take(self.backend).await.context(NotBegun)?
            }
        };
        // What flips thousands of times does the same in either order, so the whole sizes are for one of them.
        let sizes = match (lab.soak && !self.swapped, lab.has_mutants()) {
            (true, _) => Sizes::Whole,
            (false, true) => Sizes::UntilItFails,
            (false, false) => Sizes::Usual,
        };
        let mut race = Race::new(pair, self.kind, self.swapped, sizes);
        let mut told = (self.row.tell)(&mut race).await;
        if told.is_ok() {
            told = race.end().await;
        }
        race.let_go().await;
        let mut pair = race.pair;
        if let Err(error) = &mut told {
            let logs = pair.logs();
            pair.kill().await?;
            // What it left behind is no fault of the rows that come after.
            let _ = pair.check().await;
            let not_begun = error.is::<NotBegun>();
            *error = anyhow::anyhow!("{error:#}\n{logs}");
            if not_begun {
                told = told.context(NotBegun);
            }
        }
        lab.put(pair)?;
        told
    }
}
