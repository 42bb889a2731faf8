//! The matrix of missing parents, line by line, and the table of codes.

use super::*;
use treeline_core::{EntityId, Version};

const LEVELS: [Kind; 5] = [
    Kind::Metalake,
    Kind::Catalog,
    Kind::Schema,
    Kind::Model,
    Kind::ModelVersion,
];

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
    Line(
        Kind::Fileset,
        "load, alter",
        &["Catalog", "Catalog", "Fileset", "Fileset"],
    ),
    Line(Kind::Fileset, "drop", &["Catalog", "Catalog", FALSE, FALSE]),
    Line(Kind::Model, "list, create", &["Catalog", "Catalog", "Schema"]),
    Line(
        Kind::Model,
        "load, alter",
        &["Catalog", "Catalog", "Model", "Model"],
    ),
    Line(Kind::Model, "drop", &["Catalog", "Catalog", FALSE, FALSE]),
    Line(
        Kind::ModelVersion,
        "list, create",
        &["Catalog", "Catalog", "Model", "Model"],
    ),
    Line(
        Kind::ModelVersion,
        "load, alter",
        &[
            "Catalog",
            "Catalog",
            "ModelVersion",
            "ModelVersion",
            "ModelVersion",
        ],
    ),
    Line(
        Kind::ModelVersion,
        "drop",
        &["Catalog", "Catalog", FALSE, FALSE, FALSE],
    ),
];

fn answer(target: Kind, verb: &str, level: Kind) -> String {
    let asked = if verb == "list, create" {
        Asked::collection(target)
    } else {
        Asked::entity(target)
    };
    if verb == "drop" && is_dropped_already(target, level) {
        return FALSE.to_owned();
    }
    let refusal = asked.refuse(Error::not_found(level, "a.b"));
    assert_eq!(
        (refusal.status, refusal.code),
        (StatusCode::NOT_FOUND, Code::NotFound)
    );
    let class = refusal
        .class
        .strip_prefix("NoSuch")
        .and_then(|rest| rest.strip_suffix("Exception"));
    class.unwrap().to_owned()
}

#[test]
fn a_missing_level_is_shown_as_the_contract_says() {
    for Line(target, verb, answers) in MATRIX {
        let lineage = target.lineage();
        for (level, expected) in lineage.iter().zip(*answers) {
            assert_eq!(
                answer(*target, verb, *level),
                *expected,
                "{verb} {target}, {level} is missing"
            );
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
    EntityTag {
        id: EntityId::new(id).unwrap(),
        version: Version::new(version).unwrap(),
    }
}

/// The status, code and class that an error is refused with when it meets a request on a catalog.
fn assert_refused(error: Error, status: u16, code: u16, class: &str) {
    let (shown, retryable) = (error.to_string(), error.retryable());
    let refusal = Asked::entity(Kind::Catalog).refuse(error);
    assert_eq!(refusal.status.as_u16(), status, "{shown}");
    assert_eq!(refusal.code as u16, code, "{shown}");
    assert_eq!(refusal.class, class, "{shown}");
    assert_eq!(refusal.retryable, retryable, "{shown}");
    assert!(!refusal.message.is_empty(), "{shown}");
}

fn path() -> String {
    "a.b".to_owned()
}

#[test]
fn what_is_missing_is_404_under_its_class() {
    let missing = |what| Error::NotFound { what, path: path() };
    assert_refused(
        missing(Missing::Entity(Kind::Catalog)),
        404,
        1003,
        "NoSuchCatalogException",
    );
    assert_refused(
        missing(Missing::LocationName),
        404,
        1003,
        "NoSuchLocationNameException",
    );
    assert_refused(
        missing(Missing::UriName),
        404,
        1003,
        "NoSuchModelVersionURINameException",
    );
}

#[test]
fn what_is_taken_is_409_under_its_class() {
    let taken = |what| Error::AlreadyExists { what, path: path() };
    assert_refused(
        taken(Taken::Entity(Kind::Fileset)),
        409,
        1004,
        "FilesetAlreadyExistsException",
    );
    assert_refused(
        taken(Taken::Alias),
        409,
        1004,
        "ModelVersionAliasesAlreadyExistException",
    );
}

#[test]
fn kinds_without_a_class_of_their_own_have_the_common_one() {
    let not_empty = |kind| Error::NotEmpty { kind, path: path() };
    assert_refused(not_empty(Kind::Metalake), 409, 1005, "NonEmptyMetalakeException");
    assert_refused(not_empty(Kind::Catalog), 409, 1005, "NonEmptyCatalogException");
    assert_refused(not_empty(Kind::Schema), 409, 1005, "NonEmptySchemaException");
    assert_refused(not_empty(Kind::Model), 409, 1005, "NonEmptyEntityException");
    let in_use = |kind| Error::InUse { kind, path: path() };
    assert_refused(in_use(Kind::Metalake), 409, 1010, "MetalakeInUseException");
    assert_refused(in_use(Kind::Catalog), 409, 1010, "CatalogInUseException");
    assert_refused(in_use(Kind::Schema), 409, 1010, "InUseException");
    let not_in_use = |kind| Error::NotInUse { kind, path: path() };
    assert_refused(not_in_use(Kind::Metalake), 409, 1009, "MetalakeNotInUseException");
    assert_refused(not_in_use(Kind::Catalog), 409, 1009, "CatalogNotInUseException");
    assert_refused(not_in_use(Kind::Model), 409, 1009, "NotInUseException");
}

#[test]
fn conflicts_of_versions_are_412_with_a_precondition_and_409_without() {
    let (kind, expected, actual) = (Kind::Catalog, None, None);
    let class = "OptimisticLockException";
    assert_refused(
        Error::Conflict {
            kind,
            path: path(),
            expected,
            actual,
        },
        409,
        1012,
        class,
    );
    assert_refused(
        Error::PreconditionFailed {
            kind,
            path: path(),
            expected,
            actual,
        },
        412,
        1012,
        class,
    );
    assert_refused(
        Error::Contended {
            operation: "create".into(),
        },
        409,
        1012,
        class,
    );
}

#[test]
fn everything_else_has_the_status_the_code_and_the_class_of_the_table() {
    let text = || "words".to_owned();
    assert_refused(
        Error::invalid("name", "is blank"),
        400,
        1001,
        "IllegalArgumentException",
    );
    let unsupported = Error::Unsupported {
        operation: text(),
        reason: text(),
    };
    assert_refused(unsupported, 405, 1006, "UnsupportedOperationException");
    assert_refused(Error::KeyReused, 422, 1001, "IllegalArgumentException");
    let forbidden = Error::Forbidden {
        principal: text(),
        operation: text(),
    };
    assert_refused(forbidden, 403, 1008, "ForbiddenException");
    assert_refused(
        Error::Unauthenticated { reason: text() },
        401,
        1011,
        "UnauthorizedException",
    );
    let unreachable = Error::ConnectionFailed {
        target: text(),
        reason: text(),
    };
    assert_refused(unreachable, 502, 1007, "ConnectionFailedException");
    assert_refused(
        Error::Unavailable { reason: text() },
        503,
        1002,
        "RuntimeException",
    );
    assert_refused(Error::internal("x"), 500, 1002, "RuntimeException");
}

#[test]
fn a_taken_name_fails_the_precondition_only_where_one_was_given() {
    let error = || Error::already_exists(Kind::Schema, "a.b.c");
    let asked = Asked::collection(Kind::Schema);
    assert_eq!(asked.refuse(error()).status, StatusCode::CONFLICT);
    let refusal = Asked {
        only_if_absent: true,
        ..asked
    }
    .refuse(error());
    assert_eq!(
        (refusal.status, refusal.code),
        (StatusCode::PRECONDITION_FAILED, Code::AlreadyExists)
    );
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
    assert_eq!(
        (versions.expected, versions.actual),
        (Some(tag(5, 1)), Some(tag(5, 3)))
    );
}

#[test]
fn internal_detail_is_not_told() {
    let refusal = Asked::entity(Kind::Schema).refuse(Error::internal("row 17 is damaged"));
    assert!(!refusal.message.contains("17"));
}
