//! Where files end up, case by case.

use treeline_core::Kind;

use super::*;

fn properties(pairs: &[(&str, &str)]) -> Properties {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn fileset(storage_locations: &[(&str, &str)], more: &[(&str, &str)]) -> NewFileset {
    NewFileset {
        storage_locations: properties(storage_locations),
        properties: properties(more),
        ..NewFileset::default()
    }
}

fn located(
    new: &NewFileset,
    catalog: &[(&str, &str)],
    schema: &[(&str, &str)],
) -> Result<BTreeMap<String, String>> {
    let path = Path::of(Kind::Fileset, &["ml", "c", "s", "f"]).unwrap();
    resolve(new, &properties(catalog), &properties(schema), &Names::of(&path)).map(|(locations, _)| locations)
}

#[test]
fn what_the_request_says_wins() {
    let new = fileset(&[("unknown", "/tmp/own")], &[]);
    let locations = located(&new, &[("location", "/tmp/catalog")], &[]).unwrap();
    assert_eq!(locations, properties(&[("unknown", "file:/tmp/own")]));
}

#[test]
fn names_of_request_schema_and_catalog_come_together() {
    let new = fileset(&[("a", "/tmp/a")], &[]);
    let locations = located(
        &new,
        &[("location", "/tmp/catalog"), ("location-c", "s3://b/c")],
        &[("location-s", "/tmp/schema")],
    )
    .unwrap();
    let expected = [
        ("a", "file:/tmp/a"),
        ("c", "s3://b/c/s/f"),
        ("s", "file:/tmp/schema/f"),
        ("unknown", "file:/tmp/catalog/s/f"),
    ];
    assert_eq!(locations, properties(&expected));
}

#[test]
fn a_schemas_place_goes_before_its_catalogs() {
    let locations = located(
        &fileset(&[], &[]),
        &[("location", "/tmp/catalog")],
        &[("location", "/tmp/schema/")],
    )
    .unwrap();
    assert_eq!(locations, properties(&[("unknown", "file:/tmp/schema/f")]));
}

#[test]
fn a_place_with_placeholders_is_taken_as_it_is() {
    let catalog = [("location", "/data/{{catalog}}/{{team}}/{{schema}}-{{fileset}}")];
    let locations = located(&fileset(&[], &[("placeholder-team", "red")]), &catalog, &[]).unwrap();
    assert_eq!(locations, properties(&[("unknown", "file:/data/c/red/s-f")]));
    assert!(
        located(&fileset(&[], &[]), &catalog, &[])
            .unwrap_err()
            .to_string()
            .contains("placeholder-team")
    );
    assert!(located(&fileset(&[("unknown", "/tmp/{{}}")], &[]), &[], &[]).is_err());
}

#[test]
fn a_fileset_without_any_place_is_refused() {
    assert!(located(&fileset(&[], &[]), &[], &[]).is_err());
    let external = NewFileset {
        fileset_type: Some(FilesetType::External),
        ..NewFileset::default()
    };
    assert!(located(&external, &[("location", "/tmp/catalog")], &[]).is_err());
}

#[test]
fn a_fileset_never_holds_its_schema() {
    let new = fileset(&[("unknown", "/tmp")], &[]);
    assert!(located(&new, &[], &[("location", "/tmp/schema")]).is_err());
    assert!(located(&new, &[("location", "/tmp/catalog")], &[]).is_err());
    let new = fileset(&[("unknown", "/tmp/schema")], &[]);
    assert!(located(&new, &[], &[("location", "/tmp/schema")]).is_err());
}

#[test]
fn two_unnamed_places_must_be_one() {
    let mut new = fileset(&[("unknown", "/tmp/a")], &[]);
    new.storage_location = Some("/tmp/a".to_owned());
    assert!(located(&new, &[], &[]).is_ok());
    new.storage_location = Some("/tmp/b".to_owned());
    assert!(located(&new, &[], &[]).is_err());
}

#[test]
fn left_alone_files_need_a_scheme() {
    let catalog = [("disable-filesystem-ops", "true")];
    assert!(located(&fileset(&[("unknown", "/tmp/a")], &[]), &catalog, &[]).is_err());
    assert!(located(&fileset(&[("unknown", "s3://b/a")], &[]), &catalog, &[]).is_ok());
}

#[test]
fn one_place_is_the_default_and_several_need_one_named() {
    let path = Path::of(Kind::Fileset, &["ml", "c", "s", "f"]).unwrap();
    let new = fileset(&[("only", "/tmp/a")], &[]);
    let (_, kept) = resolve(&new, &Properties::new(), &Properties::new(), &Names::of(&path)).unwrap();
    assert_eq!(kept, properties(&[("default-location-name", "only")]));
}

#[test]
fn a_locations_name_is_one_that_every_database_keeps_apart() {
    let long = "n".repeat(Name::CHARS_MAX + 1);
    for name in ["", " ", "a ", " a", "a\tb", long.as_str()] {
        let error = located(&fileset(&[(name, "/tmp/a")], &[]), &[], &[]).unwrap_err();
        assert!(
            matches!(&error, Error::Invalid { field, .. } if field == "storageLocations"),
            "{error}"
        );
        let of_catalog = format!("location-{name}");
        if name_of(&of_catalog).is_some() {
            assert!(
                located(&fileset(&[], &[]), &[(&of_catalog, "/tmp/a")], &[]).is_err(),
                "`{name}`"
            );
        }
    }
    assert!(located(&fileset(&[(&long[1..], "/tmp/a")], &[]), &[], &[]).is_ok());
}
