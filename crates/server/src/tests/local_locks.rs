//! Turns of writers, as clients and operators meet them.

use axum::body::Body;
use axum::http::{Method, Request};
use tokio::task::JoinSet;
use tower::ServiceExt;

use super::Bed;
use crate::app::Limits;

#[tokio::test]
async fn where_writes_take_no_turns_operators_are_told_so() {
    let bed = Bed::new().await;
    let locks = &bed.get("/api/treeline/locks").await.assert(200, 0)["locks"];
    assert_eq!(locks["enabled"], false);
    assert_eq!(
        (&locks["nameCount"], &locks["names"]),
        (&0.into(), &serde_json::json!([]))
    );
}

/// Whether they wait for each other here or in the database is nothing that a client could tell.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writers_of_one_name_are_all_served_and_leave_nothing() {
    const WRITERS: usize = 64;
    for local_locks in [true, false] {
        let bed = Bed::on(Limits::default(), local_locks).await;
        bed.post("/api/metalakes", r#"{"name":"m"}"#).await.assert(200, 0);
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            let update = format!(
                r#"{{"updates":[{{"@type":"setProperty","property":"p{writer}","value":"{writer}"}}]}}"#
            );
            let request = Request::builder()
                .method(Method::PUT)
                .uri("/api/metalakes/m")
                .header("content-type", "application/json")
                .body(Body::from(update))
                .unwrap();
            let router = bed.router.clone();
            writers.spawn(async move { router.oneshot(request).await.unwrap().status() });
        }
        while let Some(status) = writers.join_next().await {
            assert_eq!(status.unwrap(), 200);
        }
        let metalake = bed.get("/api/metalakes/m").await;
        let properties = &metalake.assert(200, 0)["metalake"]["properties"];
        for writer in 0..WRITERS {
            assert_eq!(properties[format!("p{writer}")], writer.to_string());
        }
        let locks = &bed.get("/api/treeline/locks").await.assert(200, 0)["locks"];
        assert_eq!(
            (&locks["enabled"], &locks["nameCount"]),
            (
                &(local_locks && !cfg!(feature = "locks-disabled")).into(),
                &0.into()
            )
        );
    }
}
