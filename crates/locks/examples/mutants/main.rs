//! Switches the rules of this crate off, one at a time, and shows what notices.
//!
//! `cargo run -p treeline-locks --example mutants` takes a copy of the crate, changes a line or two of it, and runs
//! the tests and, where they see nothing, the two model checkers. It fails when a mutant survives. `-- --all` runs
//! every tool on every mutant and prints who sees what; `-- NAME` takes only the mutants whose names hold this text.

#![expect(clippy::print_stdout, reason = "a program for the terminal")]
#![expect(clippy::unwrap_used, reason = "a program that cannot go on should say where")]

mod list;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use list::{MUTANTS, Mutant};

/// A mutant may make its test wait for ever; no test that passes takes a tenth of this.
const RUN_MAX: Duration = Duration::from_secs(240);

/// Name, the cfg of its build, and what to pass to its tests. The long tests would only make the list slow.
const TOOLS: [(&str, &str, &[&str]); 3] = [
    (
        "tests",
        "",
        &[
            "--lib",
            "--test",
            "suite",
            "--",
            "--skip",
            "hundred_thousand",
            "--skip",
            "storm",
        ],
    ),
    ("loom", "--cfg loom", &["--lib"]),
    ("shuttle", "--cfg shuttle", &["--lib"]),
];

struct Workshop {
    /// The copy that is changed.
    krate: PathBuf,
    target: PathBuf,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let all = arguments.iter().any(|argument| argument == "--all");
    let named = |mutant: &&Mutant| {
        let mut names = arguments
            .iter()
            .filter(|argument| !argument.starts_with("--"))
            .peekable();
        names.peek().is_none() || names.any(|name| mutant.name.contains(name.as_str()))
    };
    let mutants: Vec<&Mutant> = MUTANTS.iter().filter(named).collect();
    let workshop = Workshop::open();
    println!("unchanged:");
    for (tool, ..) in TOOLS {
        let Verdict { caught_by, took } = workshop.run(tool);
        println!(
            "  {tool:8} {} in {:.1} s",
            caught_by.as_deref().unwrap_or("passes"),
            took.as_secs_f64()
        );
        if caught_by.is_some() {
            return ExitCode::FAILURE;
        }
    }
    println!("{} mutants:", mutants.len());
    let survivors: Vec<&str> = mutants
        .iter()
        .filter(|mutant| !workshop.try_out(mutant, all))
        .map(|mutant| mutant.name)
        .collect();
    println!("{} of {} caught", mutants.len() - survivors.len(), mutants.len());
    if survivors.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("survived: {}", survivors.join(", "));
    ExitCode::FAILURE
}

struct Verdict {
    caught_by: Option<String>,
    took: Duration,
}

impl Workshop {
    /// Copies the crate into a workspace of its own below the target directory.
    fn open() -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = source.join("../..");
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let copy = target.join("locks-mutants");
        let _ = fs::remove_dir_all(&copy);
        copy_folder(source, &copy.join("crates/locks"));
        let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
        let alone = manifest.lines().map(|line| match line.split(' ').next() {
            Some("members") => "members = [\"crates/locks\"]",
            Some("default-members") => "",
            _ => line,
        });
        fs::write(copy.join("Cargo.toml"), alone.collect::<Vec<_>>().join("\n")).unwrap();
        fs::copy(root.join("Cargo.lock"), copy.join("Cargo.lock")).unwrap();
        Self {
            krate: copy.join("crates/locks"),
            target,
        }
    }

    /// Whether any tool catches it. Prints a line.
    fn try_out(&self, mutant: &Mutant, all: bool) -> bool {
        print!("  {:24} {:72}", mutant.name, mutant.says);
        let _ = std::io::stdout().flush();
        let originals = self.mutate(mutant);
        let mut caught = Vec::new();
        for (tool, ..) in TOOLS {
            let Verdict { caught_by, took } = self.run(tool);
            if let Some(by) = caught_by {
                caught.push(format!("{tool}: {by} ({:.0} s)", took.as_secs_f64()));
                if !all {
                    break;
                }
            }
        }
        for (path, text) in originals {
            fs::write(path, text).unwrap();
        }
        println!(
            " {}",
            if caught.is_empty() {
                "SURVIVES".to_owned()
            } else {
                caught.join("; ")
            }
        );
        !caught.is_empty()
    }

    /// Changes the copy and returns what it was.
    fn mutate(&self, mutant: &Mutant) -> Vec<(PathBuf, String)> {
        let mut originals = Vec::new();
        for (file, find, replace) in mutant.edits {
            let path = self.krate.join("src").join(file);
            let text = fs::read_to_string(&path).unwrap();
            assert_eq!(
                text.matches(find).count(),
                1,
                "{} no longer fits {file}: {find}",
                mutant.name
            );
            fs::write(&path, text.replacen(find, replace, 1)).unwrap();
            originals.push((path, text));
        }
        // The last change of a file is undone first.
        originals.reverse();
        originals
    }

    fn run(&self, tool: &str) -> Verdict {
        let (name, cfg, arguments) = TOOLS.into_iter().find(|(name, ..)| *name == tool).unwrap();
        let target = if cfg.is_empty() {
            self.target.clone()
        } else {
            self.target.join(name)
        };
        let log = self.krate.join("run.log");
        let out = fs::File::create(&log).unwrap();
        let from = Instant::now();
        let mut child = Command::new(env!("CARGO"))
            .args(["test", "--quiet", "-p", "treeline-locks"])
            .args(arguments)
            .current_dir(&self.krate)
            .env("CARGO_TARGET_DIR", target)
            .env("RUSTFLAGS", cfg)
            .env("RUST_BACKTRACE", "0")
            .env("TREELINE_LOCKS_SCHEDULES", "500")
            .env("PROPTEST_CASES", "500")
            .stdout(out.try_clone().unwrap())
            .stderr(Stdio::from(out))
            .spawn()
            .unwrap();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if from.elapsed() > RUN_MAX {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        let text = fs::read_to_string(&log).unwrap_or_default();
        assert!(
            !text.contains("could not compile"),
            "a mutant must compile:\n{text}"
        );
        let caught_by = match status {
            Some(status) if status.success() => None,
            Some(_) => Some(first_failure(&text)),
            None => Some("it stalls".to_owned()),
        };
        Verdict {
            caught_by,
            took: from.elapsed(),
        }
    }
}

/// The name of the first test that failed, from the list at the end of the runner's output.
fn first_failure(text: &str) -> String {
    let list = text.rsplit("failures:\n").next().unwrap_or_default();
    let name = list.lines().map(str::trim).find(|line| line.contains("::"));
    let name = name
        .and_then(|name| name.rsplit("::").next())
        .unwrap_or("the run aborts");
    // A panic while panicking ends the run before there is a list; then the panic's own line has the name.
    name.split('\'').next().unwrap_or(name).to_owned()
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
