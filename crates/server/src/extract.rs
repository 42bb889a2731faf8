//! What handlers take from a request. Each of these refuses in the protocol's envelope, so that none of the
//! framework's own rejections reaches a client.

use axum::body::HttpBody;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, Uri};
use http_body_util::BodyExt;
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;
use treeline_core::{Error, Kind, Path};
use treeline_dispatch::{Precondition, WriteContext};

use crate::app::App;
use crate::error::Refusal;
use crate::{auth, conditional, negotiate};

/// The header that carries the request's id; the gate puts one in where the client sent none.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The names in a path of the API, decoded, top first.
///
/// Collections and names alternate below `/api`, so every second segment is a name. A `%2F` stays inside its name,
/// because the path is split before it is decoded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Segments(Vec<String>);

impl Segments {
    /// Decodes the names. [`Error::Invalid`] where one is not UTF-8.
    pub(crate) fn of(uri: &Uri) -> Result<Segments, Error> {
        const BEFORE_FIRST_NAME: usize = 3; // "", "api", the first collection
        let names = uri
            .path()
            .split('/')
            .skip(BEFORE_FIRST_NAME)
            .step_by(2)
            .map(decode);
        Ok(Segments(names.collect::<Result<_, _>>()?))
    }

    /// The path of an entity of this kind. A name that no rule lets in is not there, which is an answer of that level.
    pub(crate) fn path(&self, kind: Kind) -> Result<Path, Error> {
        let names: Vec<&str> = self
            .0
            .iter()
            .take(kind.lineage().len())
            .map(String::as_str)
            .collect();
        Path::of(kind, &names)
    }

    /// The path that the collection of this kind hangs under; none for the top.
    pub(crate) fn parent(&self, kind: Kind) -> Result<Option<Path>, Error> {
        kind.parent().map(|parent| self.path(parent)).transpose()
    }

    /// The last name.
    pub(crate) fn last(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }
}

/// Decodes one segment of a path.
pub(crate) fn decode(segment: &str) -> Result<String, Error> {
    let decoded = percent_decode_str(segment).decode_utf8();
    decoded
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| Error::invalid("path", "a segment is not UTF-8 once it is decoded"))
}

impl<S: Sync> FromRequestParts<S> for Segments {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Segments, Refusal> {
        Ok(Segments::of(&parts.uri)?)
    }
}

/// The parameters of a query string. Unknown ones are passed over; of one that is given twice the first counts.
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// The value of a parameter.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// Whether a parameter says `true`, in any case; anything else is false.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.text(name)
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }
}

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Query, Refusal> {
        let query = parts.uri.query().unwrap_or("");
        Ok(Query(
            form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
        ))
    }
}

/// What every write carries: who asks, under which request, and on what condition.
pub(crate) struct Write {
    /// The first argument of the dispatcher.
    pub context: WriteContext,
    /// The client said `If-None-Match: *`.
    pub only_if_absent: bool,
}

impl<S: Sync> FromRequestParts<S> for Write {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Write, Refusal> {
        let headers = &parts.headers;
        let mut context = WriteContext::new(auth::principal(headers)?, request_id(headers));
        context.idempotency = parts.extensions.get().cloned();
        if parts.method == Method::POST {
            return Ok(Write {
                context,
                only_if_absent: conditional::only_if_absent(headers)?,
            });
        }
        context.precondition = conditional::if_match(headers)?;
        Ok(Write {
            context,
            only_if_absent: false,
        })
    }
}

impl Write {
    /// Whether the client pinned the state of what it writes.
    pub(crate) fn is_pinned(&self) -> bool {
        self.context.precondition != Precondition::None
    }
}

/// The request's id, as the gate left it.
pub(crate) fn request_id(headers: &HeaderMap) -> &str {
    headers
        .get(REQUEST_ID)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("")
}

/// A JSON body of this type.
pub(crate) struct Json<T>(pub T);

impl<T: DeserializeOwned> FromRequest<App> for Json<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &App) -> Result<Json<T>, Refusal> {
        let OptionalJson(body) = OptionalJson::from_request(request, app).await?;
        body.map(Json)
            .ok_or_else(|| Refusal::invalid("the request needs a JSON body"))
    }
}

/// A JSON body of this type, or none at all. The gate has read it, within all bounds.
pub(crate) struct OptionalJson<T>(pub Option<T>);

impl<T: DeserializeOwned> FromRequest<App> for OptionalJson<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &App) -> Result<OptionalJson<T>, Refusal> {
        if request.body().is_end_stream() {
            return Ok(OptionalJson(None));
        }
        negotiate::check_content_type(request.headers())?;
        let body = request.into_body().collect().await;
        let bytes = body
            .map_err(|_| Refusal::invalid("the body broke off"))?
            .to_bytes();
        // Nesting is bounded by the parser, at 128 levels.
        let parsed = serde_json::from_slice(&bytes);
        parsed.map(|body| OptionalJson(Some(body))).map_err(|error| {
            Refusal::invalid(format!(
                "the body is malformed JSON, or not what this operation takes: {error}"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(path: &str) -> Result<Segments, Error> {
        Segments::of(&path.parse().unwrap())
    }

    #[test]
    fn every_second_segment_is_a_name() {
        let names = |path: &str| segments(path).unwrap().0;
        assert!(names("/api/metalakes").is_empty());
        assert_eq!(names("/api/metalakes/m/catalogs"), ["m"]);
        assert_eq!(
            names("/api/metalakes/m/catalogs/c/schemas/s/models/o/versions/3/uri"),
            ["m", "c", "s", "o", "3"]
        );
    }

    #[test]
    fn a_segment_is_decoded_after_it_is_cut_out() {
        let names = segments("/api/metalakes/a%2Fb%20c%3D%3A./catalogs/%C3%A4")
            .unwrap()
            .0;
        assert_eq!(names, ["a/b c=:.", "ä"]);
        assert!(matches!(
            segments("/api/metalakes/%ff"),
            Err(Error::Invalid { .. })
        ));
    }

    #[test]
    fn a_path_takes_the_names_that_its_kind_has_levels() {
        let found = segments("/api/metalakes/m/catalogs/c/schemas").unwrap();
        assert_eq!(found.parent(Kind::Schema).unwrap().unwrap().to_string(), "m.c");
        assert_eq!(
            segments("/api/metalakes")
                .unwrap()
                .parent(Kind::Metalake)
                .unwrap(),
            None
        );
        assert!(matches!(
            segments("/api/metalakes/m/catalogs/%20")
                .unwrap()
                .path(Kind::Catalog),
            Err(Error::NotFound { .. })
        ));
    }

    #[tokio::test]
    async fn a_flag_is_true_in_any_case_and_else_false() {
        let request = Request::builder()
            .uri("/?a=True&b=TRUE&c=1&d&e=true&e=false&f=a%20b+c")
            .body(())
            .unwrap();
        let (mut parts, ()) = request.into_parts();
        let query = Query::from_request_parts(&mut parts, &()).await.unwrap();
        assert!(query.flag("a") && query.flag("b") && query.flag("e"));
        assert!(!query.flag("c") && !query.flag("d") && !query.flag("missing"));
        assert_eq!(query.text("f"), Some("a b c"));
    }
}
