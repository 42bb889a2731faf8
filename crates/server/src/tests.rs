//! The whole stack from a request to the database and back, on a store of each test's own.

mod bodies;
mod conditional;
mod lifecycle;
mod local_locks;
mod routes;
mod sizes;
mod writes;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use serde_json::Value;
use tempfile::TempDir;
use tower::ServiceExt;
use treeline_dispatch::{Dispatcher, Settings};
use treeline_storage::{Store, StoreOptions};

use crate::app::{App, Limits};
use crate::router::router;

/// A server without a socket. Its files go away with it.
struct Bed {
    app: App,
    router: Router,
    _directory: TempDir,
}

impl Bed {
    async fn new() -> Bed {
        Bed::with(Limits::default()).await
    }

    async fn with(limits: Limits) -> Bed {
        Bed::on(limits, false).await
    }

    async fn on(limits: Limits, local_locks: bool) -> Bed {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("treeline.db");
        let store = Store::open(StoreOptions::new(format!("sqlite:{}", file.display())))
            .await
            .unwrap();
        let settings = Settings {
            local_locks,
            ..Settings::new(directory.path().to_owned())
        };
        let dispatcher = Dispatcher::new(store, settings);
        let app = App::new(dispatcher, limits);
        Bed {
            router: router(app.clone()),
            app,
            _directory: directory,
        }
    }

    /// A metalake `m`, a model catalog `c` and a schema `s`.
    async fn with_schema() -> Bed {
        let bed = Bed::new().await;
        for (path, body) in [
            ("/api/metalakes", r#"{"name":"m"}"#),
            ("/api/metalakes/m/catalogs", r#"{"name":"c","type":"model"}"#),
            ("/api/metalakes/m/catalogs/c/schemas", r#"{"name":"s"}"#),
        ] {
            bed.post(path, body).await.assert(200, 0);
        }
        bed
    }

    async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: Body) -> Reply {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.answer(request.body(body).unwrap()).await
    }

    async fn answer(&self, request: Request<Body>) -> Reply {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let text = String::from_utf8(to_bytes(body, usize::MAX).await.unwrap().to_vec()).unwrap();
        Reply {
            status: parts.status,
            headers: parts.headers,
            text,
        }
    }

    async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, &[], Body::empty()).await
    }

    async fn post(&self, path: &str, body: &str) -> Reply {
        self.send(Method::POST, path, &[], Body::from(body.to_owned()))
            .await
    }

    async fn put(&self, path: &str, body: &str, headers: &[(&str, &str)]) -> Reply {
        self.send(Method::PUT, path, headers, Body::from(body.to_owned()))
            .await
    }

    async fn delete(&self, path: &str, headers: &[(&str, &str)]) -> Reply {
        self.send(Method::DELETE, path, headers, Body::empty()).await
    }
}

/// One answer.
#[derive(Debug)]
struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }

    /// Claims the status and the code, and that the answer is the protocol's envelope.
    #[track_caller]
    fn assert(&self, status: u16, code: u64) -> Value {
        let body = self.json();
        assert_eq!(
            (self.status.as_u16(), body["code"].as_u64()),
            (status, Some(code)),
            "{}",
            self.text
        );
        assert_eq!(self.headers["content-type"], "application/json");
        assert!(self.headers.contains_key("x-request-id"));
        if code != 0 {
            for field in ["type", "message"] {
                assert!(
                    body[field].as_str().is_some_and(|text| !text.is_empty()),
                    "{}",
                    self.text
                );
            }
            assert!(
                body["stack"].as_array().is_some_and(|lines| !lines.is_empty()),
                "{}",
                self.text
            );
        }
        body
    }

    /// Claims the class of a refusal too.
    #[track_caller]
    fn assert_class(&self, status: u16, code: u64, class: &str) {
        assert_eq!(self.assert(status, code)["type"], class, "{}", self.text);
    }

    #[track_caller]
    fn tag(&self) -> &str {
        self.headers["etag"].to_str().unwrap()
    }
}
