//! Locations where no fileset may be.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use treeline_tests::{Bed, Tree, eventually};

use crate::stand::Stand;

async fn refuses(stand: &mut Stand, location: &str) -> Result<()> {
    for body in [
        json!({"name": "x", "storageLocation": location}),
        json!({"name": "x", "storageLocations": {"a": location}}),
        json!({"name": "x", "storageLocation": location, "type": "external"}),
        // The good one beside it is not made either.
        json!({
            "name": "x",
            "storageLocations": {"a": stand.tree.location("good"), "b": location},
            "properties": {"default-location-name": "a"},
        }),
    ] {
        stand
            .is_invalid("POST", Tree::FILESETS, &body.to_string())
            .await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_location_that_is_no_absolute_place_is_invalid() -> Result<()> {
    let mut stand = Stand::new().await?;
    let long = stand.tree.location(&"a/".repeat(3_000));
    let one_long_segment = stand.tree.location(&"a".repeat(300));
    for location in [
        " ",
        "a",
        "./a",
        "~/a",
        "../a",
        "/../a",
        "file:",
        "file:a",
        "file://elsewhere/a",
        "s3://bucket/a",
        "hdfs://h/a",
        "http://localhost/a",
        "nonsense:/a",
        ":/a",
        "/tmp/a\0b",
        "/tmp/a\nb",
        &long,
        &one_long_segment,
    ] {
        refuses(&mut stand, location).await?;
    }
    for location in [
        stand.tree.location("a/../../b"),
        stand.tree.location(".."),
        stand.tree.location("a/.."),
    ] {
        refuses(&mut stand, &location).await?;
        refuses(&mut stand, &format!("file://{location}")).await?;
    }
    stand.stands_unharmed().await
}

#[tokio::test]
async fn a_location_of_the_system_or_of_the_server_is_invalid() -> Result<()> {
    let mut stand = Stand::new().await?;
    let data = stand.bed.path("data").display().to_string();
    let below_data = format!("{data}/files");
    let above_data = stand.bed.path("").display().to_string();
    for location in [
        "/",
        "//",
        "/.",
        "file:/",
        "file:///",
        "/etc",
        "/etc/treeline-x",
        "/usr/lib/treeline-x",
        "/proc/self/cwd/x",
        "/dev/shm/treeline-x",
        "/run/treeline-x",
        "/home",
        "/tmp",
        "/var",
        "/root",
        &data,
        &below_data,
        &above_data,
    ] {
        refuses(&mut stand, location).await?;
    }
    for place in [
        "/etc/treeline-x",
        "/usr/lib/treeline-x",
        "/dev/shm/treeline-x",
        "/run/treeline-x",
    ] {
        ensure!(!Path::new(place).exists(), "{place} was made");
    }
    stand.stands_unharmed().await
}

#[tokio::test]
async fn a_location_through_a_symbolic_link_is_invalid_and_what_it_leads_to_is_untouched() -> Result<()> {
    let mut stand = Stand::new().await?;
    let outside = stand.bed.path("outside");
    fs::create_dir(&outside)?;
    fs::write(outside.join("kept"), "x")?;
    let links = stand.bed.path("links");
    fs::create_dir(&links)?;
    symlink(&outside, links.join("there"))?;
    symlink("/etc", links.join("system"))?;
    symlink(stand.bed.path("data"), links.join("data"))?;
    symlink(links.join("nowhere"), links.join("dangling"))?;
    symlink("circle", links.join("circle"))?;
    symlink(outside.join("kept"), links.join("file"))?;
    for link in [
        "there",
        "there/x",
        "there/x/y",
        "system/treeline-x",
        "data/x",
        "dangling",
        "dangling/x",
        "circle/x",
        "file",
    ] {
        refuses(&mut stand, &links.join(link).display().to_string()).await?;
    }
    let left: Vec<_> = fs::read_dir(&outside)?
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect::<Result<_, _>>()?;
    ensure!(left == ["kept"], "outside there is now {left:?}");
    stand.stands_unharmed().await
}

#[tokio::test]
async fn a_file_in_the_way_is_invalid_and_stays() -> Result<()> {
    let mut stand = Stand::new().await?;
    let file = stand.bed.path("file");
    fs::write(&file, "kept")?;
    refuses(&mut stand, &file.display().to_string()).await?;
    refuses(&mut stand, &file.join("below").display().to_string()).await?;
    ensure!(fs::read_to_string(&file)? == "kept", "the file has changed");
    stand.stands_unharmed().await
}

#[tokio::test]
async fn with_roots_that_the_operator_named_only_they_are_open() -> Result<()> {
    let bed = Bed::new()?;
    let roots = format!("{},{}", bed.path("one").display(), bed.path("two").display());
    let mut stand = Stand::on(bed, &["--allowed-roots", &roots]).await?;
    let outside = ["three/x", "one-more/x", "", "one/../three", "data/x"];
    for place in outside.map(|place| stand.bed.path(place).display().to_string()) {
        refuses(&mut stand, &place).await?;
    }
    let inside = json!({"name": "x", "storageLocation": stand.bed.path("two/x")});
    stand.client.post(Tree::FILESETS, &inside).await?.ok()?;
    ensure!(stand.bed.path("two/x").is_dir(), "no directory was made");
    stand
        .client
        .delete(&format!("{}/x", Tree::FILESETS))
        .await?
        .ok()?;
    ensure!(!stand.bed.path("two/x").exists(), "the directory is still there");
    stand.bed.check_is_clean().await
}

/// Of a catalog and a schema the location is where filesets without one of their own would go.
#[tokio::test]
async fn a_fileset_without_a_place_or_with_one_that_cannot_be_worked_out_is_invalid() -> Result<()> {
    let mut stand = Stand::new().await?;
    let good = stand.tree.location("x");
    let unresolved = stand.tree.location("{{nobody}}");
    let empty = stand.tree.location("{{}}");
    for body in [
        json!({"name": "x"}),
        json!({"name": "x", "type": "external"}),
        json!({"name": "x", "type": "borrowed", "storageLocation": good}),
        json!({"name": "x", "storageLocation": unresolved}),
        json!({"name": "x", "storageLocation": empty}),
        json!({"name": "x", "storageLocations": {"": good}}),
        json!({"name": "x", "storageLocations": {"a": good}, "properties": {"default-location-name": "b"}}),
        json!({"name": "x", "storageLocations": {"a": good, "b": stand.tree.location("y")}}),
    ] {
        stand
            .is_invalid("POST", Tree::FILESETS, &body.to_string())
            .await?;
    }
    stand.stands_unharmed().await
}

/// A schema may say any place it likes; only its filesets are refused there. Dropping it tidies up where it may, and
/// leaves no work behind that nobody will ever be able to do.
#[tokio::test]
async fn a_schema_at_a_place_that_is_not_allowed_can_be_dropped_for_good() -> Result<()> {
    let stand = Stand::new().await?;
    let mut client = stand.server.client();
    let schema = format!("{}/x", Tree::SCHEMAS);
    for location in [
        "/etc",
        "/etc/treeline-x",
        "s3://bucket/x",
        &stand.bed.path("data").display().to_string(),
    ] {
        let body = json!({"name": "x", "properties": {"location": location}});
        client.post(Tree::SCHEMAS, &body).await?.ok()?;
        let refused = client
            .post(&format!("{schema}/filesets"), &json!({"name": "f"}))
            .await?;
        refused.refused(400, 1001).with_context(|| location.to_owned())?;
        client.delete(&format!("{schema}?cascade=true")).await?.ok()?;
    }
    eventually("no work is left over", async || {
        Ok(stand.bed.rows().await?.of("reconcile_tasks").next().is_none())
    })
    .await?;
    ensure!(
        Path::new("/etc").is_dir(),
        "a schema's drop removed a directory of the system"
    );
    stand.bed.check_is_clean().await
}

/// A listing never leaves the fileset: not by `..`, and not through a link that somebody put in it.
#[tokio::test]
async fn files_are_listed_only_inside_the_fileset() -> Result<()> {
    let stand = Stand::new().await?;
    let mut client = stand.server.client();
    client
        .post(Tree::FILESETS, &stand.tree.fileset("x"))
        .await?
        .ok()?;
    let directory = stand.bed.files().join("x");
    fs::write(directory.join("a.txt"), "12345")?;
    fs::create_dir(directory.join("sub"))?;
    fs::write(stand.bed.path("secret"), "x")?;
    symlink(stand.bed.path(""), directory.join("link"))?;
    let files = format!("{}/x/files", Tree::FILESETS);

    let listed = client.get(&files).await?.ok()?;
    let names: Vec<&Value> = listed.json["files"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|file| &file["name"])
        .collect();
    ensure!(names == ["a.txt", "link", "sub"], "{names:?}");
    for sub_path in [
        "..",
        "/..",
        "../..",
        "sub/../..",
        "%2e%2e",
        "%2F..%2F..",
        "link",
        "link/",
        "/link/data",
        "nothing",
        "a%00b",
    ] {
        let answer = client.get(&format!("{files}?sub_path={sub_path}")).await?;
        answer.refused(400, 1001).with_context(|| sub_path.to_owned())?;
        ensure!(!answer.text.contains("secret"), "{sub_path}: {}", answer.text);
    }
    for sub_path in ["..", "/../..", "sub/../.."] {
        let answer = client
            .get(&format!("{}/x/location?sub_path={sub_path}", Tree::FILESETS))
            .await?;
        answer.refused(400, 1001).with_context(|| sub_path.to_owned())?;
    }
    client
        .get(&format!("{files}?location_name=nobody"))
        .await?
        .refused(404, 1003)?;
    client.delete(&format!("{}/x", Tree::FILESETS)).await?.ok()?;
    ensure!(
        stand.bed.path("secret").is_file(),
        "dropping the fileset followed a link"
    );
    stand.bed.check_is_clean().await
}
