//! The audit of a database against every invariant that rows can show.
//!
//! It trusts no key and no check constraint: a database that was damaged by hand, or restored in pieces, is exactly
//! what it is for. Each finding names the invariant, the rows, and what is wrong with them.

use std::collections::BTreeMap;
use std::fmt;

use async_trait::async_trait;
use treeline_core::kinds::{Catalog, Fileset, Metalake, Model, ModelVersion, Schema};
use treeline_core::{Alias, Kind, Payload};

use crate::failure::Failure;
use crate::record::{Record, decode_payload};
use crate::sql::{Statement, check};
use crate::transaction::{Transaction, Work};
use crate::value::Row;

/// One thing that is wrong with a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The invariant that is broken, as `docs/invariants.md` numbers them.
    pub invariant: &'static str,
    /// Which rows, and how.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.what)
    }
}

/// A query whose every row is a finding.
struct Audit {
    invariant: &'static str,
    statement: &'static Statement,
    words: fn(&mut Row) -> Result<String, Failure>,
}

const AUDITS: &[Audit] = &[
    Audit {
        invariant: "INV-1",
        statement: &check::CHECK_ORPHANS,
        words: orphan,
    },
    Audit {
        invariant: "INV-2",
        statement: &check::CHECK_DOUBLE_NAMES,
        words: double_name,
    },
    Audit {
        invariant: "INV-1",
        statement: &check::CHECK_STATES,
        words: neither_live_nor_dropped,
    },
    Audit {
        invariant: "INV-7",
        statement: &check::CHECK_ALIASES,
        words: lost_alias,
    },
    Audit {
        invariant: "INV-6",
        statement: &check::CHECK_LOCATIONS,
        words: lost_location,
    },
    Audit {
        invariant: "INV-3",
        statement: &check::CHECK_FEED_GAPS,
        words: version_gap,
    },
    Audit {
        invariant: "INV-3",
        statement: &check::CHECK_FEED_ORDER,
        words: feed_order,
    },
];

/// Audits the whole database, as of one moment.
pub(crate) struct Check;

#[async_trait]
impl Work for Check {
    type Output = Vec<Finding>;
    const NAME: &'static str = "check";

    async fn run(&self, transaction: &mut Transaction<'_>) -> Result<Vec<Finding>, Failure> {
        let mut findings = Vec::new();
        for audit in AUDITS {
            for mut row in transaction.rows(audit.statement, &[]).await? {
                findings.push(Finding {
                    invariant: audit.invariant,
                    what: (audit.words)(&mut row)?,
                });
            }
        }
        check_payloads(transaction, &mut findings).await?;
        Ok(findings)
    }
}

fn orphan(row: &mut Row) -> Result<String, Failure> {
    let (id, kind, name, parent) = (row.int(0)?, row.text(1)?, row.text(2)?, row.int(3)?);
    Ok(format!(
        "{kind} {id} `{name}` is live, and its parent {parent} is not"
    ))
}

fn double_name(row: &mut Row) -> Result<String, Failure> {
    let (parent, kind, name, count) = (row.int(0)?, row.text(1)?, row.text(2)?, row.int(3)?);
    Ok(format!(
        "{count} live rows of kind {kind} are called `{name}` under {parent}"
    ))
}

fn neither_live_nor_dropped(row: &mut Row) -> Result<String, Failure> {
    let (id, tombstone, parent_tombstone) = (row.int(0)?, row.int(1)?, row.maybe_int(2)?);
    Ok(format!(
        "row {id} is neither live nor dropped: tombstone {tombstone}, parent_tombstone {parent_tombstone:?}"
    ))
}

fn lost_alias(row: &mut Row) -> Result<String, Failure> {
    let (model, alias, version) = (row.int(0)?, row.text(1)?, row.int(2)?);
    Ok(format!(
        "alias `{alias}` of model {model} names {version}, which is no live version of it"
    ))
}

fn lost_location(row: &mut Row) -> Result<String, Failure> {
    let (id, name) = (row.int(0)?, row.text(1)?);
    Ok(format!(
        "location `{name}` belongs to {id}, which is no live fileset"
    ))
}

fn version_gap(row: &mut Row) -> Result<String, Failure> {
    let (id, kind, name, version) = (row.int(0)?, row.text(1)?, row.text(2)?, row.int(3)?);
    let (count, first, last) = (row.int(4)?, row.maybe_int(5)?, row.maybe_int(6)?);
    Ok(format!(
        "{kind} {id} `{name}` is at version {version}, but its feed has {count} rows, from {first:?} to {last:?}: \
         a version gap"
    ))
}

fn feed_order(row: &mut Row) -> Result<String, Failure> {
    let (id, version) = (row.int(0)?, row.int(1)?);
    Ok(format!(
        "the feed has version {version} of row {id} before the version below it"
    ))
}

/// What only the payloads can tell: that they decode, and agree with their side rows.
async fn check_payloads(
    transaction: &mut Transaction<'_>,
    findings: &mut Vec<Finding>,
) -> Result<(), Failure> {
    let mut after = 0_i64;
    loop {
        let rows = transaction.rows(&check::CHECK_PAYLOADS, &[after.into()]).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = last.int(0)?;
        for row in rows {
            let id = row.int(0)?;
            match Record::decode(row) {
                Ok(record) => check_payload(transaction, &record, findings).await?,
                Err(failure) => {
                    findings.push(Finding {
                        invariant: "INV-14",
                        what: format!("row {id} does not decode: {failure:?}"),
                    });
                }
            }
        }
    }
}

async fn check_payload(
    transaction: &mut Transaction<'_>,
    record: &Record,
    findings: &mut Vec<Finding>,
) -> Result<(), Failure> {
    let flaw = match record.kind {
        Kind::Metalake => decode_checked::<Metalake>(record).err(),
        Kind::Catalog => decode_checked::<Catalog>(record).err(),
        Kind::Schema => decode_checked::<Schema>(record).err(),
        Kind::Fileset => match decode_checked(record) {
            Ok(fileset) => check_fileset(transaction, record, &fileset).await?,
            Err(flaw) => Some(flaw),
        },
        Kind::Model => match decode_checked(record) {
            Ok(model) => check_model(transaction, record, &model).await?,
            Err(flaw) => Some(flaw),
        },
        Kind::ModelVersion => match decode_checked(record) {
            Ok(version) => check_version(transaction, record, &version).await?,
            Err(flaw) => Some(flaw),
        },
    };
    if let Some(Flaw { invariant, what }) = flaw {
        let what = format!("{} {} `{}` {what}", record.kind, record.id, record.name);
        findings.push(Finding { invariant, what });
    }
    Ok(())
}

/// What is wrong with a row whose columns decode.
struct Flaw {
    invariant: &'static str,
    what: String,
}

async fn check_fileset(
    transaction: &mut Transaction<'_>,
    record: &Record,
    fileset: &Fileset,
) -> Result<Option<Flaw>, Failure> {
    let mut kept = BTreeMap::new();
    for mut row in transaction
        .rows(&check::LOCATIONS_OF, &[record.id.into()])
        .await?
    {
        kept.insert(row.text(0)?, row.text(1)?);
    }
    let flaw = || Flaw {
        invariant: "INV-6",
        what: format!("has other locations than its side rows, {kept:?}"),
    };
    Ok((kept != fileset.locations).then(flaw))
}

async fn check_model(
    transaction: &mut Transaction<'_>,
    record: &Record,
    model: &Model,
) -> Result<Option<Flaw>, Failure> {
    for mut row in transaction.rows(&check::NUMBERS_OF, &[record.id.into()]).await? {
        let number = row.text(0)?;
        if !number
            .parse::<u32>()
            .is_ok_and(|number| number < model.latest_version)
        {
            let what = format!(
                "has a version {number}, but gave numbers below {} only",
                model.latest_version
            );
            return Ok(Some(Flaw {
                invariant: "INV-13",
                what,
            }));
        }
    }
    Ok(None)
}

async fn check_version(
    transaction: &mut Transaction<'_>,
    record: &Record,
    version: &ModelVersion,
) -> Result<Option<Flaw>, Failure> {
    let mut kept = Vec::new();
    for mut row in transaction.rows(&check::ALIASES_OF, &[record.id.into()]).await? {
        kept.push(row.text(0)?);
    }
    let agree = version
        .aliases
        .iter()
        .map(Alias::as_str)
        .eq(kept.iter().map(String::as_str));
    let flaw = || Flaw {
        invariant: "INV-7",
        what: format!("has other aliases than its side rows, {kept:?}"),
    };
    Ok((!agree).then(flaw))
}

fn decode_checked<P: Payload>(record: &Record) -> Result<P, Flaw> {
    decode_payload::<P>(record.id, record.kind, &record.payload)
        .and_then(|payload| payload.check().map(|()| payload))
        .map_err(|error| Flaw {
            invariant: "INV-14",
            what: format!("has a bad payload: {error:?}"),
        })
}

/// Counts the sessions that wait for a row lock.
#[cfg(feature = "test-hooks")]
pub(crate) struct CountBlocked;

#[cfg(feature = "test-hooks")]
#[async_trait]
impl Work for CountBlocked {
    type Output = usize;
    const NAME: &'static str = "count_blocked";

    async fn run(&self, transaction: &mut Transaction<'_>) -> Result<usize, Failure> {
        let row = transaction.row(&check::COUNT_BLOCKED, &[]).await?;
        let count = row.map(|row| row.int(0)).transpose()?.unwrap_or(0);
        Ok(usize::try_from(count).unwrap_or(0))
    }
}
