//! The end-to-end suite of `tests/python`: the published client, in an environment of its own, against the built
//! server.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::workspace::Workspace;
use crate::{command, server};

const REQUIREMENTS: &str = "tests/python/requirements.txt";

/// The oldest that the client supports.
const OLDEST: (u32, u32) = (3, 10);

/// Builds the server and runs pytest with these arguments (the whole suite without any).
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let environment = environment(workspace)?;
    let binary = server::build(workspace)?;
    let mut pytest = Command::new(program(&environment, "python"));
    pytest
        .args(["-m", "pytest"])
        .args(arguments)
        .current_dir(workspace.root.join("tests/python"));
    command::run(
        pytest
            .env(server::BINARY_VARIABLE, binary)
            .env("PYTHONDONTWRITEBYTECODE", "1"),
    )
}

/// The virtual environment with what the requirements name, made where it is missing or outdated. Its stamp holds
/// all that it was made from and is written last, so an installation that was cut off is done again.
pub(crate) fn environment(workspace: &Workspace) -> Result<PathBuf> {
    let python = interpreter()?;
    let requirements = std::fs::read_to_string(workspace.root.join(REQUIREMENTS))
        .with_context(|| format!("cannot read {REQUIREMENTS}"))?;
    let version = command::output(Command::new(&python).args(["-c", "import sys; print(sys.version)"]))?;
    let wanted = format!("{version}{requirements}");
    let environment = workspace.target.join("venv");
    let stamp = environment.join("made-from");
    if std::fs::read_to_string(&stamp).is_ok_and(|made_from| made_from == wanted) {
        return Ok(environment);
    }
    println!("making a Python environment in {}", environment.display());
    if environment.exists() {
        std::fs::remove_dir_all(&environment).context("cannot remove the outdated Python environment")?;
    }
    std::fs::create_dir_all(&workspace.target)?;
    command::run(Command::new(&python).args(["-m", "venv"]).arg(&environment))?;
    let mut install = Command::new(program(&environment, "python"));
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--requirement",
    ]);
    command::run(install.arg(workspace.root.join(REQUIREMENTS)))?;
    std::fs::write(stamp, wanted).context("cannot write the stamp of the Python environment")?;
    Ok(environment)
}

/// A program of the environment.
pub(crate) fn program(environment: &Path, name: &str) -> PathBuf {
    let directory = if cfg!(windows) { "Scripts" } else { "bin" };
    environment
        .join(directory)
        .join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

/// The Python to make the environment with, or what is missing and how to get it.
fn interpreter() -> Result<String> {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let (major, minor) = OLDEST;
    let recent = format!("import sys; sys.exit(sys.version_info < ({major}, {minor}))");
    if !command::succeeds(Command::new(&python).arg("--version")) {
        bail!(
            "cannot start `{python}`: install CPython {major}.{minor} or newer (on Debian: apt-get install python3 \
             python3-venv), or name one in the variable PYTHON"
        );
    }
    if !command::succeeds(Command::new(&python).args(["-c", &recent])) {
        bail!(
            "`{python}` is older than {major}.{minor}, which the client asks for; name a newer one in PYTHON"
        );
    }
    if !command::succeeds(Command::new(&python).args(["-c", "import venv, ensurepip"])) {
        bail!("`{python}` cannot make virtual environments (on Debian: apt-get install python3-venv)");
    }
    Ok(python)
}
