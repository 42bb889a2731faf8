//! A client that keeps one connection, opens it when it is needed, and never sends a request twice.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, ETAG, HOST, HeaderMap};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use treeline_core::EntityTag;

/// No request may take longer, however busy the machine is.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// One connection to one server.
#[derive(Debug)]
pub struct Client {
    address: SocketAddr,
    sender: Option<SendRequest<Full<Bytes>>>,
}

/// What a server said.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as it came.
    pub text: String,
    /// The body as JSON; null where it is none.
    pub json: Value,
}

impl Client {
    /// A client that connects with its first request.
    pub fn new(address: SocketAddr) -> Client {
        Client {
            address,
            sender: None,
        }
    }

    /// Reads.
    pub async fn get(&mut self, path: &str) -> Result<Answer> {
        self.send(Method::GET, path, &[], "").await
    }

    /// Reads with each of these at the same time, which makes their servers open connections to their database.
    pub async fn all_get(clients: impl IntoIterator<Item = Client>, path: &str) -> Result<Vec<Answer>> {
        let mut asked = JoinSet::new();
        for mut client in clients {
            let path = path.to_owned();
            asked.spawn(async move { client.get(&path).await });
        }
        asked.join_all().await.into_iter().collect()
    }

    /// Creates, and whatever else the protocol posts.
    pub async fn post(&mut self, path: &str, body: &Value) -> Result<Answer> {
        self.send(Method::POST, path, &[], &body.to_string()).await
    }

    /// Alters.
    pub async fn put(&mut self, path: &str, body: &Value) -> Result<Answer> {
        self.send(Method::PUT, path, &[], &body.to_string()).await
    }

    /// Enables or disables.
    pub async fn patch(&mut self, path: &str, body: &Value) -> Result<Answer> {
        self.send(Method::PATCH, path, &[], &body.to_string()).await
    }

    /// Drops.
    pub async fn delete(&mut self, path: &str) -> Result<Answer> {
        self.send(Method::DELETE, path, &[], "").await
    }

    /// Any request. A body is JSON unless a header says otherwise.
    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Answer> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.address.to_string());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let says_type = headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case(CONTENT_TYPE.as_str()));
        if !body.is_empty() && !says_type {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request.body(Full::new(Bytes::from(body.to_owned())))?;
        tokio::time::timeout(ANSWER_WITHIN, self.exchange(request))
            .await
            .with_context(|| format!("no answer within {ANSWER_WITHIN:?}"))?
    }

    async fn exchange(&mut self, request: Request<Full<Bytes>>) -> Result<Answer> {
        let mut kept = self.sender.take();
        if let Some(sender) = &mut kept
            && sender.ready().await.is_err()
        {
            // The server closed the connection while it was idle; nothing was sent on it.
            kept = None;
        }
        let mut sender = match kept {
            Some(sender) => sender,
            None => self.connect().await?,
        };
        let response = sender.send_request(request).await?;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await?.to_bytes();
        self.sender = Some(sender);
        let text = String::from_utf8(bytes.to_vec()).context("the answer is no UTF-8")?;
        let json = serde_json::from_str(&text).unwrap_or(Value::Null);
        Ok(Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            text,
            json,
        })
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        // It ends with the connection; what went wrong on it reaches the request that was waiting.
        tokio::spawn(connection);
        Ok(sender)
    }
}

impl Answer {
    /// The protocol's code.
    pub fn code(&self) -> Option<i64> {
        self.json.get("code").and_then(Value::as_i64)
    }

    /// The name of the exception; empty where there is none.
    pub fn exception(&self) -> &str {
        self.json.get("type").and_then(Value::as_str).unwrap_or_default()
    }

    /// The state that the answer is about.
    pub fn tag(&self) -> Result<EntityTag> {
        let header = self
            .headers
            .get(ETAG)
            .context("the answer has no ETag")?
            .to_str()?;
        Ok(header.trim_matches('"').parse()?)
    }

    /// The answer, if it is a success.
    pub fn ok(self) -> Result<Answer> {
        ensure!(
            self.status == 200 && self.code() == Some(0),
            "expected success, got {}: {}",
            self.status,
            self.text
        );
        Ok(self)
    }

    /// Fails unless this is the protocol's envelope of an error with that status and code.
    pub fn refused(&self, status: u16, code: i64) -> Result<()> {
        let found = format!("{}: {}", self.status, self.text);
        ensure!(
            self.status == status && self.code() == Some(code),
            "expected {status} with code {code}, got {found}"
        );
        self.is_error_envelope()
    }

    /// Fails unless this is the protocol's envelope of some error that is the client's own.
    pub fn is_error_envelope(&self) -> Result<()> {
        let found = format!("{}: {}", self.status, self.text);
        ensure!(
            (400..500).contains(&self.status),
            "expected a client's error, got {found}"
        );
        ensure!(self.code().is_some_and(|code| code >= 1001), "no code in {found}");
        for field in ["type", "message"] {
            let text = self.json.get(field).and_then(Value::as_str).unwrap_or_default();
            ensure!(!text.is_empty(), "no `{field}` in {found}");
        }
        ensure!(
            self.json.get("stack").is_some_and(Value::is_array),
            "no `stack` in {found}"
        );
        let content_type = self
            .headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        ensure!(
            content_type.starts_with("application/json"),
            "content type `{content_type}` of {found}"
        );
        Ok(())
    }
}
