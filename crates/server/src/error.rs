//! The last step of every failure: which status, code, class name and words a client gets.
//!
//! Everything below speaks of [`Error`], which knows nothing of HTTP; what only HTTP knows (an unknown route, a body
//! that is too long) begins here. Two things depend on what was asked and not on what happened: under which class a
//! missing parent is shown (the contract's matrix 7.1), and whether a name that is taken fails a precondition. So
//! the handlers pass an [`Asked`] along. Internal detail goes to the log from here, and no further.

#![deny(clippy::wildcard_enum_match_arm)]

use std::borrow::Cow;

use axum::http::StatusCode;
use treeline_core::{EntityTag, Error, Kind, Missing, Taken};

/// The numbers of the contract's table 1.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Code {
    IllegalArguments = 1001,
    Internal = 1002,
    NotFound = 1003,
    AlreadyExists = 1004,
    NonEmpty = 1005,
    Unsupported = 1006,
    ConnectionFailed = 1007,
    Forbidden = 1008,
    NotInUse = 1009,
    InUse = 1010,
    Unauthorized = 1011,
    OptimisticLock = 1012,
}

impl Code {
    /// The status that the table gives the code.
    const fn status(self) -> StatusCode {
        match self {
            Code::IllegalArguments => StatusCode::BAD_REQUEST,
            Code::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Code::NotFound => StatusCode::NOT_FOUND,
            Code::Unsupported => StatusCode::METHOD_NOT_ALLOWED,
            Code::ConnectionFailed => StatusCode::BAD_GATEWAY,
            Code::Forbidden => StatusCode::FORBIDDEN,
            Code::Unauthorized => StatusCode::UNAUTHORIZED,
            Code::AlreadyExists | Code::NonEmpty | Code::NotInUse | Code::InUse | Code::OptimisticLock => {
                StatusCode::CONFLICT
            }
        }
    }
}

/// What a request was about, as far as its error depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The kind whose routes were used.
    pub target: Kind,
    /// Its collection or one of it.
    pub of: Of,
    /// The client said `If-None-Match: *`.
    pub only_if_absent: bool,
}

/// Which of a kind's routes was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// List and create.
    Collection,
    /// Load, alter, switch, drop and whatever else names one entity.
    Entity,
}

impl Asked {
    /// A request on one entity of this kind.
    pub(crate) const fn entity(target: Kind) -> Asked {
        Asked {
            target,
            of: Of::Entity,
            only_if_absent: false,
        }
    }

    /// A request on the collection of this kind.
    pub(crate) const fn collection(target: Kind) -> Asked {
        Asked {
            target,
            of: Of::Collection,
            only_if_absent: false,
        }
    }

    /// The refusal that this error means here.
    pub(crate) fn refuse(self, error: Error) -> Refusal {
        refusal(self, error)
    }
}

/// The class under which a missing level is shown: the contract names a parent of another level than the one that is
/// really missing, in most places (matrix 7.1).
pub(crate) fn shown_missing(asked: Asked, level: Kind) -> Kind {
    match level {
        Kind::Metalake => match (asked.target, asked.of) {
            (Kind::Metalake, _) | (Kind::Catalog, Of::Collection) => Kind::Metalake,
            _ => Kind::Catalog,
        },
        Kind::Catalog => Kind::Catalog,
        Kind::Schema => match (asked.target, asked.of) {
            (Kind::ModelVersion, Of::Collection) => Kind::Model,
            (Kind::Fileset | Kind::Model | Kind::ModelVersion, Of::Entity) => asked.target,
            _ => Kind::Schema,
        },
        Kind::Model => match (asked.target, asked.of) {
            (Kind::ModelVersion, Of::Entity) => Kind::ModelVersion,
            _ => Kind::Model,
        },
        Kind::Fileset | Kind::ModelVersion => level,
    }
}

/// Whether a drop that met this missing level is answered `dropped: false` (the other drops are refused).
pub(crate) fn is_dropped_already(target: Kind, level: Kind) -> bool {
    match level {
        Kind::Metalake | Kind::Catalog => match target {
            Kind::Metalake | Kind::Catalog => true,
            Kind::Schema | Kind::Fileset | Kind::Model | Kind::ModelVersion => false,
        },
        Kind::Schema | Kind::Fileset | Kind::Model | Kind::ModelVersion => true,
    }
}

/// A request that is not answered with success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub status: StatusCode,
    pub code: Code,
    /// The class that clients map to one of theirs.
    pub class: Cow<'static, str>,
    pub message: String,
    /// What was expected and what was met, where a version was in dispute.
    pub versions: Option<Disputed>,
    /// Whether the same request may succeed a little later.
    pub retryable: bool,
}

/// The two sides of a conflict of versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Disputed {
    pub expected: Option<EntityTag>,
    pub actual: Option<EntityTag>,
}

impl Refusal {
    fn new(code: Code, class: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Refusal {
        Refusal {
            status: code.status(),
            code,
            class: class.into(),
            message: message.into(),
            versions: None,
            retryable: false,
        }
    }

    fn with_status(self, status: StatusCode) -> Refusal {
        Refusal { status, ..self }
    }

    /// Some part of the request is wrong, whatever the catalog holds.
    pub(crate) fn invalid(message: impl Into<String>) -> Refusal {
        Refusal::new(Code::IllegalArguments, "IllegalArgumentException", message)
    }

    /// The client asks for a version of the protocol that this resource does not speak.
    pub(crate) fn not_acceptable(message: impl Into<String>) -> Refusal {
        Refusal::invalid(message).with_status(StatusCode::NOT_ACCEPTABLE)
    }

    /// The body is not JSON by its own account.
    pub(crate) fn unsupported_media_type(message: impl Into<String>) -> Refusal {
        Refusal::invalid(message).with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE)
    }

    /// The body is over the limit.
    pub(crate) fn too_large(bytes_max: usize) -> Refusal {
        Refusal::invalid(format!("the body is longer than {bytes_max} bytes"))
            .with_status(StatusCode::PAYLOAD_TOO_LARGE)
    }

    /// The body did not arrive in time.
    pub(crate) fn too_slow() -> Refusal {
        Refusal::invalid("the body did not arrive in time").with_status(StatusCode::REQUEST_TIMEOUT)
    }

    /// There is nothing at this path, and never was.
    pub(crate) fn unknown_route(path: &str) -> Refusal {
        Refusal::new(
            Code::NotFound,
            "NotFoundException",
            format!("there is no endpoint `{path}`"),
        )
    }

    /// The path is there, or will be, but not for this method.
    pub(crate) fn method_not_allowed(message: impl Into<String>) -> Refusal {
        Refusal::new(Code::Unsupported, "UnsupportedOperationException", message)
    }

    /// The request was given up: the queue or the work took too long, or there is no room for it now.
    pub(crate) fn timed_out(message: impl Into<String>) -> Refusal {
        let refusal = Refusal::new(Code::Internal, "RuntimeException", message);
        Refusal {
            retryable: true,
            ..refusal.with_status(StatusCode::SERVICE_UNAVAILABLE)
        }
    }

    /// A defect of ours. What a client may know of it is that it happened.
    pub(crate) fn internal(detail: &str) -> Refusal {
        tracing::error!(detail, "internal error");
        let told = Error::internal("").to_string();
        Refusal::new(Code::Internal, "RuntimeException", told)
    }
}

impl From<Error> for Refusal {
    /// For errors that do not depend on what was asked: of the request itself, or of the server.
    fn from(error: Error) -> Refusal {
        Asked::entity(Kind::Metalake).refuse(error)
    }
}

fn refusal(asked: Asked, error: Error) -> Refusal {
    let message = error.to_string();
    match error {
        Error::Invalid { .. } => Refusal::invalid(message),
        Error::NotFound { what, .. } => Refusal::new(Code::NotFound, missing_class(asked, what), message),
        Error::AlreadyExists { what, .. } => {
            let refusal = Refusal::new(Code::AlreadyExists, taken_class(what), message);
            if asked.only_if_absent {
                refusal.with_status(StatusCode::PRECONDITION_FAILED)
            } else {
                refusal
            }
        }
        Error::NotEmpty { kind, .. } => Refusal::new(Code::NonEmpty, non_empty_class(kind), message),
        Error::InUse { kind, .. } => Refusal::new(Code::InUse, switch_class(kind, "InUseException"), message),
        Error::NotInUse { kind, .. } => {
            Refusal::new(Code::NotInUse, switch_class(kind, "NotInUseException"), message)
        }
        Error::Conflict { expected, actual, .. } => Refusal {
            retryable: true,
            versions: Some(Disputed { expected, actual }),
            ..optimistic_lock(message)
        },
        Error::PreconditionFailed { expected, actual, .. } => Refusal {
            status: StatusCode::PRECONDITION_FAILED,
            versions: Some(Disputed { expected, actual }),
            ..optimistic_lock(message)
        },
        Error::KeyReused => Refusal::invalid(message).with_status(StatusCode::UNPROCESSABLE_ENTITY),
        Error::Contended { .. } => Refusal {
            retryable: true,
            versions: Some(Disputed {
                expected: None,
                actual: None,
            }),
            ..optimistic_lock(message)
        },
        Error::Unsupported { .. } => Refusal::method_not_allowed(message),
        Error::Forbidden { .. } => Refusal::new(Code::Forbidden, "ForbiddenException", message),
        Error::Unauthenticated { .. } => Refusal::new(Code::Unauthorized, "UnauthorizedException", message),
        Error::ConnectionFailed { .. } => {
            Refusal::new(Code::ConnectionFailed, "ConnectionFailedException", message)
        }
        Error::Unavailable { .. } => {
            tracing::warn!(%message, "a request found this server not available");
            Refusal::timed_out(message)
        }
        Error::Internal { detail } => Refusal::internal(&detail),
    }
}

fn optimistic_lock(message: String) -> Refusal {
    Refusal::new(Code::OptimisticLock, "OptimisticLockException", message)
}

fn missing_class(asked: Asked, what: Missing) -> Cow<'static, str> {
    match what {
        Missing::Entity(level) => {
            let shown = shown_missing(asked, level);
            format!("NoSuch{}Exception", shown.row().exception_stem).into()
        }
        Missing::LocationName => "NoSuchLocationNameException".into(),
        Missing::UriName => "NoSuchModelVersionURINameException".into(),
    }
}

fn taken_class(what: Taken) -> Cow<'static, str> {
    match what {
        Taken::Entity(kind) => format!("{}AlreadyExistsException", kind.row().exception_stem).into(),
        Taken::Alias => "ModelVersionAliasesAlreadyExistException".into(),
    }
}

fn non_empty_class(kind: Kind) -> Cow<'static, str> {
    match kind {
        Kind::Metalake | Kind::Catalog | Kind::Schema => {
            format!("NonEmpty{}Exception", kind.row().exception_stem).into()
        }
        Kind::Fileset | Kind::Model | Kind::ModelVersion => "NonEmptyEntityException".into(),
    }
}

/// The class of a kind that has a switch; the bare one for the others.
fn switch_class(kind: Kind, class: &'static str) -> Cow<'static, str> {
    if kind.row().has_in_use {
        format!("{}{class}", kind.row().exception_stem).into()
    } else {
        class.into()
    }
}

#[cfg(test)]
mod tests;
