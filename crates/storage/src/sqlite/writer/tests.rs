//! What group commit promises: nothing is answered before its commit, and no member harms another.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use async_trait::async_trait;

use super::*;
use crate::dialect::sqlite::SQLITE;
use crate::migrate::migrate_sqlite;
use crate::session::Session;
use crate::sql::feed::INSERT_FEED;

/// Appends one feed row, after doing what the test says.
struct Append {
    actor: &'static str,
    before: Before,
    runs: Arc<AtomicUsize>,
}

enum Before {
    Nothing,
    /// Waits until the test lets it go on, so that others queue up behind it in one group.
    Wait(std::sync::Mutex<mpsc::Receiver<()>>),
    /// Fails after the row was written.
    Fail,
    /// Panics after the row was written.
    Panic,
}

#[async_trait]
impl Work for Append {
    type Output = ();
    const NAME: &'static str = "append";

    async fn run(&self, transaction: &mut Transaction<'_>) -> Result<(), Failure> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        if let Before::Wait(released) = &self.before {
            released.lock().unwrap().recv().unwrap();
        }
        let values = [
            2.into(),
            "metalake".into(),
            "[]".into(),
            "create".into(),
            1.into(),
            self.actor.into(),
            "r".into(),
        ];
        transaction.run_one(&INSERT_FEED, &values).await?;
        match self.before {
            Before::Fail => Err(Failure::Lost),
            Before::Panic => panic!("a defect"),
            Before::Nothing | Before::Wait(_) => Ok(()),
        }
    }
}

struct Bed {
    file: tempfile::TempDir,
    writer: Arc<Writer>,
}

impl Bed {
    fn new() -> Bed {
        let file = tempfile::tempdir().unwrap();
        let path = file.path().join("treeline.db");
        migrate_sqlite(&path).unwrap();
        let mut session = SqliteSession::open(&path).unwrap();
        session.never_wait().unwrap();
        Bed {
            file,
            writer: Arc::new(Writer::start(session, Arc::new(Rendered::new(&SQLITE))).unwrap()),
        }
    }

    fn session(&self) -> SqliteSession {
        SqliteSession::open(&self.file.path().join("treeline.db")).unwrap()
    }

    /// The actors of the committed rows, as another connection sees them.
    async fn committed(&self) -> Vec<String> {
        let mut session = self.session();
        let mut rows = session
            .rows(&Arc::from("SELECT actor FROM feed ORDER BY seq"), &[])
            .await
            .unwrap();
        rows.iter_mut().map(|row| row.text(0).unwrap()).collect()
    }

    fn spawn(&self, actor: &'static str, before: Before) -> tokio::task::JoinHandle<Result<(), Failure>> {
        let (writer, runs) = (Arc::clone(&self.writer), Arc::new(AtomicUsize::new(0)));
        let work = Arc::new(Append { actor, before, runs });
        tokio::spawn(async move { writer.run(work, Instant::now() + Duration::from_secs(60)).await })
    }

    /// Starts a group with a member that waits, and queues the others behind it. Runs on one thread, so a spawned
    /// task has queued its job once the scheduler has come round to it.
    async fn group(
        &self,
        others: Vec<(&'static str, Before)>,
    ) -> (
        mpsc::Sender<()>,
        Vec<tokio::task::JoinHandle<Result<(), Failure>>>,
    ) {
        let (release, released) = mpsc::channel();
        let mut handles = vec![self.spawn("first", Before::Wait(std::sync::Mutex::new(released)))];
        handles.extend(
            others
                .into_iter()
                .map(|(actor, before)| self.spawn(actor, before)),
        );
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        (release, handles)
    }
}

#[tokio::test]
async fn one_failed_member_harms_no_other() {
    let bed = Bed::new();
    let members = vec![
        ("second", Before::Fail),
        ("third", Before::Panic),
        ("fourth", Before::Nothing),
    ];
    let (release, handles) = bed.group(members).await;
    release.send(()).unwrap();
    let mut outcomes = Vec::new();
    for handle in handles {
        outcomes.push(handle.await.unwrap());
    }
    assert!(outcomes[0].is_ok(), "{outcomes:?}");
    assert!(matches!(outcomes[1], Err(Failure::Lost)), "{outcomes:?}");
    assert!(matches!(outcomes[2], Err(Failure::Broken(_))), "{outcomes:?}");
    assert!(outcomes[3].is_ok(), "{outcomes:?}");
    assert_eq!(bed.committed().await, ["first", "fourth"]);
}

/// The second member has run and holds its result while the third still runs: nobody may know of it, since the commit
/// is still to come.
#[tokio::test]
async fn nothing_is_answered_before_its_commit() {
    let bed = Bed::new();
    let (release_last, released_last) = mpsc::channel();
    let members = vec![
        ("second", Before::Nothing),
        ("third", Before::Wait(std::sync::Mutex::new(released_last))),
    ];
    let (release_first, handles) = bed.group(members).await;
    release_first.send(()).unwrap();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(handles.iter().all(|handle| !handle.is_finished()));
    assert!(bed.committed().await.is_empty());
    release_last.send(()).unwrap();
    for handle in handles {
        handle.await.unwrap().unwrap();
    }
    assert_eq!(bed.committed().await, ["first", "second", "third"]);
}

/// A commit that cannot happen (the test takes the transaction away) is every member's failure, and none's success.
#[tokio::test]
async fn a_failed_commit_fails_the_whole_group() {
    struct EndTransaction;
    #[async_trait]
    impl Work for EndTransaction {
        type Output = ();
        const NAME: &'static str = "end_transaction";

        async fn run(&self, transaction: &mut Transaction<'_>) -> Result<(), Failure> {
            transaction.run_text("ROLLBACK").await
        }
    }
    let bed = Bed::new();
    let (release, handles) = bed.group(vec![("second", Before::Nothing)]).await;
    let writer = Arc::clone(&bed.writer);
    let ender = tokio::spawn(async move {
        writer
            .run(Arc::new(EndTransaction), Instant::now() + Duration::from_secs(60))
            .await
    });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    release.send(()).unwrap();
    assert!(matches!(ender.await.unwrap(), Err(Failure::Unavailable(_))));
    for handle in handles {
        assert!(matches!(handle.await.unwrap(), Err(Failure::Unavailable(_))));
    }
    assert!(bed.committed().await.is_empty());
    bed.spawn("later", Before::Nothing).await.unwrap().unwrap();
    assert_eq!(bed.committed().await, ["later"], "the thread goes on");
}

#[tokio::test]
async fn a_write_that_nobody_waits_for_any_more_is_not_begun() {
    let bed = Bed::new();
    let (release, handles) = bed.group(Vec::new()).await;
    let gone = bed.spawn("gone", Before::Nothing);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    release.send(()).unwrap();
    for handle in handles {
        handle.await.unwrap().unwrap();
    }
    bed.spawn("last", Before::Nothing).await.unwrap().unwrap();
    assert_eq!(bed.committed().await, ["first", "last"]);
}
