//! The matrix of missing parents, line by line, and the table of codes.

use super::*;
use treeline_core::{EntityId, Version};

const LEVELS: [Kind; 5] = [Kind::Metalake, Kind::Catalog, Kind::Schema, Kind::Model, Kind::ModelVersion];

/// What a request gets for each level that may be missing: the stem of a class, or that a drop says `false`.
const FALSE: &str = "dropped: false";

/// One line of the contract's matrix 7.1: the kind, what is asked, and an answer for each missing level from the
/// metalake down to the thing itself.
struct Line(Kind, &'static str, &'static [&'static str]);

const MATRIX: &[Line] = &[
    Line(Kind::Metalake, "load, alter", &["Metalake"]),
    Line(Kind::Metalake, "drop", &[FALSE]),
    Line(Kind::Catalog, "list, create", &["Metalake"]),
    Line(Kind::Catalog, "load, alter", &["Catalog", "Catalog"]),
    Line(Kind::Catalog, "drop", &[FALSE, FALSE]),
    Line(Kind::Schema, "list, create", &["Catalog", "Catalog"]),
    Line(Kind::Schema, "load, alter", &["Catalog", "Catalog", "Schema"]),
    Line(Kind::Schema, "drop", &["Catalog", "Catalog", FALSE]),
    Line(Kind::Fileset, "list, create", &["Catalog", "Catalog", "Schema"]),
    Line(Kind::Fileset, "load, alter", &["Catalog", "Catalog", "Fileset", "Fileset"]),
    Line(Kind::Fileset, "drop", &["Catalog", "Catalog", FALSE, FALSE]),
    Line(Kind::Model, "list, create", &["Catalog", "Catalog", "Schema"]),
    Line(Kind::Model, "load, alter", &["Catalog", "Catalog", "Model", "Model"]),
    Line(Kind::Model, "drop", &["Catalog", "Catalog", FALSE, FALSE]),
    Line(Kind::ModelVersion, "list, create", &["Catalog", "Catalog", "Model", "Model"]),
    Line(
        Kind::ModelVersion,
        "load, alter",
        &["Catalog", "Catalog", "ModelVersion", "ModelVersion", "ModelVersion"],
    ),
    Line(Kind::ModelVersion, "drop", &["Catalog", "Catalog", FALSE, FALSE, FALSE]),
];

fn answer(target: Kind, verb: &str, level: Kind) -> String {
    let asked = if verb == "list, create" { Asked::collection(target) } else { Asked::entity(target) };
    if verb == "drop" && is_dropped_already(target, level) {
        return FALSE.to_owned();
    }
    let refusal = asked.refuse(Error::not_found(level, "a.b"));
    assert_eq!((refusal.status, refusal.code), (StatusCode::NOT_FOUND, Code::NotFound));
    let class = refusal.class.strip_prefix("NoSuch").and_then(|rest| rest.strip_suffix("Exception"));
    class.unwrap().to_owned()
}

#[test]
fn a_missing_level_is_shown_as_the_contract_says() {
    for Line(target, verb, answers) in MATRIX {
        let lineage = target.lineage();
        for (level, expected) in lineage.iter().zip(*answers) {
            assert_eq!(answer(*target, verb, *level), *expected, "{verb} {target}, {level} is missing");
        }
    }
}

#[test]
fn the_matrix_has_every_kind_and_every_verb() {
    for kind in Kind::all() {
        let lines: Vec<_> = MATRIX.iter().filter(|line| line.0 == kind).collect();
        let expected = if kind == Kind::Metalake { 2 } else { 3 };
        assert_eq!(lines.len(), expected, "{kind}");
        for Line(_, verb, answers) in lines {
            let levels = kind.lineage().len() - usize::from(*verb == "list, create");
            assert_eq!(answers.len(), levels, "{verb} {kind}");
        }
    }
    assert_eq!(LEVELS.as_slice(), Kind::ModelVersion.lineage());
}

fn tag(id: i64, version: i64) -> EntityTag {
    EntityTag { id: EntityId::new(id).unwrap(), version: Version::new(version).unwrap() }
}

#[test]
fn every_error_has_the_status_the_code_and_the_class_of_the_table() {
    let path = || "a.b".to_owned();
    let kind = Kind::Catalog;
    let table = [
        (Error::invalid("name", "is blank"), 400, 1001, "IllegalArgumentException"),
        (Error::not_found(Kind::Catalog, "a.b"), 404, 1003, "NoSuchCatalogException"),
        (
            Error::NotFound { what: Missing::LocationName, path: path() },
            404,
            1003,
            "NoSuchLocationNameException",
        ),
        (
            Error::NotFound { what: Missing::UriName, path: path() },
            404,
            1003,
            "NoSuchModelVersionURINameException",
        ),
        (Error::already_exists(Kind::Fileset, "a.b"), 409, 1004, "FilesetAlreadyExistsException"),
        (
            Error::AlreadyExists { what: Taken::Alias, path: path() },
            409,
            1004,
            "ModelVersionAliasesAlreadyExistException",
        ),
        (Error::NotEmpty { kind: Kind::Schema, path: path() }, 409, 1005, "NonEmptySchemaException"),
        (Error::NotEmpty { kind: Kind::Model, path: path() }, 409, 1005, "NonEmptyEntityException"),
        (Error::InUse { kind: Kind::Metalake, path: path() }, 409, 1010, "MetalakeInUseException"),
        (Error::InUse { kind: Kind::Schema, path: path() }, 409, 1010, "InUseException"),
        (Error::NotInUse { kind, path: path() }, 409, 1009, "CatalogNotInUseException"),
        (Error::NotInUse { kind: Kind::Model, path: path() }, 409, 1009, "NotInUseException"),
        (
            Error::Conflict { kind, path: path(), expected: None, actual: None },
            409,
            1012,
            "OptimisticLockException",
        ),
        (
            Error::PreconditionFailed { kind, path: path(), expected: None, actual: None },
            412,
            1012,
            "OptimisticLockException",
        ),
        (Error::Contended { operation: "create".into() }, 409, 1012, "OptimisticLockException"),
        (
            Error::Unsupported { operation: "a".into(), reason: "b".into() },
            405,
            1006,
            "UnsupportedOperationException",
        ),
        (Error::Forbidden { principal: "a".into(), operation: "b".into() }, 403, 1008, "ForbiddenException"),
        (Error::Unauthenticated { reason: "a".into() }, 401, 1011, "UnauthorizedException"),
        (
            Error::ConnectionFailed { target: "a".into(), reason: "b".into() },
            502,
            1007,
            "ConnectionFailedException",
        ),
        (Error::Unavailable { reason: "a".into() }, 503, 1002, "RuntimeException"),
        (Error::internal("a"), 500, 1002, "RuntimeException"),
    ];
    for (error, status, code, class) in table {
        let retryable = error.retryable();
        let refusal = Asked::entity(Kind::Catalog).refuse(error.clone());
        assert_eq!(refusal.status.as_u16(), status, "{error}");
        assert_eq!(refusal.code as u16, code, "{error}");
        assert_eq!(refusal.class, class, "{error}");
        assert_eq!(refusal.retryable, retryable, "{error}");
        assert!(!refusal.message.is_empty());
    }
}

#[test]
fn a_taken_name_fails_the_precondition_only_where_one_was_given() {
    let error = || Error::already_exists(Kind::Schema, "a.b.c");
    let asked = Asked::collection(Kind::Schema);
    assert_eq!(asked.refuse(error()).status, StatusCode::CONFLICT);
    let refusal = Asked { only_if_absent: true, ..asked }.refuse(error());
    assert_eq!((refusal.status, refusal.code), (StatusCode::PRECONDITION_FAILED, Code::AlreadyExists));
}

#[test]
fn both_sides_of_a_conflict_are_told() {
    let error = Error::PreconditionFailed {
        kind: Kind::Schema,
        path: "a.b.c".into(),
        expected: Some(tag(5, 1)),
        actual: Some(tag(5, 3)),
    };
    let versions = Asked::entity(Kind::Schema).refuse(error).versions.unwrap();
    assert_eq!((versions.expected, versions.actual), (Some(tag(5, 1)), Some(tag(5, 3))));
}

#[test]
fn internal_detail_is_not_told() {
    let refusal = Asked::entity(Kind::Schema).refuse(Error::internal("row 17 is damaged"));
    assert!(!refusal.message.contains("17"));
}
