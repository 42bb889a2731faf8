//! Requests byte by byte, for what no client library would send.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Answer;

/// No answer may take longer.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// A connection without any understanding of HTTP on the way out.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

/// The head of a request whose body has that many bytes.
pub fn head(method: &str, target: &str, body_bytes: usize) -> String {
    format!(
        "{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {body_bytes}\r\n\r\n"
    )
}

impl Connection {
    /// Connects.
    pub async fn open(address: SocketAddr) -> Result<Connection> {
        Ok(Connection {
            stream: TcpStream::connect(address).await?,
            received: Vec::new(),
        })
    }

    /// Sends bytes as they are.
    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) -> Result<()> {
        self.stream.write_all(bytes.as_ref()).await?;
        Ok(())
    }

    /// Sends bytes for as long as the server takes them: one that has refused already may have stopped reading.
    pub async fn write_while_taken(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).await.is_ok()
    }

    /// Reads up to the end of one head, and answers it.
    pub async fn read_head(&mut self) -> Result<String> {
        tokio::time::timeout(ANSWER_WITHIN, async {
            loop {
                if let Some(end) = find(&self.received, b"\r\n\r\n") {
                    let head: Vec<u8> = self.received.drain(..end + 4).collect();
                    return Ok(String::from_utf8_lossy(&head).into_owned());
                }
                self.read_more().await?;
            }
        })
        .await
        .context("no answer within the bound")?
    }

    /// Reads one whole answer.
    pub async fn read_answer(&mut self) -> Result<Answer> {
        let head = self.read_head().await?;
        let mut lines = head.lines();
        let status_line = lines.next().unwrap_or_default();
        let status = status_line
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let status = status.with_context(|| format!("`{status_line}` is no status line"))?;
        let mut headers = HeaderMap::new();
        for line in lines {
            if let Some((name, value)) = line.split_once(':') {
                let name = HeaderName::from_bytes(name.as_bytes())?;
                headers.append(name, HeaderValue::from_str(value.trim())?);
            }
        }
        let length = headers
            .get("content-length")
            .and_then(|value| value.to_str().ok());
        let length: usize = length.and_then(|length| length.parse().ok()).unwrap_or(0);
        tokio::time::timeout(ANSWER_WITHIN, async {
            while self.received.len() < length {
                self.read_more().await?;
            }
            anyhow::Ok(())
        })
        .await
        .context("no whole answer within the bound")??;
        let body: Vec<u8> = self.received.drain(..length).collect();
        let text = String::from_utf8(body).context("the answer is no UTF-8")?;
        let json = serde_json::from_str(&text).unwrap_or(Value::Null);
        Ok(Answer {
            status,
            headers,
            text,
            json,
        })
    }

    async fn read_more(&mut self) -> Result<()> {
        let mut buffer = [0; 16 * 1024];
        let count = self.stream.read(&mut buffer).await?;
        ensure!(
            count > 0,
            "the server closed the connection: {}",
            String::from_utf8_lossy(&self.received)
        );
        self.received.extend_from_slice(&buffer[..count]);
        Ok(())
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
