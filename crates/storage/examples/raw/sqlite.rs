//! The embedded database through its driver: reads on a thread for each client, writes on one thread, because SQLite
//! has one writer at a time and more threads would only wait for each other. One commit for each write, synced.
//!
//! The texts are those of the snapshot that shows what the store runs, so they cannot drift from it.

use std::hint::black_box;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Row, params};

use crate::{Options, Result, Window, Work};

const SNAPSHOT: &str =
    include_str!("../../src/sql/snapshots/treeline_storage__sql__tests__statements_sqlite.snap");

const BEGIN: &str = "BEGIN IMMEDIATE";
const COMMIT: &str = "COMMIT";

/// Columns of `resolve_3` and `resolve_4`: three a level, then kind, version, name, payload.
const METALAKE_ID: usize = 0;
const SCHEMA_ID: usize = 6;
const MODEL_ID: usize = 9;
const VERSION: usize = 13;
const PAYLOAD: usize = 15;

/// The columns of the lock on a parent that a create looks at.
const PARENT_NAME: usize = 1;
const PARENT_IN_USE: usize = 2;
const NOW_MS: usize = 4;

/// As the load generator has planted it.
const CATALOG: &str = "models";
const SCHEMA: &str = "s";
const COUNTER: &str = r#""counter":""#;

/// Who the audit and the feed say it was.
const ACTOR: &str = "raw";

/// What one turn of the work runs, in order.
pub(crate) fn statements(work: Work) -> Result<Vec<&'static str>> {
    Ok(match work {
        Work::Read => vec![text("resolve_4")?],
        Work::Create => vec![
            BEGIN,
            text("lock_parent_shared")?,
            text("insert_entity")?,
            text("insert_feed")?,
            COMMIT,
        ],
        Work::Update => vec![
            BEGIN,
            text("resolve_4")?,
            text("update_entity")?,
            text("insert_feed")?,
            COMMIT,
        ],
        Work::Hot => return Err("one row for all is not measured on SQLite, which has one writer".into()),
    })
}

/// The text of a statement as the store runs it.
fn text(name: &str) -> Result<&'static str> {
    let mut lines = SNAPSHOT.lines().skip_while(|line| *line != name);
    let text = lines
        .nth(1)
        .ok_or_else(|| format!("the store has no statement `{name}`"))?;
    Ok(text.trim_start())
}

/// Runs the work for the time that was asked for, and answers how often it was done.
pub(crate) fn run(options: &Options, file: &Path) -> Result<u32> {
    let window = Window::new(options.duration);
    match options.work {
        Work::Read => thread::scope(|scope| {
            let readers: Vec<_> = (0..options.clients)
                .map(|_| scope.spawn(|| read(options, file, window)))
                .collect();
            let mut count = 0;
            for reader in readers {
                count += reader.join().map_err(|_| "a reader panicked")??;
            }
            Ok(count)
        }),
        Work::Create => create(options, file, window),
        Work::Update => update(options, file, window),
        Work::Hot => statements(Work::Hot).map(|_| 0),
    }
}

/// With the settings of the store's own connections.
fn open(file: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    connection.pragma_update(None, "trusted_schema", "OFF")?;
    connection.pragma_update(None, "cache_size", -8_192)?;
    connection.pragma_update(None, "mmap_size", 256 << 20)?;
    Ok(connection)
}

fn read(options: &Options, file: &Path, window: Window) -> Result<u32> {
    let connection = open(file)?;
    let mut resolve = connection.prepare(text("resolve_4")?)?;
    let columns = resolve.column_count();
    repeat(window, |_| {
        let name = format!("m{}", fastrand::usize(0..options.rows));
        let path = params![
            "catalog",
            CATALOG,
            "schema",
            SCHEMA,
            "model",
            name,
            options.metalake
        ];
        resolve.query_one(path, |row| {
            for column in 0..columns {
                black_box(row.get_ref(column)?);
            }
            Ok(())
        })?;
        Ok(())
    })
}

fn create(options: &Options, file: &Path, window: Window) -> Result<u32> {
    let connection = open(file)?;
    let above = params!["catalog", CATALOG, "schema", SCHEMA, options.metalake];
    let ids = |row: &Row<'_>| Ok((row.get::<_, i64>(METALAKE_ID)?, row.get::<_, i64>(SCHEMA_ID)?));
    let (metalake_id, schema_id) = connection.query_one(text("resolve_3")?, above, ids)?;
    let any = params![
        "catalog",
        CATALOG,
        "schema",
        SCHEMA,
        "model",
        "m0",
        options.metalake
    ];
    let payload: String = connection.query_one(text("resolve_4")?, any, |row| row.get(PAYLOAD))?;

    let mut begin = connection.prepare(BEGIN)?;
    let mut lock_parent = connection.prepare(text("lock_parent_shared")?)?;
    let mut insert = connection.prepare(text("insert_entity")?)?;
    let mut append = connection.prepare(text("insert_feed")?)?;
    let mut commit = connection.prepare(COMMIT)?;
    let mut last_id = 0;
    repeat(window, |count| {
        let name = format!("{}-{count}", options.tag);
        begin.execute([])?;
        let now_ms: i64 = lock_parent.query_one([schema_id], |row| {
            let in_place = row.get_ref(PARENT_NAME)?.as_str()? == SCHEMA && row.get(PARENT_IN_USE)?;
            assert!(in_place, "nobody else changes the parent");
            row.get(NOW_MS)
        })?;
        last_id = next_id(now_ms, last_id);
        let row = params![
            last_id,
            "model",
            schema_id,
            metalake_id,
            name,
            None::<&str>,
            payload,
            ACTOR,
            now_ms
        ];
        insert.execute(row)?;
        let path = feed_path(&options.metalake, &name);
        append.execute(params![last_id, "model", path, "create", 1, ACTOR, name])?;
        commit.execute([])?;
        Ok(())
    })
}

fn update(options: &Options, file: &Path, window: Window) -> Result<u32> {
    let connection = open(file)?;
    let mut begin = connection.prepare(BEGIN)?;
    let mut resolve = connection.prepare(text("resolve_4")?)?;
    let mut set = connection.prepare(text("update_entity")?)?;
    let mut append = connection.prepare(text("insert_feed")?)?;
    let mut commit = connection.prepare(COMMIT)?;
    repeat(window, |count| {
        let name = format!("m{}", fastrand::usize(0..options.rows));
        begin.execute([])?;
        let path = params![
            "catalog",
            CATALOG,
            "schema",
            SCHEMA,
            "model",
            name,
            options.metalake
        ];
        let (id, version, payload) = resolve.query_one(path, |row| {
            let payload: String = row.get(PAYLOAD)?;
            Ok((row.get::<_, i64>(MODEL_ID)?, row.get::<_, i64>(VERSION)?, payload))
        })?;
        let payload = with_counter(&payload, count)?;
        let matched = set.execute(params![1, payload, ACTOR, id, version])?;
        if matched != 1 {
            return Err("a row has changed under its only writer".into());
        }
        let path = feed_path(&options.metalake, &name);
        let request = format!("{}-{count}", options.tag);
        append.execute(params![id, "model", path, "alter", version + 1, ACTOR, request])?;
        commit.execute([])?;
        Ok(())
    })
}

/// Runs one turn after the other until the time is over, and counts those of the window.
fn repeat(window: Window, mut turn: impl FnMut(u64) -> Result<()>) -> Result<u32> {
    let mut counted = 0;
    for count in 0.. {
        turn(count)?;
        match window.count() {
            Some(one) => counted += one,
            None => break,
        }
    }
    Ok(counted)
}

/// Ids as the store makes them, from the database's own clock; one behind the last where a millisecond has several.
/// The node part is a server's with one chance in a thousand, and none writes while this runs.
fn next_id(now_ms: i64, last: i64) -> i64 {
    const EPOCH_MS: i64 = 1_704_067_200_000;
    const NODE: i64 = 1_023 << 12;
    (((now_ms - EPOCH_MS) << 22) | NODE).max(last + 1)
}

fn feed_path(metalake: &str, name: &str) -> String {
    format!(r#"["{metalake}","{CATALOG}","{SCHEMA}","{name}"]"#)
}

/// The payload with another value of the property that updates set; all values have one length.
fn with_counter(payload: &str, count: u64) -> Result<String> {
    let start = payload.find(COUNTER).ok_or("a planted row has no counter")? + COUNTER.len();
    let value = format!("{count:012}");
    let rest = payload
        .get(start + value.len()..)
        .ok_or("a counter is too short")?;
    Ok(format!("{}{value}{rest}", &payload[..start]))
}
