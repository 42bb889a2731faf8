//! A wire between a store and its database server that can be cut at a commit, before or after it went through, and that can
//! say what the server would say on a worse day.
//!
//! The races of two servers have a wire of their own (`tests/two_servers/wire.rs`), which only cuts; what is a commit on the
//! wire must be known to both.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What happens to the next commit, or to the next statement that is one by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    /// The server never hears of it.
    Before,
    /// The server commits, and its answer is lost.
    After,
    /// The server never hears of it, and the store is told this.
    Refused(Said),
    /// The server commits, and the store is told this instead of its answer.
    Belied(Said),
}

/// An error in the words of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Said {
    /// Its severity and its code.
    Postgres(&'static str, &'static str),
    /// Its number.
    MySql(u16),
}

impl Said {
    fn bytes(self) -> Vec<u8> {
        match self {
            Said::Postgres(severity, code) => {
                let mut fields = Vec::new();
                for (field, text) in [(b'S', severity), (b'V', severity), (b'C', code), (b'M', "forged")] {
                    fields.push(field);
                    fields.extend(text.as_bytes());
                    fields.push(0);
                }
                fields.push(0);
                let length = u32::try_from(fields.len() + 4).unwrap();
                let mut message = vec![b'E'];
                message.extend(length.to_be_bytes());
                message.extend(fields);
                // That it is ready for more, with no transaction.
                message.extend(*b"Z\0\0\0\x05I");
                message
            }
            Said::MySql(number) => {
                let mut payload = vec![0xff];
                payload.extend(number.to_le_bytes());
                payload.extend(b"#HY000forged");
                let mut packet = u32::try_from(payload.len()).unwrap().to_le_bytes();
                // The last byte is the packet's number in its conversation: a command has 0.
                packet[3] = 1;
                [packet.to_vec(), payload].concat()
            }
        }
    }
}

/// One listening wire. Its connections end with the runtime of the test.
#[derive(Clone)]
pub(crate) struct Proxy {
    shared: Arc<Shared>,
    port: u16,
}

struct Shared {
    armed: Mutex<Armed>,
    /// How long each new connection waits before anything is carried.
    delay: Mutex<Duration>,
    promoted: AtomicBool,
    open: watch::Sender<usize>,
    cut: watch::Sender<()>,
}

/// What happens to messages with these words in them: the one once, and then the other to all.
#[derive(Default)]
struct Armed {
    once: Option<(Cut, &'static str)>,
    always: Option<(Cut, &'static str)>,
}

impl Proxy {
    pub(crate) async fn start(target: String) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Proxy {
            shared: Arc::new(Shared {
                armed: Mutex::default(),
                delay: Mutex::default(),
                promoted: AtomicBool::new(false),
                open: watch::Sender::new(0),
                cut: watch::Sender::new(()),
            }),
            port: listener.local_addr().unwrap().port(),
        };
        let shared = Arc::clone(&proxy.shared);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (target, shared) = (target.clone(), Arc::clone(&shared));
                let mut cut = shared.cut.subscribe();
                let delay = *shared.delay.lock().unwrap();
                shared.open.send_modify(|open| *open += 1);
                tokio::spawn(async move {
                    let _ = tokio::time::timeout(delay, std::future::pending::<()>()).await;
                    // Either side may go away at any time; that is what this is for.
                    tokio::select! {
                        _ = carry(client, &target, &shared) => {}
                        _ = cut.changed() => {}
                    }
                    shared.open.send_modify(|open| *open -= 1);
                });
            }
        });
        proxy
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// From now on the server takes so long for each login.
    pub(crate) fn delay(&self, delay: Duration) {
        *self.shared.delay.lock().unwrap() = delay;
    }

    /// Cuts the connection that carries the next message with these words in it, once.
    pub(crate) fn arm(&self, cut: Cut, text: &'static str) {
        self.shared.armed.lock().unwrap().once = Some((cut, text));
    }

    /// Does so to every message with these words in it, once what happens once is over.
    pub(crate) fn arm_for_good(&self, cut: Cut, text: &'static str) {
        self.shared.armed.lock().unwrap().always = Some((cut, text));
    }

    pub(crate) fn disarm(&self) {
        *self.shared.armed.lock().unwrap() = Armed::default();
    }

    /// From now on the server at the other end seems to have been promoted once more: PostgreSQL's timeline is one higher.
    pub(crate) fn promote(&self) {
        self.shared.promoted.store(true, Ordering::Relaxed);
    }

    /// Whether the cut has happened.
    pub(crate) fn spent(&self) -> bool {
        self.shared.armed.lock().unwrap().once.is_none()
    }

    /// Waits until the number of connections is as it shall be, which takes no longer than a packet's way.
    pub(crate) async fn until_open(&self, expected: impl Fn(usize) -> bool) {
        let mut open = self.shared.open.subscribe();
        let reached = open.wait_for(|open| expected(*open));
        let reached = tokio::time::timeout(Duration::from_secs(10), reached)
            .await
            .is_ok();
        assert!(reached, "{} connections are open", *self.shared.open.borrow());
    }

    /// Cuts every connection that there is, and waits until it has happened.
    pub(crate) async fn cut_all(&self) {
        self.shared.cut.send_replace(());
        self.until_open(|open| open == 0).await;
    }
}

/// What is armed for these bytes.
fn due(armed: &Mutex<Armed>, bytes: &[u8]) -> Option<Cut> {
    let mut armed = armed.lock().unwrap();
    let (cut, text) = armed.once.or(armed.always)?;
    // PostgreSQL begins with READ COMMITTED, which is not a COMMIT.
    let ends_there = |end: usize| bytes.get(end).is_none_or(|next| !next.is_ascii_alphabetic());
    let found = bytes
        .windows(text.len())
        .enumerate()
        .any(|(start, window)| window == text.as_bytes() && ends_there(start + text.len()));
    found.then(|| {
        armed.once = None;
        cut
    })
}

/// Makes each timeline that is told one higher: a field of eight hexadecimal digits.
fn raise_timeline(bytes: &mut [u8]) {
    const FIELD: &[u8] = b"\0\0\0\x080000000";
    for at in FIELD.len()..bytes.len() {
        if bytes[..at].ends_with(FIELD) {
            bytes[at] += 1;
        }
    }
}

async fn carry(mut client: TcpStream, target: &str, shared: &Shared) -> std::io::Result<()> {
    let mut server = TcpStream::connect(target).await?;
    let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            read = client.read(&mut up) => {
                let bytes = &up[..read?];
                if bytes.is_empty() {
                    return Ok(());
                }
                match due(&shared.armed, bytes) {
                    Some(Cut::Before) => return Ok(()),
                    Some(Cut::After) => {
                        server.write_all(bytes).await?;
                        // The server's answer says that it is through; it goes no further.
                        return server.read(&mut down).await.map(drop);
                    }
                    Some(Cut::Refused(said)) => client.write_all(&said.bytes()).await?,
                    Some(Cut::Belied(said)) => {
                        server.write_all(bytes).await?;
                        server.read(&mut down).await.map(drop)?;
                        client.write_all(&said.bytes()).await?;
                    }
                    None => server.write_all(bytes).await?,
                }
            }
            read = server.read(&mut down) => {
                let bytes = &mut down[..read?];
                if bytes.is_empty() {
                    return Ok(());
                }
                if shared.promoted.load(Ordering::Relaxed) {
                    raise_timeline(bytes);
                }
                client.write_all(bytes).await?;
            }
        }
    }
}
