//! A server on a socket: what it says when it cannot start, and how it ends.

use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, Options};
use crate::serve::Server;
use crate::wiring;

fn config(directory: &Path, options: Options) -> Config {
    let listen = options.listen.or_else(|| Some("127.0.0.1:0".into()));
    Config::load(Options {
        listen,
        data_dir: Some(directory.join("data")),
        ..options
    })
    .unwrap()
}

struct Running {
    address: std::net::SocketAddr,
    stop: CancellationToken,
    ended: JoinHandle<()>,
}

impl Running {
    async fn start(config: &Config) -> Running {
        let server = Server::open(config).await.unwrap();
        let (address, stop) = (server.address().unwrap(), CancellationToken::new());
        Running {
            address,
            stop: stop.clone(),
            ended: tokio::spawn(server.run(stop)),
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }
}

async fn read_all(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    stream.read_to_end(&mut text).await.unwrap();
    String::from_utf8(text).unwrap()
}

/// Reads until an answer's body is there; the bodies here end in `}`.
async fn read_answer(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    while !text.ends_with('}') {
        let mut piece = [0; 4096];
        let length = stream.read(&mut piece).await.unwrap();
        assert_ne!(length, 0, "the connection ended within an answer: {text}");
        text.push_str(std::str::from_utf8(&piece[..length]).unwrap());
    }
    text
}

/// The shutdown begins while half a request is sent. The rest is still taken, and answered, and then the connection
/// ends; one that is idle ends at once, and so does the server.
#[tokio::test]
async fn a_shutdown_finishes_the_request_that_is_in_flight() {
    let directory = tempfile::tempdir().unwrap();
    let server = Running::start(&config(directory.path(), Options::default())).await;
    let (mut idle, mut busy) = (server.connect().await, server.connect().await);
    idle.write_all(b"GET /api/version HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    assert!(read_answer(&mut idle).await.starts_with("HTTP/1.1 200"));

    let head =
        b"POST /api/metalakes HTTP/1.1\r\nhost: x\r\ncontent-length: 12\r\nexpect: 100-continue\r\n\r\n";
    busy.write_all(head).await.unwrap();
    let mut told = [0; 25];
    busy.read_exact(&mut told).await.unwrap();
    assert_eq!(
        &told, b"HTTP/1.1 100 Continue\r\n\r\n",
        "the server waits for the body now"
    );
    server.stop.cancel();
    assert_eq!(read_all(&mut idle).await, "");
    busy.write_all(br#"{"name":"m"}"#).await.unwrap();
    assert!(read_all(&mut busy).await.starts_with("HTTP/1.1 200"));
    server.ended.await.unwrap();
    let rows = wiring::dump(&config(directory.path(), Options::default()))
        .await
        .unwrap();
    assert!(rows.contains(r#""kind":"metalake""#));
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_ever() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        shutdown_ms_max: Some(50),
        ..Options::default()
    };
    let server = Running::start(&config(directory.path(), options)).await;
    let mut stuck = server.connect().await;
    let head =
        b"POST /api/metalakes HTTP/1.1\r\nhost: x\r\ncontent-length: 12\r\nexpect: 100-continue\r\n\r\n";
    stuck.write_all(head).await.unwrap();
    stuck.read_exact(&mut [0; 25]).await.unwrap();
    server.stop.cancel();
    tokio::time::timeout(Duration::from_secs(20), server.ended)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_head_that_does_not_arrive_ends_its_connection() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        head_read_ms_max: Some(50),
        ..Options::default()
    };
    let server = Running::start(&config(directory.path(), options)).await;
    let mut slow = server.connect().await;
    slow.write_all(b"GET /api/version HTTP/1.1\r\nho").await.unwrap();
    assert!(!read_all(&mut slow).await.contains("200 OK"));
    server.stop.cancel();
    server.ended.await.unwrap();
}

/// There is one place. Its client asks for a list that is longer than what the sockets buffer, and reads nothing of it.
/// The next client is served once the place is given back.
#[tokio::test]
async fn a_client_that_does_not_read_its_answer_is_given_up() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        answer_stall_ms_max: Some(200),
        connections_max: Some(1),
        ..Options::default()
    };
    let server = Running::start(&config(directory.path(), options)).await;
    let comment = "x".repeat(4_000_000);
    for name in ["a", "b", "c"] {
        let body = format!(r#"{{"name":"{name}","comment":"{comment}"}}"#);
        let length = body.len();
        let mut client = server.connect().await;
        let request = format!(
            "POST /api/metalakes HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        client.write_all(request.as_bytes()).await.unwrap();
        assert!(read_all(&mut client).await.starts_with("HTTP/1.1 200"));
    }
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 * 1024).unwrap();
    let mut deaf = socket.connect(server.address).await.unwrap();
    deaf.write_all(b"GET /api/metalakes HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();

    let mut next = server.connect().await;
    next.write_all(b"GET /api/version HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    let answered = tokio::time::timeout(Duration::from_secs(20), read_answer(&mut next)).await;
    assert!(answered.unwrap().starts_with("HTTP/1.1 200"));
    drop(deaf);
    server.stop.cancel();
    server.ended.await.unwrap();
}

#[tokio::test]
async fn an_idle_connection_outlives_the_bound_on_reading_an_answer() {
    const BOUND_MS: u64 = 50;
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        answer_stall_ms_max: Some(BOUND_MS),
        ..Options::default()
    };
    let server = Running::start(&config(directory.path(), options)).await;
    let mut client = server.connect().await;
    for _ in 0..2 {
        client
            .write_all(b"GET /api/version HTTP/1.1\r\nhost: x\r\n\r\n")
            .await
            .unwrap();
        assert!(read_answer(&mut client).await.starts_with("HTTP/1.1 200"));
        let ended = tokio::time::timeout(Duration::from_millis(BOUND_MS * 4), client.read(&mut [0])).await;
        assert!(ended.is_err(), "the server ended an idle connection");
    }
    server.stop.cancel();
    server.ended.await.unwrap();
}

/// Both servers are given one address. The second must not touch the data directory either.
#[tokio::test]
async fn a_port_that_is_taken_is_said_before_anything_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let options = Options {
        listen: Some(address.clone()),
        ..Options::default()
    };
    let told = Server::open(&config(directory.path(), options))
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(told.contains(&address) && told.contains("taken"), "{told}");
    assert!(!directory.path().join("data").exists());
}

#[tokio::test]
async fn a_data_directory_that_cannot_be_one_is_named() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("data"), "a file").unwrap();
    let config = config(directory.path(), Options::default());
    let told = Server::open(&config).await.err().unwrap().to_string();
    assert!(
        told.contains(config.data_dir.to_str().unwrap()) && !told.contains('\n'),
        "{told}"
    );
}

#[tokio::test]
async fn a_database_that_cannot_be_one_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x.db");
    std::fs::write(
        &file,
        "not a database at all, but long enough to be taken for one".repeat(100),
    )
    .unwrap();
    let url = format!("sqlite:{}", file.display());
    let options = Options {
        database: Some(url.clone()),
        ..Options::default()
    };
    let told = Server::open(&config(directory.path(), options))
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(told.contains(&url) && !told.contains('\n'), "{told}");
}

#[tokio::test]
async fn an_audit_of_a_database_that_is_not_there_makes_none() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path(), Options::default());
    assert!(
        wiring::check(&config)
            .await
            .unwrap_err()
            .to_string()
            .contains("treeline.db")
    );
    assert!(!config.data_dir.exists());
    Server::open(&config).await.unwrap();
    assert_eq!(wiring::check(&config).await.unwrap(), []);
    assert_eq!(wiring::gc(&config).await.unwrap(), 0);
    let report = wiring::migrate(&config).await.unwrap();
    assert_eq!(report.from, report.to);
}
