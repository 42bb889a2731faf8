//! A wire between a store and its database server that can be cut at a commit, before or after it went through.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What happens to the next commit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    /// The server never hears of it.
    Before,
    /// The server commits, and its answer is lost.
    After,
}

const NONE: u8 = 0;
const BEFORE: u8 = 1;
const AFTER: u8 = 2;

/// One listening wire. Its connections end with the runtime of the test.
#[derive(Clone)]
pub(crate) struct Proxy {
    armed: Arc<AtomicU8>,
    port: u16,
}

impl Proxy {
    pub(crate) async fn start(target: String) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Proxy {
            armed: Arc::new(AtomicU8::new(NONE)),
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

    /// Cuts the connection that carries the next commit, once.
    pub(crate) fn arm(&self, cut: Cut) {
        let code = match cut {
            Cut::Before => BEFORE,
            Cut::After => AFTER,
        };
        self.armed.store(code, Ordering::SeqCst);
    }

    /// Whether the cut has happened.
    pub(crate) fn spent(&self) -> bool {
        self.armed.load(Ordering::SeqCst) == NONE
    }
}

async fn carry(mut client: TcpStream, target: &str, armed: &AtomicU8) -> std::io::Result<()> {
    let mut server = TcpStream::connect(target).await?;
    let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            read = client.read(&mut up) => {
                let bytes = &up[..read?];
                if bytes.is_empty() {
                    return Ok(());
                }
                let commits = bytes.windows(6).any(|window| window == b"COMMIT");
                match if commits { armed.swap(NONE, Ordering::SeqCst) } else { NONE } {
                    BEFORE => return Ok(()),
                    AFTER => {
                        server.write_all(bytes).await?;
                        // The server's answer says that the commit is through; it goes no further.
                        return server.read(&mut down).await.map(drop);
                    }
                    _ => server.write_all(bytes).await?,
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
