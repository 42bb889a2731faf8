//! A wire between a store and its database server that can be cut at a commit, before or after it went through.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What happens to the next commit, or to the next statement that is one by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    /// The server never hears of it.
    Before,
    /// The server commits, and its answer is lost.
    After,
}

/// One listening wire. Its connections end with the runtime of the test.
#[derive(Clone)]
pub(crate) struct Proxy {
    armed: Arc<Mutex<Option<(Cut, &'static str)>>>,
    port: u16,
}

impl Proxy {
    pub(crate) async fn start(target: String) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Proxy {
            armed: Arc::default(),
            port: listener.local_addr().unwrap().port(),
        };
        let armed = Arc::clone(&proxy.armed);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (target, armed) = (target.clone(), Arc::clone(&armed));
                tokio::spawn(async move {
                    // Either side may go away at any time; that is what this is for.
                    let _ = carry(client, &target, &armed).await;
                });
            }
        });
        proxy
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Cuts the connection that carries the next message with these words in it, once.
    pub(crate) fn arm(&self, cut: Cut, text: &'static str) {
        *self.armed.lock().unwrap() = Some((cut, text));
    }

    /// Whether the cut has happened.
    pub(crate) fn spent(&self) -> bool {
        self.armed.lock().unwrap().is_none()
    }
}

/// What is armed for these bytes.
fn due(armed: &Mutex<Option<(Cut, &'static str)>>, bytes: &[u8]) -> Option<Cut> {
    let mut armed = armed.lock().unwrap();
    let (cut, text) = (*armed)?;
    // PostgreSQL begins with READ COMMITTED, which is not a COMMIT.
    let ends_there = |end: usize| bytes.get(end).is_none_or(|next| !next.is_ascii_alphabetic());
    let found = bytes
        .windows(text.len())
        .enumerate()
        .any(|(start, window)| window == text.as_bytes() && ends_there(start + text.len()));
    found.then(|| {
        *armed = None;
        cut
    })
}

async fn carry(
    mut client: TcpStream,
    target: &str,
    armed: &Mutex<Option<(Cut, &'static str)>>,
) -> std::io::Result<()> {
    let mut server = TcpStream::connect(target).await?;
    let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            read = client.read(&mut up) => {
                let bytes = &up[..read?];
                if bytes.is_empty() {
                    return Ok(());
                }
                match due(armed, bytes) {
                    Some(Cut::Before) => return Ok(()),
                    Some(Cut::After) => {
                        server.write_all(bytes).await?;
                        // The server's answer says that it is through; it goes no further.
                        return server.read(&mut down).await.map(drop);
                    }
                    None => server.write_all(bytes).await?,
                }
            }
            read = server.read(&mut down) => {
                let bytes = &down[..read?];
                if bytes.is_empty() {
                    return Ok(());
                }
                client.write_all(bytes).await?;
            }
        }
    }
}
