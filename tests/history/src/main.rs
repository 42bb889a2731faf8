//! `treeline-history FILE` judges a history. Exit code 0: every rule holds; 1: one is broken; 2: it cannot be judged.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the verdict on the standard output is its result"
)]

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use treeline_history::{End, Simulation, Unreadable, check, check_unended, simulate};

const USAGE: &str = "\
treeline-history [--unended] FILE          judges a history, an operation a line; `-` reads the standard input;
                                           --unended takes one that may be cut off, for it has no end line
treeline-history --simulate LINES [SEED]   prints a history of a store that is right, for a try at any size";

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            match error.downcast_ref::<Unreadable>() {
                Some(unreadable) => eprintln!("unreadable: {unreadable}"),
                None => eprintln!("{error:#}"),
            }
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--simulate", lines] => print_simulated(lines, "1"),
        ["--simulate", lines, seed] => print_simulated(lines, seed),
        ["--help" | "-h"] => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        ["--unended", file] if is_file(file) => judge(file, true),
        [file] if is_file(file) => judge(file, false),
        _ => bail!(USAGE),
    }
}

fn is_file(word: &str) -> bool {
    word == "-" || !word.starts_with('-')
}

fn judge(file: &str, may_be_unended: bool) -> Result<ExitCode> {
    let input: Box<dyn BufRead> = if file == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        let opened = File::open(file).with_context(|| format!("cannot open {file}"))?;
        Box::new(BufReader::new(opened))
    };
    let verdict = if may_be_unended {
        check_unended(input)?
    } else {
        check(input)?
    };
    print!("{verdict}");
    Ok(if verdict.holds() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn print_simulated(lines: &str, seed: &str) -> Result<ExitCode> {
    let simulation = Simulation {
        seed: seed.parse().context(USAGE)?,
        operations: lines.parse().context(USAGE)?,
        clients: 16,
        unknown_percent: 1,
    };
    let mut output = BufWriter::new(std::io::stdout().lock());
    let (mut end, mut written) = (End { end: 0 }, Ok(()));
    simulate(&simulation, |operation| {
        end.end += 1;
        if written.is_ok() {
            written = serde_json::to_writer(&mut output, &operation)
                .map_err(anyhow::Error::from)
                .and_then(|()| Ok(output.write_all(b"\n")?));
        }
    });
    written?;
    writeln!(output, "{}", serde_json::to_string(&end)?)?;
    output.flush()?;
    Ok(ExitCode::SUCCESS)
}
