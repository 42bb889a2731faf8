//! What an operator meets: stopping, and starting where a server cannot.

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::net::TcpStream;
use treeline_tests::{Bed, Connection, Tree, eventually};

/// The request is in its handler (the server has asked for the body) when the server is told to stop. From then on
/// nobody else gets in, but this one is served to its end.
#[tokio::test]
async fn a_server_that_is_told_to_stop_finishes_the_requests_in_flight() -> Result<()> {
    let bed = Bed::new()?;
    let mut server = bed.start().await?;
    let body = json!({"name": "last"}).to_string();
    let mut in_flight = Connection::open(server.address()).await?;
    let head = format!(
        "POST /api/metalakes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nExpect: 100-continue\r\n\r\n",
        body.len()
    );
    in_flight.write(head).await?;
    let go_on = in_flight.read_head().await?;
    ensure!(go_on.starts_with("HTTP/1.1 100"), "{go_on}");

    server.ask_to_stop().await?;
    let address = server.address();
    eventually("nobody else gets in", async || {
        Ok(TcpStream::connect(address).await.is_err())
    })
    .await?;
    in_flight.write(&body).await?;
    in_flight.read_answer().await?.ok()?;
    let status = server.wait().await?;
    ensure!(status.success(), "the server ended with {status}");

    let server = bed.start().await?;
    server.client().get("/api/metalakes/last").await?.ok()?;
    Ok(())
}

#[tokio::test]
async fn an_idle_connection_does_not_keep_a_server_from_stopping() -> Result<()> {
    let bed = Bed::new()?;
    let mut server = bed.start().await?;
    let mut idle = server.client();
    idle.get("/api/version").await?.ok()?;
    let silent = TcpStream::connect(server.address()).await?;
    server.stop().await?;
    drop((idle, silent));
    Ok(())
}

/// Whoever is first makes the tables; the other waits for them.
#[tokio::test]
async fn servers_that_start_at_once_on_an_empty_database_all_serve() -> Result<()> {
    for _ in 0..10 {
        let bed = Bed::new()?;
        let (one, two, three) = tokio::try_join!(bed.start(), bed.start(), bed.start())?;
        for (number, server) in [one, two, three].iter().enumerate() {
            server
                .client()
                .post("/api/metalakes", &json!({"name": format!("m{number}")}))
                .await?
                .ok()?;
        }
        bed.check_is_clean().await?;
        ensure!(
            bed.rows().await?.live("metalake").count() == 3,
            "not all metalakes are there"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_port_that_is_taken_is_named_and_the_exit_code_is_1() -> Result<()> {
    let bed = Bed::new()?;
    let server = bed.start().await?;
    let address = server.address().to_string();
    let data = bed.path("other").display().to_string();
    let outcome = bed
        .run(&["serve", "--listen", &address, "--data-dir", &data])
        .await?;
    ensure!(
        outcome.code == Some(1),
        "exit code {:?}: {}",
        outcome.code,
        outcome.text()
    );
    ensure!(outcome.text().contains(&address), "{}", outcome.text());
    server.client().get("/api/version").await?.ok()?;
    Ok(())
}

#[tokio::test]
async fn a_data_directory_that_cannot_be_one_is_named_and_the_exit_code_is_1() -> Result<()> {
    let bed = Bed::new()?;
    std::fs::write(bed.path("file"), "x")?;
    for place in ["file", "file/below"] {
        let place = bed.path(place).display().to_string();
        let outcome = bed
            .run(&["serve", "--listen", "127.0.0.1:0", "--data-dir", &place])
            .await?;
        ensure!(
            outcome.code == Some(1),
            "exit code {:?}: {}",
            outcome.code,
            outcome.text()
        );
        ensure!(outcome.text().contains(&place), "{}", outcome.text());
        ensure!(!outcome.text().contains("panicked"), "{}", outcome.text());
    }
    Ok(())
}

#[tokio::test]
async fn a_file_that_is_no_database_is_named_and_left_as_it_is() -> Result<()> {
    let bed = Bed::new()?;
    let garbage = "this is no database ".repeat(1_000);
    std::fs::write(bed.database(), &garbage)?;
    for command in ["serve", "migrate", "check"] {
        let arguments: &[&str] = if command == "serve" {
            &["serve", "--listen", "127.0.0.1:0"]
        } else {
            &[command]
        };
        let outcome = bed.run(arguments).await?;
        ensure!(
            outcome.code == Some(1),
            "{command}: exit code {:?}: {}",
            outcome.code,
            outcome.text()
        );
        ensure!(
            outcome.text().contains("catalog.db"),
            "{command}: {}",
            outcome.text()
        );
    }
    ensure!(
        std::fs::read_to_string(bed.database())? == garbage,
        "the file has changed"
    );
    Ok(())
}

#[tokio::test]
async fn what_was_written_is_there_after_a_restart() -> Result<()> {
    let bed = Bed::new()?;
    let mut server = bed.start().await?;
    let tree = Tree::plant(&bed, &mut server.client()).await?;
    server
        .client()
        .post(Tree::FILESETS, &tree.fileset("f"))
        .await?
        .ok()?;
    let before = server
        .client()
        .get(&format!("{}/f", Tree::FILESETS))
        .await?
        .ok()?;
    server.stop().await?;
    let server = bed.start().await?;
    let after = server
        .client()
        .get(&format!("{}/f", Tree::FILESETS))
        .await?
        .ok()?;
    ensure!(
        before.text == after.text && before.tag()? == after.tag()?,
        "{}\n{}",
        before.text,
        after.text
    );
    Ok(())
}

#[tokio::test]
async fn requests_are_counted_and_timed() -> Result<()> {
    let bed = Bed::new()?;
    let server = bed.start().await?;
    let mut client = server.client();
    client.get("/api/metalakes").await?.ok()?;
    let shown = client.get("/prometheus/metrics").await?.text;
    for metric in [
        r#"treeline_http_requests_total{operation="list-metalakes",method="GET",status="200"} 1"#,
        r#"treeline_http_request_duration_seconds_count{operation="list-metalakes"} 1"#,
    ] {
        ensure!(
            shown.lines().any(|line| line == metric),
            "{metric} is not in\n{shown}"
        );
    }
    Ok(())
}
