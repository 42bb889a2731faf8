//! One connection that is kept open: a request goes out, its answer comes in, and nothing is in flight besides.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::answer;

/// No answer may take longer, or a server that hangs would hang the benchmark.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

const BUFFER_BYTES: usize = 16 * 1024;

/// A client's side of one connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Result<Connection> {
        let stream = TcpStream::connect(address)
            .await
            .with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Connection {
            stream,
            received: Vec::with_capacity(BUFFER_BYTES),
        })
    }

    /// Sends one request and waits until its answer is here, which must be a 200.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> Result<()> {
        tokio::time::timeout(ANSWER_WITHIN, self.send_and_receive(request))
            .await
            .with_context(|| format!("no answer within {ANSWER_WITHIN:?}"))?
            .with_context(|| first_line(request))
    }

    async fn send_and_receive(&mut self, request: &[u8]) -> Result<()> {
        self.received.clear();
        self.stream.write_all(request).await?;
        loop {
            let count = self.stream.read_buf(&mut self.received).await?;
            ensure!(count > 0, "the server closed the connection");
            let Some(answer) = answer::parse(&self.received)? else {
                continue;
            };
            ensure!(
                answer.status == 200,
                "answered {}: {}",
                answer.status,
                String::from_utf8_lossy(&self.received)
            );
            ensure!(
                answer.bytes == self.received.len(),
                "{} bytes follow the answer",
                self.received.len() - answer.bytes
            );
            return Ok(());
        }
    }
}

fn first_line(request: &[u8]) -> String {
    let text = String::from_utf8_lossy(request);
    text.lines().next().unwrap_or_default().to_owned()
}
