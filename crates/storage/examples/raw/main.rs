//! The statements of the store, run as fast as the driver can, without the store: the yardstick that
//! `cargo xtask bench` holds the server against.
//!
//! It works on a database that a server has made and the load generator has planted. What it writes is what the
//! store would write, feed row included, so `treeline check` finds nothing afterwards. It lives here because only
//! this crate names a database driver. `sqlite` is the yardstick of the embedded database; `postgres` stands in for
//! `pgbench` where that is not installed.
#![expect(
    clippy::print_stdout,
    reason = "the rate on the standard output is its result"
)]

mod postgres;
mod sqlite;

use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// As long as the load generator's.
const WARM_UP: Duration = Duration::from_millis(500);

const USAGE: &str = "raw WORK --database URL --metalake NAME [--clients N] [--seconds N] [--rows N] [--tag WORD] \
                     [--script FILE] [--payload TEXT]; or raw show WORK; WORK is read, create, update or hot";

/// What is done again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// One row by its path of four names.
    Read,
    /// One row of a new name under one parent.
    Create,
    /// One row read by its path and written under the version that was read.
    Update,
    /// The same, on one row for all.
    Hot,
}

/// The whole command line.
#[derive(Debug)]
struct Options {
    work: Work,
    database: String,
    metalake: String,
    clients: usize,
    duration: Duration,
    rows: usize,
    /// Part of every name that this run creates.
    tag: String,
    /// For PostgreSQL: the statements, as a script of `pgbench`.
    script: PathBuf,
    /// For PostgreSQL: what a new row keeps.
    payload: String,
}

/// When the counting begins and ends.
#[derive(Clone, Copy, Debug)]
struct Window {
    begin: Instant,
    end: Instant,
}

impl Window {
    fn new(duration: Duration) -> Window {
        let begin = Instant::now() + WARM_UP;
        Window {
            begin,
            end: begin + duration,
        }
    }

    /// What one more that ended now adds to the count; none once the time is over.
    fn count(self) -> Option<u32> {
        let now = Instant::now();
        (now < self.end).then(|| u32::from(now >= self.begin))
    }
}

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1).peekable();
    if words.next_if(|word| word == "show").is_some() {
        for statement in sqlite::statements(work(words.next())?)? {
            println!("{statement};");
        }
        return Ok(());
    }
    let options = parse(words)?;
    let count = match options.database.strip_prefix("sqlite:") {
        Some(file) => sqlite::run(&options, file.as_ref())?,
        None => postgres::run(&options)?,
    };
    println!("{:.1}", f64::from(count) / options.duration.as_secs_f64());
    Ok(())
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Options> {
    let mut options = Options {
        work: work(words.next())?,
        database: String::new(),
        metalake: String::new(),
        clients: 1,
        duration: Duration::from_secs(1),
        rows: 1_000,
        tag: "raw".to_owned(),
        script: PathBuf::new(),
        payload: String::new(),
    };
    while let Some(option) = words.next() {
        let value = words.next().ok_or(USAGE)?;
        match option.as_str() {
            "--database" => options.database = value,
            "--metalake" => options.metalake = value,
            "--clients" => options.clients = value.parse()?,
            "--seconds" => options.duration = Duration::from_secs_f64(value.parse()?),
            "--rows" => options.rows = value.parse()?,
            "--tag" => options.tag = value,
            "--script" => options.script = value.into(),
            "--payload" => options.payload = value,
            _ => return Err(USAGE.into()),
        }
    }
    if options.clients == 0 || options.rows < options.clients {
        return Err("there must be a client, and a row for each".into());
    }
    Ok(options)
}

fn work(word: Option<String>) -> Result<Work> {
    match word.as_deref() {
        Some("read") => Ok(Work::Read),
        Some("create") => Ok(Work::Create),
        Some("update") => Ok(Work::Update),
        Some("hot") => Ok(Work::Hot),
        Some(_) | None => Err(USAGE.into()),
    }
}
