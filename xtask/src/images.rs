//! The container images of the tests with several servers: `cargo xtask images`.
//!
//! Each is made from its directory under `tests/images`, from Debian's packages alone, because a test machine need
//! not reach a registry. An image is tagged with a digest of its recipe, so one that is there is never made again
//! and a changed recipe is never missed. Where a registry can be reached, `--official` takes the published images.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::command;
use crate::workspace::Workspace;

/// The recipes are the directories below it.
const RECIPES: &str = "tests/images";

/// Every image of ours is called this, a slash and the name of its recipe.
const REPOSITORY: &str = "treeline-test";

/// What the other images stand on. It has a script instead of a Dockerfile.
const BASE: &str = "base";

/// The recipes in the order in which they are made, each with the published image that can stand in for it.
const IMAGES: &[(&str, &str)] = &[
    (BASE, "debian:bookworm-slim"),
    ("postgres", "postgres:15"),
    ("mariadb", "mariadb:10.11"),
    ("mysql", "mysql:9"),
];

/// Asks every command that needs images for the published ones, as `--official` asks this command.
const SOURCE_VARIABLE: &str = "TREELINE_IMAGES";

/// Images of servers that nobody uses are removed at this age: every build of the server makes one.
const SERVER_IMAGES_KEPT: &str = "until=24h";

const USAGE: &str = "cargo xtask images [--official] [--list] [--server BINARY] [NAME …]";

/// Makes what is missing, then prints the name, the tag and the size of each image.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let mut source = Source::wanted()?;
    let (mut only_list, mut server_binary, mut names) = (false, None, Vec::new());
    let mut rest = arguments.iter().map(String::as_str);
    while let Some(argument) = rest.next() {
        match argument {
            "--official" => source = Source::Official,
            "--list" => only_list = true,
            "--server" => server_binary = Some(rest.next().context(USAGE)?),
            option if option.starts_with('-') => bail!("there is no option `{option}`: {USAGE}"),
            name => names.push(name),
        }
    }
    if names.is_empty() {
        names = IMAGES.iter().map(|(name, _)| *name).collect();
    }
    let mut tags = BTreeMap::new();
    for name in names {
        let tag = if only_list {
            source.tag(workspace, name)?
        } else {
            source.provide(workspace, name)?
        };
        tags.insert(name.to_owned(), tag);
    }
    if let Some(binary) = server_binary {
        tags.insert(
            "treeline".to_owned(),
            source.server(workspace, Path::new(binary))?,
        );
    }
    let sizes = sizes()?;
    for (name, tag) in tags {
        let size = sizes.get(&tag).map_or("not there", String::as_str);
        println!("{name:<10}{tag:<42}{size:>10}");
    }
    Ok(())
}

/// Makes those of these images that are missing, and answers the tag of each.
#[expect(dead_code, reason = "the command that starts the containers is its caller")]
pub(crate) fn ensure(workspace: &Workspace, names: &[&str]) -> Result<BTreeMap<String, String>> {
    let source = Source::wanted()?;
    let provide = |name: &&str| Ok(((*name).to_owned(), source.provide(workspace, name)?));
    names.iter().map(provide).collect()
}

/// The tag of an image that holds this binary of the server, which must run on the base image's C library.
#[expect(dead_code, reason = "the command that starts the containers is its caller")]
pub(crate) fn server(workspace: &Workspace, binary: &Path) -> Result<String> {
    Source::wanted()?.server(workspace, binary)
}

/// Where images come from.
#[derive(Clone, Copy)]
enum Source {
    Recipes,
    Official,
}

impl Source {
    fn wanted() -> Result<Source> {
        match std::env::var(SOURCE_VARIABLE).as_deref() {
            Err(_) | Ok("" | "recipes") => Ok(Source::Recipes),
            Ok("official") => Ok(Source::Official),
            Ok(other) => bail!("{SOURCE_VARIABLE} is `{other}`; it may be `recipes` or `official`"),
        }
    }

    fn tag(self, workspace: &Workspace, name: &str) -> Result<String> {
        let known = IMAGES.iter().find(|(image, _)| *image == name);
        let Some((_, official)) = known else {
            let names: Vec<&str> = IMAGES.iter().map(|(name, _)| *name).collect();
            bail!("there is no image `{name}`; there are {}", names.join(", "));
        };
        match self {
            Source::Official => Ok((*official).to_owned()),
            Source::Recipes => recipe_tag(&workspace.root.join(RECIPES), name),
        }
    }

    fn provide(self, workspace: &Workspace, name: &str) -> Result<String> {
        let tag = self.tag(workspace, name)?;
        if sizes()?.contains_key(&tag) {
            return Ok(tag);
        }
        let begun = Instant::now();
        match self {
            Source::Official => pull(&tag)?,
            Source::Recipes => {
                let recipe = workspace.root.join(RECIPES).join(name);
                if name == BASE {
                    make_base(&recipe, &tag)?;
                } else {
                    let base = self.provide(workspace, BASE)?;
                    println!("making {tag}, which takes a minute");
                    build(&recipe, &base, &["--tag", &tag])?;
                }
            }
        }
        println!(
            "{tag} is there after {:.0?}",
            begun.elapsed().max(Duration::from_secs(1))
        );
        Ok(tag)
    }

    /// The build cache knows the binary by its content, and the image's own id becomes its tag.
    fn server(self, workspace: &Workspace, binary: &Path) -> Result<String> {
        let base = self.provide(workspace, BASE)?;
        let context = workspace.target.join("images/treeline");
        std::fs::create_dir_all(&context)?;
        std::fs::copy(
            workspace.root.join(RECIPES).join("treeline/Dockerfile"),
            context.join("Dockerfile"),
        )?;
        std::fs::copy(binary, context.join("treeline"))
            .with_context(|| format!("cannot read the server's binary {}", binary.display()))?;
        // Before the build, or an old image that the cache answers would be removed while it is wanted.
        let age = [
            "--filter",
            "label=treeline=server",
            "--filter",
            SERVER_IMAGES_KEPT,
        ];
        command::output(docker().args(["image", "prune", "--all", "--force"]).args(age))?;
        let id = build(&context, &base, &[])?;
        let digest = id.trim().trim_start_matches("sha256:");
        let tag = format!(
            "{REPOSITORY}/treeline:{}",
            digest.get(..16).context("docker build printed no id")?
        );
        command::output(docker().args(["tag", id.trim(), &tag]))?;
        Ok(tag)
    }
}

/// The digest covers the names and the contents of the recipe's files, and through its tag the base image.
fn recipe_tag(recipes: &Path, name: &str) -> Result<String> {
    let recipe = recipes.join(name);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&recipe).with_context(|| format!("cannot read {}", recipe.display()))? {
        let entry = entry?;
        files.push((
            entry.file_name().into_encoded_bytes(),
            std::fs::read(entry.path())?,
        ));
    }
    files.sort();
    let base = if name == BASE {
        String::new()
    } else {
        recipe_tag(recipes, BASE)?
    };
    let parts = files
        .iter()
        .flat_map(|(file, text)| [file.as_slice(), text.as_slice()]);
    let digest = digest(std::iter::once(base.as_bytes()).chain(parts));
    Ok(format!("{REPOSITORY}/{name}:{digest:016x}"))
}

/// FNV-1a: the same on every machine and for every compiler, and an accident is all that it must tell apart.
fn digest<'a>(parts: impl Iterator<Item = &'a [u8]>) -> u64 {
    let step = |digest: u64, byte: &u8| (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    // A byte between two parts that no text has: moving text from one part to the next is a change.
    parts.fold(0xcbf2_9ce4_8422_2325, |digest, part| {
        part.iter().chain(&[0xff]).fold(digest, step)
    })
}

fn make_base(recipe: &Path, tag: &str) -> Result<()> {
    let root = command::output(Command::new("id").arg("-u"))?.trim() == "0";
    ensure!(
        root,
        "only root can make the base image, with debootstrap: run `cargo xtask images` as root once, or set \
         {SOURCE_VARIABLE}=official where a registry can be reached"
    );
    if !command::succeeds(Command::new("debootstrap").arg("--version")) {
        println!("installing debootstrap, which makes the base image, with apt-get");
        install("debootstrap").context(
            "debootstrap is missing, which makes the base image: install Debian's package `debootstrap`",
        )?;
    }
    println!("making {tag}, which takes half a minute");
    command::output(Command::new("sh").arg(recipe.join("build.sh")).arg(tag))?;
    Ok(())
}

fn install(package: &str) -> Result<()> {
    command::output(Command::new("apt-get").args(["-qq", "update"]))?;
    let mut apt_get = Command::new("apt-get");
    apt_get.args(["-qq", "-y", "install", package]);
    command::output(apt_get.env("DEBIAN_FRONTEND", "noninteractive"))?;
    Ok(())
}

fn pull(image: &str) -> Result<()> {
    println!("pulling {image}");
    command::output(docker().args(["pull", "--quiet", image])).with_context(|| {
        format!("cannot pull `{image}`: without a registry leave out --official and {SOURCE_VARIABLE}")
    })?;
    Ok(())
}

/// Builds a directory on a base image and answers the id of the image.
fn build(directory: &Path, base: &str, options: &[&str]) -> Result<String> {
    let mut build = docker();
    build.args([
        "build",
        "--quiet",
        "--force-rm",
        "--build-arg",
        &format!("BASE={base}"),
    ]);
    command::output(build.args(options).arg(directory))
}

/// The size of every image that Docker has, by its tag.
fn sizes() -> Result<BTreeMap<String, String>> {
    if !command::succeeds(docker().arg("--version")) {
        bail!("docker is missing: install Debian's package `docker.io`");
    }
    let format = "{{.Repository}}:{{.Tag}} {{.Size}}";
    let lines = command::output(docker().args(["images", "--format", format]))
        .context("docker does not answer: start its daemon, and let this user talk to it")?;
    let words = lines.lines().filter_map(|line| line.split_once(' '));
    Ok(words
        .map(|(tag, size)| (tag.to_owned(), size.to_owned()))
        .collect())
}

fn docker() -> Command {
    Command::new("docker")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_image_has_a_recipe_and_a_tag_of_its_own() {
        let recipes = crate::workspace::root().join(RECIPES);
        let tags = IMAGES.iter().map(|(name, _)| recipe_tag(&recipes, name).unwrap());
        assert_eq!(
            tags.collect::<std::collections::BTreeSet<_>>().len(),
            IMAGES.len()
        );
    }

    #[test]
    fn a_digest_changes_with_each_byte_and_with_where_a_part_ends() {
        let of = |parts: &[&str]| digest(parts.iter().map(|part| part.as_bytes()));
        assert_eq!(of(&["RUN a", "RUN b"]), of(&["RUN a", "RUN b"]));
        assert_ne!(of(&["RUN a", "RUN b"]), of(&["RUN a", "RUN c"]));
        assert_ne!(of(&["RUN a", "RUN b"]), of(&["RUN aR", "UN b"]));
    }
}
