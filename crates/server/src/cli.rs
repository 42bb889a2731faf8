//! The command line of `treeline`.

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tokio_util::sync::CancellationToken;

use crate::config::{Config, Options};
use crate::serve::{Server, database_error, prepare_data_dir};
use crate::{logging, wiring};

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("TREELINE_GIT_COMMIT"), ")");

/// A metadata catalog server
#[derive(Debug, Parser)]
#[command(name = "treeline", version = VERSION)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    options: Options,
    /// Where tests drive this test build
    #[cfg(feature = "test-hooks")]
    #[arg(long, env = "TREELINE_TEST_LISTEN", global = true)]
    test_listen: Option<String>,
    /// How far the clock of this test build is off, in milliseconds
    #[cfg(feature = "test-hooks")]
    #[arg(long, global = true, default_value_t = 0, allow_negative_numbers = true)]
    test_clock_skew_ms: i64,
    /// A sync point that holds this test build up on its way to serve
    #[cfg(feature = "test-hooks")]
    #[arg(long, global = true)]
    test_hold: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Subcommand)]
enum Command {
    /// Serves the catalog (what happens without a command)
    #[default]
    Serve,
    /// Upgrades the database to the schema of this program
    Migrate,
    /// Audits the database and prints what is wrong, a line each; exits with 1 if anything is
    Check {
        /// Prints every row as a JSON line instead
        #[arg(long)]
        dump: bool,
    },
    /// Purges dropped rows past retention
    Gc,
}

/// Runs `treeline` with the arguments of this process.
pub fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            // There is nobody left to tell if even this cannot be written.
            let _ = writeln!(std::io::stderr().lock(), "treeline: {error}");
            ExitCode::FAILURE
        }
    }
}

type Failure = Box<dyn std::error::Error>;

fn run(cli: Cli) -> Result<ExitCode, Failure> {
    #[cfg(feature = "test-hooks")]
    crate::hooks::remember(cli.test_listen, cli.test_clock_skew_ms, cli.test_hold.as_deref());
    let config = Config::load(cli.options)?;
    logging::install(&config.log_level, config.log_format)?;
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(config.worker_threads)
        .thread_name("treeline")
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(async {
        match cli.command.unwrap_or_default() {
            Command::Serve => serve(&config).await,
            Command::Migrate => migrate(&config).await,
            Command::Check { dump: false } => check(&config).await,
            Command::Check { dump: true } => dump(&config).await,
            Command::Gc => gc(&config).await,
        }
    });
    // What blocks a thread now is bounded work on files; the process ends with it or without it.
    runtime.shutdown_background();
    outcome
}

async fn serve(config: &Config) -> Result<ExitCode, Failure> {
    #[cfg(feature = "test-hooks")]
    crate::hooks::listen().await?;
    let server = Server::open(config).await?;
    #[cfg(feature = "test-hooks")]
    crate::hooks::attach(server.dispatcher().clone());
    let address = server.address()?;
    tracing::info!(%address, database = %config.database, version = VERSION, "treeline listens");
    let stop = CancellationToken::new();
    tokio::spawn(stop_on_signal(stop.clone()));
    server.run(stop).await;
    Ok(ExitCode::SUCCESS)
}

/// The first signal begins the shutdown, a second one ends the process.
async fn stop_on_signal(stop: CancellationToken) {
    let Ok(signal) = next_signal().await else { return };
    tracing::info!(signal, "shutting down; requests in flight are finished first");
    stop.cancel();
    if next_signal().await.is_ok() {
        tracing::warn!("a second signal; the server ends at once");
        std::process::exit(1);
    }
}

#[cfg(unix)]
async fn next_signal() -> std::io::Result<&'static str> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => Ok("SIGTERM"),
        _ = interrupt.recv() => Ok("SIGINT"),
    }
}

#[cfg(not(unix))]
async fn next_signal() -> std::io::Result<&'static str> {
    tokio::signal::ctrl_c().await.map(|()| "Ctrl-C")
}

async fn migrate(config: &Config) -> Result<ExitCode, Failure> {
    prepare_data_dir(config)?;
    let report = wiring::migrate(config)
        .await
        .map_err(|error| database_error(config, &error))?;
    let told = if report.from == report.to {
        format!("the schema is at {} already", report.to)
    } else {
        format!("the schema went from {} to {}", report.from, report.to)
    };
    say(&told)?;
    Ok(ExitCode::SUCCESS)
}

async fn check(config: &Config) -> Result<ExitCode, Failure> {
    let findings = wiring::check(config)
        .await
        .map_err(|error| database_error(config, &error))?;
    if findings.is_empty() {
        say("the database is clean")?;
        return Ok(ExitCode::SUCCESS);
    }
    for finding in findings {
        say(&finding.to_string())?;
    }
    Ok(ExitCode::FAILURE)
}

async fn dump(config: &Config) -> Result<ExitCode, Failure> {
    let rows = wiring::dump(config)
        .await
        .map_err(|error| database_error(config, &error))?;
    std::io::stdout().lock().write_all(rows.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

async fn gc(config: &Config) -> Result<ExitCode, Failure> {
    let purged = wiring::gc(config)
        .await
        .map_err(|error| database_error(config, &error))?;
    say(&format!("{purged} dropped rows were purged"))?;
    Ok(ExitCode::SUCCESS)
}

fn say(line: &str) -> std::io::Result<()> {
    writeln!(std::io::stdout().lock(), "{line}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> Cli {
        Cli::try_parse_from(line.split(' ')).unwrap()
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn serving_is_what_happens_without_a_command() {
        assert_eq!(parse("treeline").command, None);
        assert_eq!(parse("treeline serve").command, Some(Command::Serve));
        assert_eq!(Command::default(), Command::Serve);
    }

    #[test]
    fn options_stand_before_or_after_the_command() {
        for line in ["treeline --listen a:1 serve", "treeline serve --listen a:1"] {
            assert_eq!(parse(line).options.listen.as_deref(), Some("a:1"), "{line}");
        }
        let roots = parse("treeline --allowed-roots /a,/b")
            .options
            .allowed_roots
            .unwrap();
        assert_eq!(roots, [std::path::PathBuf::from("/a"), "/b".into()]);
        assert!(Cli::try_parse_from(["treeline", "check", "--dump", "--data-dir", "x"]).is_ok());
    }

    #[test]
    fn every_option_has_its_flag_and_its_variable_under_one_name() {
        const WITHOUT_A_VARIABLE: [&str; 2] = ["test_clock_skew_ms", "test_hold"];
        let command = Cli::command();
        let options = command
            .get_arguments()
            .filter(|argument| !WITHOUT_A_VARIABLE.contains(&argument.get_id().as_str()));
        let mut seen = 0;
        for option in options {
            let name = option.get_id().as_str();
            assert_eq!(option.get_long().unwrap().replace('-', "_"), name);
            let variable = format!("TREELINE_{}", name.to_uppercase());
            let given = option.get_env().and_then(std::ffi::OsStr::to_str);
            assert_eq!(given, Some(variable.as_str()));
            seen += 1;
        }
        assert!(seen > 20, "only {seen} options");
    }
}
