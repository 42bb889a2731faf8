//! The order in which an attempt locks, which no outcome shows.

use treeline_core::{Audit, EntityId, Version};

use super::*;
use crate::dialect::mysql::MYSQL;
use crate::network::fake::Fake;
use crate::resolve::Level;
use crate::sql::Rendered;

fn catalog() -> Resolved {
    let name = Name::new("c").unwrap();
    let above = Level {
        kind: Kind::Metalake,
        id: EntityId::new(7).unwrap(),
        in_use: true,
        provider: None,
        payload: None,
    };
    let leaf = Record {
        id: EntityId::new(8).unwrap(),
        kind: Kind::Catalog,
        version: Version::new(1).unwrap(),
        name: name.clone(),
        in_use: true,
        provider: None,
        payload: String::new(),
        audit: Audit {
            creator: String::new(),
            created_at_ms: 0,
            last_modifier: None,
            last_modified_at_ms: None,
        },
    };
    Resolved {
        path: Path::metalake(Name::new("ml").unwrap()).child(Kind::Catalog, name),
        ancestors: vec![above],
        leaf,
    }
}

/// What a later attempt asks first, on a database that finds nothing.
async fn asked_first(name: &str) -> Arc<str> {
    let resolved = catalog();
    let stale = Next {
        name: Name::new(name).unwrap(),
        in_use: true,
        payload: "changed".to_owned(),
        aliases: AliasChange::default(),
    };
    let again = LockAndSet {
        context: WriteContext::new("tester", "request"),
        resolved: Arc::new(resolved),
        change: Arc::new(|_| Err(Error::internal("there is no row to change"))),
        stale,
    };
    let (rendered, mut database) = (Rendered::new(&MYSQL), Fake::default());
    let outcome = again.run(&mut Transaction::new(&mut database, &rendered)).await;
    assert!(
        matches!(outcome, Err(Failure::Answer(Error::NotFound { .. }))),
        "{outcome:?}"
    );
    database.asked.swap_remove(0)
}

/// INV-10: a drop of the parent, or another rename below it, holds the parent and waits for the row.
#[tokio::test]
async fn a_rename_that_is_tried_again_locks_the_parent_before_the_row() {
    let rendered = Rendered::new(&MYSQL);
    assert_eq!(
        &asked_first("c2").await,
        rendered.text(&entity::LOCK_PARENT_ALTER)
    );
    assert_eq!(&asked_first("c").await, rendered.text(&entity::LOCK_ROW_ALTER));
}
