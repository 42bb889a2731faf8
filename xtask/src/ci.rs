//! Everything that must pass, the cheap before the expensive, stopping at the first step that fails.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use crate::workspace::Workspace;
use crate::{command, itest, python, schemathesis, server, tidy};

/// What CI runs, and what a developer runs before a commit. The arguments are those of `itest`: a machine without Docker
/// runs all but the backends that it names with `--without`.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let takes =
        |words: &[String]| matches!(words, [option, _] if option == "--without" || option == "--backend");
    ensure!(
        arguments.chunks(2).all(takes),
        "ci takes `--backend NAME` and `--without NAME` only"
    );
    let races = itest::Plan::read(arguments)?.unwrap_or_default().in_containers();
    let backends = races.backends.clone();
    let root = &workspace.root;
    let begun = Instant::now();
    step("format", || {
        command::run(command::cargo(root).args(["fmt", "--all", "--check"]))
    })?;
    step("tidy", || tidy::run(workspace))?;
    step("clippy", || clippy(root))?;
    step("documentation", || documentation(root))?;
    step("release build of the server", || {
        server::build(workspace).map(drop)
    })?;
    step("tests", || tests(workspace))?;
    step("black-box tests, where writes take turns", || {
        api_with_local_locks(workspace)
    })?;
    step("documentation tests", || {
        command::run(command::cargo(root).args(["test", "--quiet", "--workspace", "--doc", "--locked"]))
    })?;
    step("the lock helper: left out, and in every order", || {
        lock_helper(workspace)
    })?;
    step("python client, end to end", || python::run(workspace, &[]))?;
    step("schemathesis", || schemathesis::run(workspace, &[]))?;
    let races = step("two servers: building and starting", || {
        itest::Bench::start(workspace, &races)
    })?;
    step("two servers: the storage suite", || races.conformance())?;
    step("two servers: every race, where writes take turns", || {
        races.run_races("on")
    })?;
    step("two servers: every race, where they do not", || {
        races.run_races("off")
    })?;
    step("two servers: random clients, and what they saw", || {
        races.run_history()
    })?;
    step("two servers: every rule switched off", || races.run_mutants())?;
    drop(races);
    step("two servers: random clients see that a rule is off", || {
        histories_without_rules(workspace, &backends)
    })?;
    step("two servers: a cluster, a server at each node", || {
        cluster(workspace, &backends)
    })?;
    step("two servers: what goes wrong", || faults(workspace, &backends))?;
    println!("\nall steps passed in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// One headline and one closing line a step, so that a log can be searched for either.
fn step<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("\n== {name}");
    let begun = Instant::now();
    let outcome = work();
    let verdict = if outcome.is_ok() { "passed" } else { "failed" };
    println!("== {name}: {verdict} in {:.1} s", begun.elapsed().as_secs_f64());
    outcome.with_context(|| format!("step `{name}` failed"))
}

fn clippy(root: &Path) -> Result<()> {
    let arguments = [
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ];
    command::run(command::cargo(root).args(arguments))
}

/// The suite above has it as the embedded default does: off.
fn api_with_local_locks(workspace: &Workspace) -> Result<()> {
    let mut suite = command::suite(&workspace.root, "treeline-tests", "api");
    suite
        .env(server::BINARY_VARIABLE, server::binary(workspace))
        .env(itest::LOCAL_LOCKS_VARIABLE, "on");
    command::run(&mut suite)
}

/// With the feature that makes it a no-op, and under the model checker, whose builds have a place of their own.
fn lock_helper(workspace: &Workspace) -> Result<()> {
    let cargo = || {
        let mut cargo = command::cargo(&workspace.root);
        cargo.args(["test", "--quiet", "--locked", "--package", "treeline-locks"]);
        cargo
    };
    command::run(cargo().args(["--features", "disabled", "--tests"]))?;
    let loom = workspace.target.join("loom");
    command::run(
        cargo()
            .args(["--lib", "--target-dir"])
            .arg(loom)
            .env("RUSTFLAGS", "--cfg loom"),
    )
}

/// Private items too: their comments are where most of the reasons stand, and their links rot as well.
fn documentation(root: &Path) -> Result<()> {
    let arguments = [
        "doc",
        "--quiet",
        "--workspace",
        "--no-deps",
        "--document-private-items",
        "--locked",
    ];
    command::run(
        command::cargo(root)
            .args(arguments)
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

/// The suites that drive a real server find it through `TREELINE_BIN`.
fn tests(workspace: &Workspace) -> Result<()> {
    let mut command = command::cargo(&workspace.root);
    if command::succeeds(command::cargo(&workspace.root).args(["nextest", "--version"])) {
        command.args([
            "nextest",
            "run",
            "--cargo-quiet",
            "--hide-progress-bar",
            "--status-level",
            "fail",
        ]);
        command.args(["--final-status-level", "slow"]);
    } else {
        println!("cargo-nextest is not installed: the tests run under `cargo test`");
        command.args(["test", "--quiet", "--lib", "--bins", "--tests", "--examples"]);
    }
    command.args(["--workspace", "--no-fail-fast", "--locked"]);
    command::run(command.env(server::BINARY_VARIABLE, server::binary(workspace)))
}

/// On one backend: that a rule is off shows in what clients are told, whichever it is.
fn histories_without_rules(workspace: &Workspace, backends: &[&'static str]) -> Result<()> {
    if backends.contains(&"sqlite") {
        let words = ["--backend", "sqlite", "--history", "--mutants"];
        itest::run(workspace, &words.map(str::to_owned))
    } else {
        println!("not run: it takes sqlite");
        Ok(())
    }
}

/// The suites and histories of MariaDB once more, where both servers write at nodes of their own.
fn cluster(workspace: &Workspace, backends: &[&'static str]) -> Result<()> {
    if backends.contains(&"mariadb") {
        let plan = itest::Plan::read(&["--backend", itest::GALERA].map(str::to_owned))?.unwrap_or_default();
        let cluster = itest::Bench::start(workspace, &plan)?;
        cluster.run()?;
        cluster.run_history()?;
        cluster.run_mutants()
    } else {
        println!("not run: a cluster is made of MariaDB");
        Ok(())
    }
}

/// Eight faults, each where it is felt most, and one that shows a missing rule. The others take `cargo xtask itest --faults`.
fn faults(workspace: &Workspace, backends: &[&'static str]) -> Result<()> {
    const FAULTS: [(&str, &[&str]); 5] = [
        ("mariadb", &["--fault", "server-dies-at-points"]),
        (
            "postgres",
            &[
                "--fault",
                "server-cut-off",
                "--fault",
                "database-killed",
                "--fault",
                "primary-failed-over",
                "--fault",
                "standby-killed",
            ],
        ),
        ("postgres", &["--faults", "--switch", "m-standby-probe"]),
        ("sqlite", &["--fault", "disk-full"]),
        (
            itest::GALERA,
            &["--fault", "node-killed", "--fault", "node-cut-off"],
        ),
    ];
    for (backend, faults) in FAULTS {
        let takes = itest::image(backend);
        // Without Docker nothing can be cut off; where one of its databases runs, it is there.
        if backends.contains(&takes) && backends.iter().any(|name| *name != "sqlite") {
            let words: Vec<String> = ["--backend", backend]
                .into_iter()
                .chain(faults.iter().copied())
                .map(str::to_owned)
                .collect();
            itest::run(workspace, &words)?;
        } else {
            println!("not run: {}: it takes Docker and {takes}", faults.join(" "));
        }
    }
    Ok(())
}
