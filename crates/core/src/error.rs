//! The one public error of the workspace.
//!
//! A variant stands for a thing that a program must tell apart, at least one for each code of the REST contract;
//! none is a bare string. What a client may read and what an operator needs are separate: [`Error::Internal`] keeps
//! its detail out of its `Display`. HTTP is decided at the last step, in the server.

use crate::{EntityTag, Kind};

/// `Result` with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong, as callers must tell it apart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The request itself is wrong, whatever the catalog holds.
    #[error("`{field}` is not valid: {reason}")]
    Invalid {
        /// The field, parameter or header at fault.
        field: String,
        /// What is wrong with it, and what would be right.
        reason: String,
    },
    /// A name on the way, or the thing itself, is not there (or no longer).
    #[error("there is no {what} `{path}`")]
    NotFound {
        /// What is missing.
        what: Missing,
        /// Its full name.
        path: String,
    },
    /// A strict create, a rename or an alias met a live holder of the name (P1, P4).
    #[error("{what} `{path}` is there already")]
    AlreadyExists {
        /// What is taken.
        what: Taken,
        /// Its full name.
        path: String,
    },
    /// A drop without cascade met a live child (P3).
    #[error("{kind} `{path}` is not empty")]
    NotEmpty {
        /// The kind of the container.
        kind: Kind,
        /// Its full name.
        path: String,
    },
    /// A drop without force of something that is still enabled.
    #[error("{kind} `{path}` is in use; disable it first, or use force")]
    InUse {
        /// The kind of the enabled entity.
        kind: Kind,
        /// Its full name.
        path: String,
    },
    /// An operation on, or below, something that is disabled.
    #[error("{kind} `{path}` is not in use; enable it first")]
    NotInUse {
        /// The kind of the disabled entity.
        kind: Kind,
        /// Its full name.
        path: String,
    },
    /// The row changed under the writer, and the bounded attempts are used up (P2).
    #[error("{kind} `{path}` was changed by others in every attempt; try again")]
    Conflict {
        /// The kind of the contended entity.
        kind: Kind,
        /// Its full name.
        path: String,
        /// What the last attempt had read.
        expected: Option<EntityTag>,
        /// What it met instead.
        actual: Option<EntityTag>,
    },
    /// The client pinned a version (`If-Match`), and the row has another (P2).
    #[error("{kind} `{path}` is not what the precondition names")]
    PreconditionFailed {
        /// The kind of the entity.
        kind: Kind,
        /// Its full name.
        path: String,
        /// The tag that the client sent; none if it sent several.
        expected: Option<EntityTag>,
        /// The tag that the row has.
        actual: Option<EntityTag>,
    },
    /// The client named this request with an idempotency key that it had used for another one (P11).
    #[error("the idempotency key was used for another request")]
    KeyReused,
    /// A lock or a deadlock was waited for past the bound; nothing was written.
    #[error("{operation} waited too long for others that write the same rows; try again")]
    Contended {
        /// The name of the transaction.
        operation: String,
    },
    /// The catalog can never do this, however the request is put.
    #[error("{operation} is not supported: {reason}")]
    Unsupported {
        /// What was asked.
        operation: String,
        /// Why it cannot be.
        reason: String,
    },
    /// The principal may not do this.
    #[error("{principal} may not {operation}")]
    Forbidden {
        /// Who asked.
        principal: String,
        /// What was asked.
        operation: String,
    },
    /// The request does not say who asks, in a way that this server accepts.
    #[error("not authenticated: {reason}")]
    Unauthenticated {
        /// Which scheme was expected.
        reason: String,
    },
    /// An external system that the catalog federates cannot be reached.
    #[error("cannot reach {target}: {reason}")]
    ConnectionFailed {
        /// Which system.
        target: String,
        /// What was seen.
        reason: String,
    },
    /// This server cannot serve right now: its database or its queue is not available within the bound.
    #[error("not available: {reason}")]
    Unavailable {
        /// What is missing.
        reason: String,
    },
    /// A defect of ours, or a damaged database. The detail goes to the log, never to a client.
    #[error("internal error; the server's log says more")]
    Internal {
        /// What an operator needs.
        detail: String,
    },
}

/// What a [`Error::NotFound`] did not find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Missing {
    /// An entity of this kind.
    Entity(Kind),
    /// A named location of a fileset.
    LocationName,
    /// A named URI of a model version.
    UriName,
}

/// What a [`Error::AlreadyExists`] found taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Taken {
    /// The name of an entity of this kind.
    Entity(Kind),
    /// An alias of another version of the same model.
    Alias,
}

impl Error {
    /// Shorthand for [`Error::Invalid`].
    pub fn invalid(field: impl Into<String>, reason: impl Into<String>) -> Error {
        Error::Invalid {
            field: field.into(),
            reason: reason.into(),
        }
    }

    /// Shorthand for [`Error::NotFound`] of an entity.
    pub fn not_found(kind: Kind, path: impl Into<String>) -> Error {
        Error::NotFound {
            what: Missing::Entity(kind),
            path: path.into(),
        }
    }

    /// Shorthand for [`Error::AlreadyExists`] of an entity.
    pub fn already_exists(kind: Kind, path: impl Into<String>) -> Error {
        Error::AlreadyExists {
            what: Taken::Entity(kind),
            path: path.into(),
        }
    }

    /// Shorthand for [`Error::Internal`].
    pub fn internal(detail: impl Into<String>) -> Error {
        Error::Internal {
            detail: detail.into(),
        }
    }

    /// Whether the same request may succeed a little later without anybody changing it.
    pub fn retryable(&self) -> bool {
        match self {
            Error::Conflict { .. } | Error::Contended { .. } | Error::Unavailable { .. } => true,
            Error::Invalid { .. }
            | Error::NotFound { .. }
            | Error::AlreadyExists { .. }
            | Error::NotEmpty { .. }
            | Error::InUse { .. }
            | Error::NotInUse { .. }
            | Error::PreconditionFailed { .. }
            | Error::KeyReused
            | Error::Unsupported { .. }
            | Error::Forbidden { .. }
            | Error::Unauthenticated { .. }
            | Error::ConnectionFailed { .. }
            | Error::Internal { .. } => false,
        }
    }
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Missing::Entity(kind) => kind.fmt(f),
            Missing::LocationName => f.write_str("location"),
            Missing::UriName => f.write_str("URI"),
        }
    }
}

impl std::fmt::Display for Taken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Taken::Entity(kind) => kind.fmt(f),
            Taken::Alias => f.write_str("alias"),
        }
    }
}
