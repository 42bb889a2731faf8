//! A wire between a server and its database that can be cut at a commit, before or after it went through. The storage suite has
//! one that can do more (`crates/storage/tests/conformance/proxy.rs`); what is a commit on the wire must be known to both.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use treeline_tests::Bed;

/// What happens to the next commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The database never hears of it.
    Before,
    /// The database commits, and its answer is lost.
    After,
}

/// One listening wire; it and its connections live as long as the runtime.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    address: SocketAddr,
    armed: Arc<Mutex<Option<Order>>>,
}

/// Which commit is meant: the server has others on its mind, too.
#[derive(Clone, Debug)]
struct Order {
    cut: Cut,
    /// Stands in the statements of the transaction that is meant.
    mark: String,
    /// It may be one statement that is a transaction by itself, and no commit is asked for.
    fused: bool,
}

/// What one connection has carried.
#[derive(Debug, Default)]
struct Heard {
    inside: bool,
    marked: bool,
}

impl Heard {
    /// Whether the message is of a transaction, and whether it is the commit of one.
    fn hear(&mut self, message: &[u8], mark: &str) -> (bool, bool) {
        if contains(message, "BEGIN") || contains(message, "START TRANSACTION") {
            *self = Heard {
                inside: true,
                marked: false,
            };
        }
        self.marked |= self.inside && !mark.is_empty() && contains(message, mark);
        let inside = self.inside;
        // `READ COMMITTED` stands at the beginning, not at the end.
        let commits = message
            .windows(7)
            .any(|window| window.starts_with(b"COMMIT") && window[6] != b'T')
            || message.ends_with(b"COMMIT");
        if commits || contains(message, "ROLLBACK") {
            self.inside = false;
        }
        (inside, commits)
    }
}

impl Wire {
    /// A wire to the server of a database's URL, and the URL that leads through it.
    pub(crate) async fn to(bed: &Bed, url: &str) -> Result<(Wire, String)> {
        let (account, rest) = url.split_once('@').context("the URL names no user")?;
        let (server, database) = rest.split_once('/').context("the URL names no database")?;
        let listener = TcpListener::bind((bed.host(), 0)).await?;
        let wire = Wire {
            address: listener.local_addr()?,
            armed: Arc::default(),
        };
        // In the clear, or the wire could not read along.
        let plain = if url.starts_with("postgres") {
            "sslmode=disable"
        } else {
            "ssl-mode=disabled"
        };
        let through = format!("{account}@{}/{database}?{plain}", wire.address);
        tokio::spawn(wire.clone().listen(listener, server.to_owned()));
        Ok((wire, through))
    }

    /// Cuts the connection that carries the commit of the next transaction with this mark in it, once. Where that may
    /// be a fused statement, the statement is cut, so that no read may have the mark.
    pub(crate) fn cut_next(&self, cut: Cut, mark: &str, fused: bool) {
        let mark = mark.to_owned();
        *self.armed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Order { cut, mark, fused });
    }

    /// Whether the cut has happened.
    pub(crate) fn is_cut(&self) -> bool {
        self.armed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_none()
    }

    /// What to do to this message.
    fn take(&self, message: &[u8], heard: &mut Heard) -> Option<Cut> {
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        let mark = armed.as_ref().map_or("", |order| order.mark.as_str());
        let (inside, ends) = heard.hear(message, mark);
        let order = armed.as_ref()?;
        let due = if inside {
            ends && heard.marked
        } else {
            order.fused && contains(message, &order.mark)
        };
        if due {
            armed.take().map(|order| order.cut)
        } else {
            None
        }
    }

    async fn listen(self, listener: TcpListener, server: String) {
        while let Ok((client, _)) = listener.accept().await {
            let (wire, server) = (self.clone(), server.clone());
            tokio::spawn(async move {
                // Either end may go away at any time; that is what a wire is for here.
                let _ = wire.carry(client, &server).await;
            });
        }
    }

    async fn carry(&self, mut client: TcpStream, server: &str) -> std::io::Result<()> {
        let mut server = TcpStream::connect(server).await?;
        let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
        let mut heard = Heard::default();
        loop {
            tokio::select! {
                count = client.read(&mut up) => {
                    let bytes = &up[..count?];
                    if bytes.is_empty() {
                        return Ok(());
                    }
                    match self.take(bytes, &mut heard) {
                        Some(Cut::Before) => return Ok(()),
                        Some(Cut::After) => {
                            server.write_all(bytes).await?;
                            // The answer says that the commit is through; it goes no further.
                            let _ = server.read(&mut down).await?;
                            return Ok(());
                        }
                        None => server.write_all(bytes).await?,
                    }
                }
                count = server.read(&mut down) => {
                    let bytes = &down[..count?];
                    if bytes.is_empty() {
                        return Ok(());
                    }
                    client.write_all(bytes).await?;
                }
            }
        }
    }
}

fn contains(message: &[u8], text: &str) -> bool {
    message
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}
