//! The container images of the tests with several servers: `cargo xtask images`.
//!
//! Each is made from its directory under `tests/images`, from Debian's packages alone, because a test machine need
//! not reach a registry. An image is tagged with a digest of its recipe, so one that is there is never made again
//! and a changed recipe is never missed. Where a registry can be reached, `--official` takes the published images.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};

use crate::command;
use crate::workspace::Workspace;

/// The recipes are the directories below it.
const RECIPES: &str = "tests/images";

/// Every image of ours is called this, a slash and the name of its recipe.
pub(crate) const REPOSITORY: &str = "treeline-test";

/// What the other images stand on. It has a script instead of a Dockerfile.
pub(crate) const BASE: &str = "base";

/// The recipes, each with the published image that can stand in for it.
const IMAGES: &[(&str, &str)] = &[
    (BASE, "debian:bookworm-slim"),
    ("postgres", "postgres:15"),
    ("mariadb", "mariadb:10.11"),
    ("mysql", "mysql:9"),
];

/// Asks every command that needs images for the published ones, as `--official` asks this command.
pub(crate) const SOURCE_VARIABLE: &str = "TREELINE_IMAGES";

/// Images of servers that nobody uses are removed at this age: every build of the server makes one.
const UNUSED_SERVERS: [&str; 4] = ["--filter", "label=treeline=server", "--filter", "until=24h"];

const USAGE: &str = "cargo xtask images [--official] [--list] [--server BINARY] [NAME …]";

/// Makes what is missing, then prints the name, the tag and the size of each image.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let mut images = Images::open(workspace)?;
    let (mut only_list, mut binary, mut names) = (false, None, Vec::new());
    let mut rest = arguments.iter().map(String::as_str);
    while let Some(argument) = rest.next() {
        match argument {
            "--official" => images.official = true,
            "--list" => only_list = true,
            "--server" => binary = Some(rest.next().context(USAGE)?),
            "--help" | "-h" => {
                println!("{USAGE}\n\n{RECIPES}/README.md says what each image is and how to use it.");
                return Ok(());
            }
            option if option.starts_with('-') => bail!("there is no option `{option}`: {USAGE}"),
            name => names.push(name),
        }
    }
    if names.is_empty() {
        names = IMAGES.iter().map(|(name, _)| *name).collect();
    }
    let mut tags = Vec::new();
    for name in names {
        let tag = if only_list {
            images.tag(name)?
        } else {
            images.provide(name)?
        };
        tags.push((name, tag));
    }
    if let Some(binary) = binary {
        tags.push(("treeline", images.server(Path::new(binary))?));
    }
    for (name, tag) in tags {
        let size = images.sizes.get(&tag).map_or("not there", String::as_str);
        println!("{name:<10}{tag:<42}{size:>10}");
    }
    Ok(())
}

/// Makes those of these images that are missing, and answers the tag of each.
pub(crate) fn ensure(workspace: &Workspace, names: &[&str]) -> Result<BTreeMap<String, String>> {
    let mut images = Images::open(workspace)?;
    let provide = |name: &&str| Ok(((*name).to_owned(), images.provide(name)?));
    names.iter().map(provide).collect()
}

/// What Docker has, and where to take what it lacks.
struct Images {
    recipes: PathBuf,
    scratch: PathBuf,
    official: bool,
    /// The size of every image that is there, by its tag.
    sizes: BTreeMap<String, String>,
}

impl Images {
    fn open(workspace: &Workspace) -> Result<Images> {
        let official = match std::env::var(SOURCE_VARIABLE).as_deref() {
            Err(_) | Ok("") => false,
            Ok("official") => true,
            Ok(other) => bail!("{SOURCE_VARIABLE} is `{other}`; it may be `official`, or not be set"),
        };
        Ok(Images {
            recipes: workspace.root.join(RECIPES),
            scratch: workspace.target.join("images"),
            official,
            sizes: sizes()?,
        })
    }

    fn tag(&self, name: &str) -> Result<String> {
        let Some((_, official)) = IMAGES.iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = IMAGES.iter().map(|(known, _)| *known).collect();
            bail!("there is no image `{name}`; there are {}", known.join(", "));
        };
        if self.official {
            Ok((*official).to_owned())
        } else {
            recipe_tag(&self.recipes, name)
        }
    }

    fn provide(&mut self, name: &str) -> Result<String> {
        let tag = self.tag(name)?;
        if self.sizes.contains_key(&tag) {
            return Ok(tag);
        }
        let recipe = self.recipes.join(name);
        let begun = Instant::now();
        if self.official {
            pull(&tag)?;
        } else if name == BASE {
            make_base(&recipe, &tag)?;
        } else {
            let base = self.provide(BASE)?;
            println!("making {tag}, which takes a minute or two");
            build(&recipe, &base, &["--tag", &tag])?;
        }
        println!("{tag} is there after {} s", begun.elapsed().as_secs());
        self.sizes = sizes()?;
        Ok(tag)
    }

    /// The build cache knows the binary by its content, and the image's own id becomes its tag.
    fn server(&mut self, binary: &Path) -> Result<String> {
        let base = self.provide(BASE)?;
        std::fs::create_dir_all(&self.scratch)?;
        let dockerfile = self.recipes.join("treeline/Dockerfile");
        std::fs::copy(dockerfile, self.scratch.join("Dockerfile"))?;
        std::fs::copy(binary, self.scratch.join("treeline"))
            .with_context(|| format!("cannot read the server's binary {}", binary.display()))?;
        // Before the build, or an old image that the cache answers would be removed while it is wanted.
        docker(&["image", "prune", "--all", "--force"], &UNUSED_SERVERS)?;
        let id = build(&self.scratch, &base, &[])?;
        let digest = id.trim().trim_start_matches("sha256:");
        let digest = digest.get(..16).context("docker build printed no id")?;
        let tag = format!("{REPOSITORY}/treeline:{digest}");
        docker(&["tag"], &[id.trim(), &tag])?;
        self.sizes = sizes()?;
        Ok(tag)
    }
}

/// The digest covers the names and the contents of the recipe's files, and through its tag the base image.
fn recipe_tag(recipes: &Path, name: &str) -> Result<String> {
    let recipe = recipes.join(name);
    let mut parts = vec![];
    if name != BASE {
        parts.push((b"FROM".to_vec(), recipe_tag(recipes, BASE)?.into_bytes()));
    }
    for file in std::fs::read_dir(&recipe).with_context(|| format!("cannot read {}", recipe.display()))? {
        let file = file?;
        parts.push((file.file_name().into_encoded_bytes(), std::fs::read(file.path())?));
    }
    parts.sort();
    let digest = digest(parts.iter().flat_map(|(name, text)| [&name[..], &text[..]]));
    Ok(format!("{REPOSITORY}/{name}:{digest:016x}"))
}

/// FNV-1a: the same on every machine and for every compiler, and an accident is all that it must tell apart.
fn digest<'a>(parts: impl Iterator<Item = &'a [u8]>) -> u64 {
    let step = |digest: u64, byte: &u8| (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    // A byte between two parts that no text has: moving text from one part to the next is a change.
    let add = |digest, part: &[u8]| part.iter().chain(&[0xff]).fold(digest, step);
    parts.fold(0xcbf2_9ce4_8422_2325, add)
}

fn make_base(recipe: &Path, tag: &str) -> Result<()> {
    ensure!(
        command::output(Command::new("id").arg("-u"))?.trim() == "0",
        "only root can make the base image, with debootstrap: run `cargo xtask images base` as root once, or set \
         {SOURCE_VARIABLE}=official where a registry can be reached"
    );
    if !command::succeeds(Command::new("debootstrap").arg("--version")) {
        println!("installing debootstrap, which makes the base image, with apt-get");
        let update_and_install = "apt-get -qq update && apt-get -qq -y install debootstrap";
        let mut shell = Command::new("sh");
        shell.args(["-c", update_and_install]);
        command::output(shell.env("DEBIAN_FRONTEND", "noninteractive"))
            .context("debootstrap is missing: install the package `debootstrap` of Debian")?;
    }
    println!("making {tag}, which takes half a minute");
    command::output(Command::new("sh").arg(recipe.join("build.sh")).arg(tag))?;
    Ok(())
}

fn pull(image: &str) -> Result<()> {
    println!("pulling {image}");
    docker(&["pull", "--quiet"], &[image]).with_context(|| {
        format!("cannot pull `{image}`; without a registry, leave out --official and {SOURCE_VARIABLE}")
    })?;
    Ok(())
}

/// Builds a directory on a base image and answers the id of the image.
fn build(directory: &Path, base: &str, options: &[&str]) -> Result<String> {
    let mut build = Command::new("docker");
    build.args(["build", "--quiet", "--force-rm", "--build-arg"]);
    build.arg(format!("BASE={base}")).args(options);
    command::output(build.arg(directory))
}

fn sizes() -> Result<BTreeMap<String, String>> {
    let list = docker(&["images", "--format"], &["{{.Repository}}:{{.Tag}} {{.Size}}"]);
    if list.is_err() && !command::succeeds(Command::new("docker").arg("--version")) {
        bail!("docker is missing: install the package `docker.io` of Debian");
    }
    let list = list.context("docker does not answer: start its daemon, and let this user talk to it")?;
    let words = list.lines().filter_map(|line| line.split_once(' '));
    Ok(words
        .map(|(tag, size)| (tag.to_owned(), size.to_owned()))
        .collect())
}

fn docker(arguments: &[&str], more: &[&str]) -> Result<String> {
    command::output(Command::new("docker").args(arguments).args(more))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_image_has_a_recipe_and_its_own_digest() {
        let recipes = crate::workspace::root().join(RECIPES);
        let digest = |(name, _): &(&str, &str)| {
            let tag = recipe_tag(&recipes, name).unwrap();
            tag.rsplit(':').next().unwrap().to_owned()
        };
        let digests: BTreeSet<String> = IMAGES.iter().map(digest).collect();
        assert_eq!(digests.len(), IMAGES.len());
    }

    #[test]
    fn a_digest_changes_with_each_byte_and_with_where_a_part_ends() {
        let of = |parts: &[&str]| digest(parts.iter().map(|part| part.as_bytes()));
        assert_eq!(of(&["RUN a", "RUN b"]), of(&["RUN a", "RUN b"]));
        assert_ne!(of(&["RUN a", "RUN b"]), of(&["RUN a", "RUN c"]));
        assert_ne!(of(&["RUN a", "RUN b"]), of(&["RUN aR", "UN b"]));
    }
}
