//! What every write is told before anything else: who asks, under which request, and on what condition.

use treeline_core::{EntityId, EntityTag, Error, Kind, Result, Version};

use crate::transaction::Proof;

/// The first argument of every write.
#[derive(Clone, Debug)]
pub struct WriteContext {
    /// Who asks; goes into the audit and the feed.
    pub principal: String,
    /// The request that this write belongs to, as the client may have named it; goes into the feed and the log.
    pub request_id: String,
    /// Tells it from other requests of that name. What became of an unanswered commit is read off both (ADR 0004).
    pub nonce: u64,
    /// What must hold of the row for the write to happen at all.
    pub precondition: Precondition,
    /// The client's name for this request, if it gave one.
    pub idempotency: Option<Idempotency>,
}

/// A client's name for one request, so that a repeat has the same outcome instead of a second effect (P11).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// Unique for the principal, as long as the server remembers it; at most 256 characters.
    pub key: String,
    /// Equal for equal requests; at most 128 characters.
    pub fingerprint: String,
}

impl WriteContext {
    /// A write by `principal` on no condition.
    pub fn new(principal: impl Into<String>, request_id: impl Into<String>) -> WriteContext {
        WriteContext {
            principal: principal.into(),
            request_id: request_id.into(),
            nonce: fastrand::u64(..),
            precondition: Precondition::None,
            idempotency: None,
        }
    }

    /// What would prove that this request gave that row that version.
    pub(crate) fn proof(&self, id: EntityId, version: Version) -> Proof {
        Proof {
            id,
            version,
            feed_id: self.feed_id(),
        }
    }

    /// What the feed calls this request. No well-formed id of a client has a `#`.
    pub(crate) fn feed_id(&self) -> String {
        format!("{}#{:016x}", self.request_id, self.nonce)
    }
}

/// What the client pinned. A mismatch is the answer (P2); a change that loses a race is applied again only where what is
/// pinned still holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Precondition {
    /// Apply the change to whatever is there.
    #[default]
    None,
    /// The row must be there, in whatever state (`If-Match: *`).
    Exists,
    /// The row must be in one of these states (`If-Match`).
    Tags(Vec<EntityTag>),
}

impl Precondition {
    /// Whether the client pinned anything.
    pub fn is_some(&self) -> bool {
        match self {
            Precondition::None => false,
            Precondition::Exists | Precondition::Tags(_) => true,
        }
    }

    /// The one state that it holds of; none if there are several, or all.
    pub(crate) fn expected(&self) -> Option<EntityTag> {
        let Precondition::Tags(tags) = self else {
            return None;
        };
        let (first, others) = tags.split_first()?;
        others.iter().all(|tag| tag == first).then_some(*first)
    }

    /// What is said where it does not hold. `actual` is the state that the row is in; none if it is gone.
    pub(crate) fn failed(&self, kind: Kind, path: impl ToString, actual: Option<EntityTag>) -> Error {
        Error::PreconditionFailed {
            kind,
            path: path.to_string(),
            expected: self.expected(),
            actual,
        }
    }

    /// [`Error::PreconditionFailed`] unless the row's state is one that the client named.
    pub fn check(&self, kind: Kind, path: &str, actual: EntityTag) -> Result<()> {
        match self {
            Precondition::None | Precondition::Exists => Ok(()),
            Precondition::Tags(tags) if tags.contains(&actual) => Ok(()),
            Precondition::Tags(_) => Err(self.failed(kind, path, Some(actual))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_is_named_twice_is_the_one_that_is_expected() {
        let tag = |version| EntityTag {
            id: EntityId::ROOT,
            version: Version::new(version).unwrap(),
        };
        let expected = |versions: &[i64]| {
            Precondition::Tags(versions.iter().map(|version| tag(*version)).collect()).expected()
        };
        assert_eq!(expected(&[3]), Some(tag(3)));
        assert_eq!(expected(&[3, 3]), Some(tag(3)));
        assert_eq!(expected(&[3, 4]), None);
        assert_eq!(expected(&[]), None);
    }

    #[test]
    fn a_write_is_no_proof_of_another_whose_client_gave_it_the_same_request_id() {
        let contexts = [(); 2].map(|()| WriteContext::new("anna", "trace-17"));
        let [one, other] = contexts.map(|context| context.proof(EntityId::ROOT, Version::FIRST));
        assert_ne!(one, other);
        assert!(one.feed_id.starts_with("trace-17#"));
    }
}
