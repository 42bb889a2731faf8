//! Model versions and their aliases.

use std::collections::{BTreeMap, BTreeSet};

use treeline_core::kinds::{Model, ModelVersion, ModelVersionChange, UNNAMED};
use treeline_core::{Alias, Draft, Entity, Error, Kind, Path, Result, Taken};
use treeline_storage::{DropRule, Store};

use crate::harness::{Bed, context, name, tests};

tests! {
    versions_are_numbered_from_zero_without_a_gap,
    links_from_two_stores_never_get_one_number,
    an_alias_is_found_and_follows_its_changes,
    a_taken_alias_refuses_the_link_and_its_number_goes_to_the_next,
    a_taken_alias_refuses_the_update_and_changes_nothing,
    a_dropped_version_frees_its_aliases_and_never_its_number,
    a_dropped_model_takes_its_versions_and_aliases_along,
}

fn version(aliases: &[&str]) -> ModelVersion {
    ModelVersion {
        comment: None,
        aliases: aliases.iter().map(|alias| Alias::new(*alias).unwrap()).collect(),
        uris: BTreeMap::from([(UNNAMED.to_owned(), "s3://models/m".to_owned())]),
        properties: BTreeMap::new(),
    }
}

async fn link(store: &Store, model: &Path, aliases: &[&str]) -> Result<Entity<ModelVersion>> {
    store
        .link(&context(), store.resolve(model).await?, &version(aliases))
        .await
}

async fn number_of(bed: &Bed, model: &Path, alias: &str) -> Option<String> {
    let resolved = bed.resolve(model).await;
    let found = bed
        .store
        .version_of_alias(&resolved, &Alias::new(alias).unwrap())
        .await
        .unwrap();
    found.map(|number| number.as_str().to_owned())
}

fn aliases(
    add: &[&str],
    remove: &[&str],
) -> impl Fn(&mut Draft<ModelVersion>) -> Result<()> + Send + Sync + 'static {
    let set = |words: &[&str]| {
        words
            .iter()
            .map(|word| Alias::new(*word).unwrap())
            .collect::<BTreeSet<_>>()
    };
    let change = ModelVersionChange::UpdateAliases {
        add: set(add),
        remove: set(remove),
    };
    move |draft| draft.apply_all(std::slice::from_ref(&change))
}

async fn versions_are_numbered_from_zero_without_a_gap(bed: Bed) {
    let model = bed.model().await;
    for number in 0..3 {
        assert_eq!(
            link(&bed.store, &model, &[]).await.unwrap().name,
            name(&number.to_string())
        );
    }
    let entity = bed.resolve(&model).await.entity::<Model>().unwrap();
    assert_eq!((entity.payload.latest_version, entity.version.get()), (3, 1 + 3));
}

async fn links_from_two_stores_never_get_one_number(bed: Bed) {
    let model = bed.model().await;
    let other = bed.another_store(|_| {}).await;
    let mut linkers = tokio::task::JoinSet::new();
    for linker in 0..40 {
        let (store, model) = (
            if linker % 2 == 0 {
                bed.store.clone()
            } else {
                other.clone()
            },
            model.clone(),
        );
        linkers.spawn(async move {
            link(&store, &model, &[])
                .await
                .unwrap()
                .name
                .as_str()
                .parse::<u32>()
                .unwrap()
        });
    }
    let numbers: BTreeSet<u32> = linkers.join_all().await.into_iter().collect();
    assert_eq!(numbers, (0..40).collect());
}

async fn an_alias_is_found_and_follows_its_changes(bed: Bed) {
    let model = bed.model().await;
    link(&bed.store, &model, &["a", "b"]).await.unwrap();
    link(&bed.store, &model, &[]).await.unwrap();
    assert_eq!(number_of(&bed, &model, "a").await.as_deref(), Some("0"));
    let zero = bed.resolve(&model.child(Kind::ModelVersion, name("0"))).await;
    let altered = bed
        .store
        .alter(&context(), zero, aliases(&["c"], &["a"]))
        .await
        .unwrap();
    assert_eq!(
        altered
            .payload
            .aliases
            .iter()
            .map(Alias::as_str)
            .collect::<Vec<_>>(),
        ["b", "c"]
    );
    assert_eq!(number_of(&bed, &model, "a").await, None);
    let one = bed.resolve(&model.child(Kind::ModelVersion, name("1"))).await;
    bed.store
        .alter(&context(), one, aliases(&["a"], &[]))
        .await
        .unwrap();
    assert_eq!(number_of(&bed, &model, "a").await.as_deref(), Some("1"));
}

async fn a_taken_alias_refuses_the_link_and_its_number_goes_to_the_next(bed: Bed) {
    let model = bed.model().await;
    link(&bed.store, &model, &["a"]).await.unwrap();
    let error = link(&bed.store, &model, &["b", "a"]).await.unwrap_err();
    assert_eq!(
        error,
        Error::AlreadyExists {
            what: Taken::Alias,
            path: "ml.c.s.m.a".to_owned()
        }
    );
    assert_eq!(bed.count("version_aliases", "alias", "b").await, 0);
    assert_eq!(link(&bed.store, &model, &["b"]).await.unwrap().name, name("1"));
}

async fn a_taken_alias_refuses_the_update_and_changes_nothing(bed: Bed) {
    let model = bed.model().await;
    link(&bed.store, &model, &["a"]).await.unwrap();
    let before = link(&bed.store, &model, &["b"]).await.unwrap();
    let one = bed.resolve(&model.child(Kind::ModelVersion, name("1"))).await;
    let error = bed
        .store
        .alter(&context(), one, aliases(&["c", "a"], &["b"]))
        .await
        .unwrap_err();
    assert_eq!(
        error,
        Error::AlreadyExists {
            what: Taken::Alias,
            path: "ml.c.s.m.a".to_owned()
        }
    );
    let after = bed.resolve(&model.child(Kind::ModelVersion, name("1"))).await;
    assert_eq!(after.entity::<ModelVersion>().unwrap(), before);
    assert_eq!(number_of(&bed, &model, "b").await.as_deref(), Some("1"));
}

async fn a_dropped_version_frees_its_aliases_and_never_its_number(bed: Bed) {
    let model = bed.model().await;
    link(&bed.store, &model, &["a"]).await.unwrap();
    let zero = bed.resolve(&model.child(Kind::ModelVersion, name("0"))).await;
    assert!(
        bed.store
            .drop(&context(), zero, DropRule::default())
            .await
            .unwrap()
    );
    assert_eq!(number_of(&bed, &model, "a").await, None);
    assert_eq!(link(&bed.store, &model, &["a"]).await.unwrap().name, name("1"));
}

async fn a_dropped_model_takes_its_versions_and_aliases_along(bed: Bed) {
    let model = bed.model().await;
    link(&bed.store, &model, &["a"]).await.unwrap();
    link(&bed.store, &model, &["b"]).await.unwrap();
    let cascade = DropRule {
        cascade: true,
        ..DropRule::default()
    };
    assert!(
        bed.store
            .drop(&context(), bed.resolve(&model).await, cascade)
            .await
            .unwrap()
    );
    assert!(bed.rows("version_aliases").await.is_empty());
    assert_eq!(bed.count("feed", "operation", "drop").await, 3);
}
