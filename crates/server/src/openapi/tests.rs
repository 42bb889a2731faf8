//! The document as a whole, and that its examples are what the types read.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use treeline_core::kinds::{Catalog, Fileset, Metalake, Model, ModelVersion, Schema};

use super::*;
use crate::kinds::ModelVersionLink;
use crate::wire::{Create, SwitchBody, Updates, Wire};

#[test]
fn the_document_is_what_was_reviewed() {
    insta::assert_json_snapshot!("openapi", build());
}

#[test]
fn every_reference_leads_somewhere() {
    let document = build();
    let mut references = Vec::new();
    collect_references(&document, &mut references);
    assert!(references.len() > 100);
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

fn collect_references(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            into.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|value| collect_references(value, into));
        }
        Value::Array(values) => values.iter().for_each(|value| collect_references(value, into)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_documented_example_is_read_by_its_type() {
    let mut schemas = Schemas::new();
    for operation in operations() {
        let Some((_, example, _)) = body(operation.verb, &mut schemas) else {
            continue;
        };
        match operation.verb {
            Verb::Create(kind) => read_create(kind, example),
            Verb::Alter(kind) => read_alter(kind, example),
            Verb::Switch(_) => drop(read::<SwitchBody>(example)),
            Verb::TestNew => read_create(Kind::Catalog, example),
            Verb::TestExisting => read_alter(Kind::Catalog, example),
            verb => panic!("{verb:?} has a body that nothing reads"),
        }
    }
}

fn read<T: DeserializeOwned>(example: Value) -> T {
    serde_json::from_value(example).unwrap()
}

fn read_create(kind: Kind, example: Value) {
    fn create<W: Create>(example: Value) {
        W::read(read(example)).map(drop).unwrap();
    }
    match kind {
        Kind::Metalake => create::<Metalake>(example),
        Kind::Catalog => create::<Catalog>(example),
        Kind::Schema => create::<Schema>(example),
        Kind::Fileset => create::<Fileset>(example),
        Kind::Model => create::<Model>(example),
        Kind::ModelVersion => drop(read::<ModelVersionLink>(example)),
    }
}

/// Reads the example, and claims that it shows every variant that the schema names.
fn read_alter(kind: Kind, example: Value) {
    fn alter<W: Wire>(example: Value) {
        let shown: BTreeSet<_> = example["updates"]
            .as_array()
            .unwrap()
            .iter()
            .map(|update| update["@type"].to_string())
            .collect();
        let updates: Updates<W::Update> = read(example);
        for update in updates.updates {
            W::change(update).map(drop).unwrap();
        }
        let schema = schemars::schema_for!(W::Update).to_value();
        let named = schema["oneOf"].as_array().unwrap();
        let named: BTreeSet<_> = named
            .iter()
            .map(|variant| variant["properties"]["@type"]["const"].to_string())
            .collect();
        assert_eq!(shown, named, "{}", W::KIND);
    }
    match kind {
        Kind::Metalake => alter::<Metalake>(example),
        Kind::Catalog => alter::<Catalog>(example),
        Kind::Schema => alter::<Schema>(example),
        Kind::Fileset => alter::<Fileset>(example),
        Kind::Model => alter::<Model>(example),
        Kind::ModelVersion => alter::<ModelVersion>(example),
    }
}

#[test]
fn variants_name_their_fields_as_they_go_over_the_wire() {
    let document = build();
    let text = document["components"]["schemas"]["ModelVersionUpdate"].to_string();
    for field in [
        "@type",
        "newComment",
        "uriName",
        "newUri",
        "aliasesToAdd",
        "aliasesToRemove",
    ] {
        assert!(text.contains(&format!("\"{field}\"")), "{field}");
    }
}
