//! P11: a request that its client named is carried out once.

use treeline_core::kinds::{CommonChange, Metalake, Schema};
use treeline_core::{Draft, Error, NewEntity, Path};
use treeline_storage::{DropRule, Idempotency, WriteContext};

use crate::harness::{Bed, context, name, tests};

tests! {
    a_repeated_create_gets_the_first_answer_and_writes_nothing,
    many_repeats_at_once_have_one_effect,
    another_request_under_a_used_key_is_refused,
    a_refused_write_leaves_its_key_free,
    a_repeated_update_gets_the_first_answer_whatever_others_wrote,
    a_repeated_drop_gets_the_first_answer_and_the_successor_lives,
    a_drop_that_found_nothing_is_remembered,
    keys_of_two_principals_are_two_keys,
    keys_past_their_time_are_forgotten,
}

pub(crate) fn keyed(key: &str, fingerprint: &str) -> WriteContext {
    let idempotency = Idempotency {
        key: key.to_owned(),
        fingerprint: fingerprint.to_owned(),
    };
    WriteContext {
        idempotency: Some(idempotency),
        ..context()
    }
}

fn metalake(text: &str) -> NewEntity<Metalake> {
    NewEntity {
        name: name(text),
        payload: Metalake::default(),
    }
}

async fn a_repeated_create_gets_the_first_answer_and_writes_nothing(bed: Bed) {
    let key = keyed("k", "create ml");
    let first = bed.store.create(&key, None, metalake("ml")).await.unwrap();
    let other = bed.another_store(|_| {}).await;
    assert_eq!(other.create(&key, None, metalake("ml")).await.unwrap(), first);
    assert_eq!(other.recall_entity::<Metalake>(&key).await.unwrap(), Some(first));
    assert_eq!(bed.rows("feed").await.len(), 1);
}

async fn many_repeats_at_once_have_one_effect(bed: Bed) {
    let other = bed.another_store(|_| {}).await;
    let mut repeats = tokio::task::JoinSet::new();
    for repeat in 0..16 {
        let store = if repeat % 2 == 0 {
            bed.store.clone()
        } else {
            other.clone()
        };
        repeats.spawn(async move {
            store
                .create(&keyed("k", "create ml"), None, metalake("ml"))
                .await
                .unwrap()
        });
    }
    let answers = repeats.join_all().await;
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    assert_eq!(bed.count("entities", "name", "ml").await, 1);
    assert_eq!(bed.rows("feed").await.len(), 1);
}

async fn another_request_under_a_used_key_is_refused(bed: Bed) {
    bed.store
        .create(&keyed("k", "create ml"), None, metalake("ml"))
        .await
        .unwrap();
    let error = bed
        .store
        .create(&keyed("k", "create other"), None, metalake("other"))
        .await
        .unwrap_err();
    assert_eq!(error, Error::KeyReused);
    assert_eq!(bed.count("entities", "name", "other").await, 0);
}

async fn a_refused_write_leaves_its_key_free(bed: Bed) {
    bed.create(None, "ml", Metalake::default()).await;
    let key = keyed("k", "create");
    let error = bed.store.create(&key, None, metalake("ml")).await.unwrap_err();
    assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");
    assert!(bed.store.create(&key, None, metalake("free")).await.is_ok());
}

async fn a_repeated_update_gets_the_first_answer_whatever_others_wrote(bed: Bed) {
    bed.create(None, "ml", Metalake::default()).await;
    let path = Path::metalake(name("ml"));
    let set = |text: &'static str| {
        move |draft: &mut Draft<Metalake>| {
            draft.apply_all(&[CommonChange::UpdateComment(Some(text.to_owned())).into()])
        }
    };
    let key = keyed("k", "comment one");
    let first = bed
        .store
        .alter(&key, bed.resolve(&path).await, set("one"))
        .await
        .unwrap();
    let second = bed
        .store
        .alter(&context(), bed.resolve(&path).await, set("two"))
        .await
        .unwrap();
    assert_eq!(
        bed.store
            .alter(&key, bed.resolve(&path).await, set("one"))
            .await
            .unwrap(),
        first
    );
    assert_eq!(bed.resolve(&path).await.tag(), second.tag());
    // A change that changes nothing is remembered too: its repeat must not undo what came after it.
    let idle = keyed("idle", "comment two");
    let unchanged = bed
        .store
        .alter(&idle, bed.resolve(&path).await, set("two"))
        .await
        .unwrap();
    assert_eq!(unchanged.tag(), second.tag());
    let third = bed
        .store
        .alter(&context(), bed.resolve(&path).await, set("three"))
        .await
        .unwrap();
    assert_eq!(
        bed.store
            .alter(&idle, bed.resolve(&path).await, set("two"))
            .await
            .unwrap()
            .tag(),
        second.tag()
    );
    assert_eq!(bed.resolve(&path).await.tag(), third.tag());
}

async fn a_repeated_drop_gets_the_first_answer_and_the_successor_lives(bed: Bed) {
    let path = bed.schema().await;
    let key = keyed("k", "drop s");
    assert!(
        bed.store
            .drop(&key, bed.resolve(&path).await, DropRule::default())
            .await
            .unwrap()
    );
    let successor = bed.create(path.parent().as_ref(), "s", Schema::default()).await;
    assert!(
        bed.store
            .drop(&key, bed.resolve(&path).await, DropRule::default())
            .await
            .unwrap()
    );
    assert_eq!(bed.store.recall_drop(&key).await.unwrap(), Some(true));
    assert_eq!(bed.resolve(&path).await.id(), successor.id);
}

async fn a_drop_that_found_nothing_is_remembered(bed: Bed) {
    let key = keyed("k", "drop ml");
    assert!(!bed.store.settle_empty_drop(&key).await.unwrap());
    assert_eq!(bed.store.recall_drop(&key).await.unwrap(), Some(false));
    assert!(!bed.store.settle_empty_drop(&key).await.unwrap());
    let other = bed.store.settle_empty_drop(&keyed("k", "drop another")).await;
    assert_eq!(other.unwrap_err(), Error::KeyReused);
    // Without a key there is nothing to remember.
    assert!(!bed.store.settle_empty_drop(&context()).await.unwrap());
}

async fn keys_of_two_principals_are_two_keys(bed: Bed) {
    bed.store
        .create(&keyed("k", "create"), None, metalake("one"))
        .await
        .unwrap();
    let other = WriteContext {
        principal: "somebody".to_owned(),
        ..keyed("k", "create")
    };
    assert_eq!(
        bed.store
            .create(&other, None, metalake("two"))
            .await
            .unwrap()
            .name,
        name("two")
    );
}

async fn keys_past_their_time_are_forgotten(bed: Bed) {
    let key = keyed("k", "create");
    bed.store.create(&key, None, metalake("one")).await.unwrap();
    assert_eq!(bed.store.forget_keys(60_000).await.unwrap(), 0);
    // A life that ends in the future is over for every key.
    assert_eq!(bed.store.forget_keys(-60_000).await.unwrap(), 1);
    assert_eq!(
        bed.store.create(&key, None, metalake("two")).await.unwrap().name,
        name("two")
    );
}
