//! What goes around every answer: `{"code":0, …}` around what was asked for, and the error envelope around a refusal.
//!
//! Bodies are written from typed values straight to bytes. Every envelope but that of the health report has one key
//! beside its code, so one type writes them all.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, ETAG, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use treeline_core::{Entity, EntityTag};

use crate::error::{Code, Refusal};
use crate::wire::{Moment, Wire};

/// What a handler answers.
pub(crate) type Answer = Result<Response, Refusal>;

/// The media type of every answer that is not a page or a metrics text.
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Most answers fit; the others grow it.
const BODY_BYTES_USUAL: usize = 512;

/// A success with this body.
pub(crate) fn json(body: &impl Serialize) -> Response {
    with_status(StatusCode::OK, body)
}

/// Any status with this body.
pub(crate) fn with_status(status: StatusCode, body: &impl Serialize) -> Response {
    let mut bytes = Vec::with_capacity(BODY_BYTES_USUAL);
    let (status, bytes) = match serde_json::to_writer(&mut bytes, body) {
        Ok(()) => (status, bytes),
        Err(error) => {
            tracing::error!(%error, "an answer cannot be written as JSON");
            (StatusCode::INTERNAL_SERVER_ERROR, UNWRITABLE.into())
        }
    };
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// What is said when not even a refusal can be written.
const UNWRITABLE: &[u8] =
    br#"{"code":1002,"type":"RuntimeException","message":"internal error","stack":[""]}"#;

/// `{"code":0}`: done, and there is nothing to show.
pub(crate) fn done() -> Response {
    let mut response = Response::new(Body::from(r#"{"code":0}"#));
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// `{"code":0, "<key>": …}`.
pub(crate) fn one(key: &'static str, value: impl Serialize) -> Response {
    json(&One { key, value })
}

/// An entity under its kind's key, with its tag.
pub(crate) fn entity<W: Wire>(entity: &Entity<W>, moment: Moment) -> Response {
    tagged(one(W::KIND.row().json_key, W::show(entity, moment)), entity.tag())
}

/// Several entities.
pub(crate) fn entities<W: Wire>(key: &'static str, entities: &[Entity<W>]) -> Response {
    one(
        key,
        Each(|| entities.iter().map(|entity| W::show(entity, Moment::Read))),
    )
}

/// Whether a drop found something.
pub(crate) fn dropped(dropped: bool) -> Response {
    one("dropped", dropped)
}

/// The answer with the strong tag of the entity's state.
pub(crate) fn tagged(mut response: Response, tag: EntityTag) -> Response {
    if let Ok(value) = HeaderValue::try_from(format!("\"{tag}\"")) {
        response.headers_mut().insert(ETAG, value);
    }
    response
}

/// `304`: the client holds this state already.
pub(crate) fn not_modified(tag: EntityTag) -> Response {
    tagged(StatusCode::NOT_MODIFIED.into_response(), tag)
}

struct One<T> {
    key: &'static str,
    value: T,
}

impl<T: Serialize> Serialize for One<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("code", &0)?;
        map.serialize_entry(self.key, &self.value)?;
        map.end()
    }
}

/// A list that is written while it is made, without a vector of its own.
pub(crate) struct Each<F>(pub F);

impl<F, I> Serialize for Each<F>
where
    F: Fn() -> I,
    I: Iterator<Item: Serialize>,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

/// The body of every refusal.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Error")]
pub(crate) struct ErrorBody<'a> {
    /// Which class of error, as a number; never 0.
    #[schemars(range(min = 1))]
    code: u16,
    /// The class that clients map to one of theirs.
    #[serde(rename = "type")]
    #[schemars(length(min = 1))]
    class: &'a str,
    /// What happened, in words for people.
    #[schemars(length(min = 1))]
    message: &'a str,
    /// One line: the class and the message. Some clients format an error only when it is there.
    #[schemars(length(min = 1))]
    stack: [String; 1],
    /// In conflicts: the tag that was expected, or null.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<Option<String>>,
    /// In conflicts: the tag that was met, or null.
    #[serde(skip_serializing_if = "Option::is_none")]
    actual: Option<Option<String>>,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let tag = |tag: Option<EntityTag>| tag.map(|tag| tag.to_string());
        let body = ErrorBody {
            code: self.code as u16,
            class: &self.class,
            message: &self.message,
            stack: [format!("{}: {}", self.class, self.message)],
            expected: self.versions.map(|versions| tag(versions.expected)),
            actual: self.versions.map(|versions| tag(versions.actual)),
        };
        let mut response = with_status(self.status, &body);
        if self.retryable {
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self.code == Code::Unauthorized {
            let challenge = HeaderValue::from_static("Basic realm=\"treeline\"");
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::to_bytes;
    use treeline_core::{EntityId, Error, Kind, Version};

    async fn text(response: Response) -> String {
        String::from_utf8(to_bytes(response.into_body(), 10_000).await.unwrap().to_vec()).unwrap()
    }

    #[tokio::test]
    async fn a_success_is_code_0_beside_one_key() {
        assert_eq!(text(done()).await, r#"{"code":0}"#);
        assert_eq!(text(dropped(false)).await, r#"{"code":0,"dropped":false}"#);
        assert_eq!(
            text(one("names", Each(|| ["a", "b"].iter()))).await,
            r#"{"code":0,"names":["a","b"]}"#
        );
    }

    #[tokio::test]
    async fn a_refusal_has_its_four_fields() {
        let response = Refusal::from(Error::invalid("name", "is blank")).into_response();
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
        insta::assert_snapshot!(
            text(response).await,
            @r#"{"code":1001,"type":"IllegalArgumentException","message":"`name` is not valid: is blank","stack":["IllegalArgumentException: `name` is not valid: is blank"]}"#
        );
    }

    #[tokio::test]
    async fn a_conflict_names_both_sides_and_says_when_to_come_again() {
        let tag = EntityTag {
            id: EntityId::new(7).unwrap(),
            version: Version::new(2).unwrap(),
        };
        let error = Error::Conflict {
            kind: Kind::Schema,
            path: "a.b.c".into(),
            expected: Some(tag),
            actual: None,
        };
        let response = Refusal::from(error).into_response();
        assert_eq!(response.headers()[RETRY_AFTER], "1");
        let body = text(response).await;
        assert!(body.contains(r#""expected":"7-2","actual":null"#), "{body}");
    }

    #[tokio::test]
    async fn a_refused_scheme_is_told_the_one_that_works() {
        let response = Refusal::from(Error::Unauthenticated { reason: "x".into() }).into_response();
        assert!(response.headers().contains_key(WWW_AUTHENTICATE));
    }
}
