//! One fault a test, planted into a history that is right; exactly its rule is named, with the lines concerned.

use treeline_history::{Outcome, Rule, Verb};

use crate::book::{Book, during, good};

#[test]
fn two_writes_of_one_version_break_the_versions() {
    let mut book = good();
    book.at(5).version = Some(2);
    book.breaks(Rule::Versions, &[3, 5]);
}

#[test]
fn a_version_that_no_write_took_breaks_the_versions() {
    let mut book = good();
    book.operations.remove(2);
    book.breaks(Rule::Versions, &[2, 3]);
    let mut book = good();
    let later = book
        .operations
        .iter_mut()
        .filter(|operation| operation.id == Some(4));
    for operation in later.filter(|operation| operation.version >= Some(3)) {
        operation.version = operation.version.map(|version| version + 1);
    }
    book.at(5).if_match = None;
    book.breaks(Rule::Versions, &[4, 5]);
}

#[test]
fn a_create_above_version_one_breaks_the_versions() {
    let mut book = good();
    book.at(13).version = Some(2);
    book.breaks(Rule::Versions, &[13]);
}

#[test]
fn an_entity_at_two_places_at_one_version_breaks_the_versions() {
    let mut book = good();
    book.at(6).path = book.at(9).path.clone();
    book.at(6).path[3] = "h".to_owned();
    book.breaks(Rule::Versions, &[6]);
}

#[test]
fn one_unknown_write_does_not_account_for_two_versions() {
    let mut book = Book::default();
    book.create("s", "3-1", &[]);
    book.add(Verb::Set, "s").sets = [("a".to_owned(), "1".to_owned())].into();
    book.load("s", "3-3", &[("a", "1")]).process = 1;
    book.breaks(Rule::Versions, &[1, 3]);
}

#[test]
fn an_unknown_write_that_began_later_does_not_account_for_a_version() {
    let mut book = Book::default();
    book.create("s", "3-1", &[]);
    book.load("s", "3-2", &[]);
    book.add(Verb::Set, "s").sets = [("a".to_owned(), "1".to_owned())].into();
    book.breaks(Rule::Versions, &[1, 2]);
}

#[test]
fn an_unknown_write_that_does_not_show_accounts_for_no_version() {
    let mut book = Book::default();
    book.create("s", "3-1", &[]);
    book.add(Verb::Set, "s").sets = [("a".to_owned(), "1".to_owned())].into();
    book.load("s", "3-2", &[]);
    book.breaks(Rule::Versions, &[1, 3]);
    // Overwritten by the next version, it would not.
    let mut book = Book::default();
    book.create("s", "3-1", &[]);
    book.add(Verb::Set, "s").sets = [("a".to_owned(), "1".to_owned())].into();
    book.set("s", "3-3", "a", "2").properties = Some([("a".to_owned(), "2".to_owned())].into());
    book.holds();
}

#[test]
fn two_unknown_writes_that_show_in_one_version_break_the_versions() {
    let mut book = Book::default();
    book.create("s", "3-1", &[]);
    book.add(Verb::Set, "s").sets = [("a".to_owned(), "1".to_owned())].into();
    book.add(Verb::Set, "s").sets = [("b".to_owned(), "2".to_owned())].into();
    book.load("s", "3-2", &[("a", "1"), ("b", "2")]);
    book.breaks(Rule::Versions, &[2, 3, 4]);
    book.at(4).version = Some(3);
    book.holds();
}

#[test]
fn a_write_on_another_state_than_its_if_match_names_breaks_the_match() {
    let mut book = good();
    book.at(5).if_match = Some("4-1".parse().unwrap());
    book.breaks(Rule::Match, &[5]);
}

#[test]
fn an_overwritten_value_that_is_read_again_is_a_lost_write() {
    let mut book = good();
    book.at(8)
        .properties
        .as_mut()
        .unwrap()
        .insert("a".to_owned(), "1".to_owned());
    book.breaks(Rule::Lost, &[5, 8]);
}

#[test]
fn a_property_that_is_gone_is_a_lost_write() {
    let mut book = good();
    book.at(8).properties.as_mut().unwrap().remove("b");
    book.breaks(Rule::Lost, &[3, 8]);
}

#[test]
fn an_entity_that_is_not_found_while_it_lives_is_lost() {
    let mut book = good();
    let (begun, ended) = (book.at(8).begun, book.at(8).ended);
    during(book.missing("s/g"), 1, begun, ended);
    let last = book.line();
    book.breaks(Rule::Lost, &[last]);
}

#[test]
fn a_list_without_what_lives_has_lost_it() {
    let mut book = good();
    book.at(10).names = Some(Vec::new());
    book.breaks(Rule::Lost, &[10]);
}

#[test]
fn a_drop_that_finds_nothing_where_something_lives_has_lost_it() {
    let mut book = good();
    book.drop("s/g", false);
    let last = book.line();
    book.breaks(Rule::Lost, &[last]);
}

#[test]
fn a_value_that_nobody_wrote_is_invented() {
    let mut book = good();
    book.at(8)
        .properties
        .as_mut()
        .unwrap()
        .insert("b".to_owned(), "9".to_owned());
    book.breaks(Rule::Invented, &[8]);
}

#[test]
fn a_value_of_a_refused_write_is_invented() {
    let mut book = good();
    book.at(15)
        .properties
        .as_mut()
        .unwrap()
        .insert("a".to_owned(), "4".to_owned());
    book.breaks(Rule::Invented, &[14, 15]);
}

#[test]
fn a_value_that_is_read_before_it_was_asked_for_is_invented() {
    let mut book = good();
    book.at(4)
        .properties
        .as_mut()
        .unwrap()
        .insert("a".to_owned(), "3".to_owned());
    book.breaks(Rule::Invented, &[4, 5]);
}

#[test]
fn a_value_of_another_entity_is_invented() {
    let mut book = good();
    book.at(22)
        .properties
        .as_mut()
        .unwrap()
        .insert("b".to_owned(), "2".to_owned());
    book.breaks(Rule::Invented, &[3, 22]);
}

#[test]
fn an_entity_that_nobody_created_is_invented() {
    let mut book = good();
    book.operations.remove(12);
    book.breaks(Rule::Invented, &[14]);
}

#[test]
fn a_name_that_is_listed_and_was_never_given_is_invented() {
    let mut book = good();
    book.at(10).names.as_mut().unwrap().push("h".to_owned());
    book.breaks(Rule::Invented, &[10]);
}

#[test]
fn two_creates_of_a_name_without_a_drop_between_are_not_unique() {
    let mut book = good();
    book.create("s/g", "8-1", &[]);
    let last = book.line();
    book.breaks(Rule::Unique, &[21, last]);
}

#[test]
fn one_entity_given_to_two_creates_is_not_unique() {
    let mut book = good();
    book.create("s/g", "7-1", &[]);
    let last = book.line();
    book.breaks(Rule::Unique, &[21, last]);
}

#[test]
fn a_rename_onto_a_name_that_lives_is_not_unique() {
    let mut book = good();
    book.create("s/h", "8-1", &[]);
    book.rename("s/h", "8-2", "g");
    let last = book.line();
    book.breaks(Rule::Unique, &[21, last]);
}

#[test]
fn three_creates_around_one_drop_are_not_unique() {
    let mut book = Book::default();
    book.create("s", "3-1", &[]);
    for (process, id) in [(1, "4-1"), (2, "5-1"), (3, "6-1")] {
        during(book.create("s/f", id, &[]), process, 100, 200);
    }
    during(book.drop("s/f", true), 4, 100, 200);
    book.breaks(Rule::Unique, &[2, 3, 4]);
    // With one drop more, each has had its turn.
    during(book.drop("s/f", true), 5, 100, 200);
    book.holds();
}

#[test]
fn what_is_read_after_its_drop_was_not_dropped() {
    let mut book = good();
    let back = book.at(12);
    (back.outcome, back.id, back.version) = (Outcome::Ok, Some(4), Some(4));
    book.breaks(Rule::Dropped, &[11, 12]);
}

#[test]
fn what_comes_back_beside_its_successor_was_not_dropped() {
    let mut book = good();
    let back = book.at(15);
    (back.id, back.version, back.properties) = (Some(4), Some(4), None);
    book.breaks(Rule::Dropped, &[11, 15]);
}

#[test]
fn what_is_written_after_a_pinned_drop_was_not_dropped() {
    let mut book = Book::default();
    book.create("s", "3-1", &[]);
    book.drop("s", true).if_match = Some("3-1".parse().unwrap());
    book.set("s", "3-3", "a", "1");
    book.breaks(Rule::Dropped, &[2, 3]);
}

#[test]
fn what_is_listed_after_its_drop_was_not_dropped() {
    let mut book = good();
    book.at(20).names = Some(vec!["f".to_owned()]);
    // By then the whole schema had been dropped and created again.
    book.breaks(Rule::Realtime, &[9, 20]);
    let mut book = good();
    let list = book.list("s", &["g"]).clone();
    book.operations.pop();
    *book.at(12) = treeline_history::Operation {
        begun: book.at(12).begun,
        ended: book.at(12).ended,
        ..list
    };
    book.breaks(Rule::Dropped, &[11, 12]);
}

#[test]
fn one_entity_dropped_twice_at_once_breaks_the_drop() {
    let mut book = Book::default();
    book.create("s", "3-1", &[]);
    for process in [1, 2] {
        during(book.drop("s", true), process, 100 + u64::from(process), 200);
    }
    book.breaks(Rule::Dropped, &[2, 3]);
}

#[test]
fn a_create_below_what_is_dropped_breaks_the_parent() {
    let mut book = good();
    let mut lost = book.create("s/h", "8-1", &[]).clone();
    book.operations.pop();
    (lost.begun, lost.ended) = (book.at(18).begun, book.at(18).ended);
    *book.at(18) = lost;
    book.at(20).names = Some(vec!["h".to_owned()]);
    book.breaks(Rule::Parent, &[16, 18]);
}

#[test]
fn a_child_that_outlives_its_parent_breaks_the_parent() {
    let mut book = good();
    let survivor = book.at(22);
    (survivor.id, survivor.version) = (Some(5), Some(1));
    book.breaks(Rule::Parent, &[13, 16, 22]);
}

#[test]
fn a_child_listed_below_what_is_dropped_breaks_the_parent() {
    let mut book = good();
    book.at(20).names = Some(vec!["g".to_owned()]);
    book.at(17).path[3] = "h".to_owned();
    book.breaks(Rule::Parent, &[16, 20]);
}

#[test]
fn an_older_version_read_after_a_newer_one_goes_back_in_time() {
    let mut book = good();
    let stale = book.load("s/f", "4-2", &[("a", "1"), ("b", "2")]).clone();
    book.operations.pop();
    let (begun, ended) = (book.at(6).begun, book.at(6).ended);
    *book.at(6) = stale;
    during(book.at(6), 0, begun, ended);
    book.breaks(Rule::Realtime, &[5, 6]);
}

#[test]
fn a_version_read_before_its_write_began_goes_back_in_time() {
    let mut book = good();
    book.at(4).version = Some(3);
    book.at(4).properties = None;
    book.breaks(Rule::Realtime, &[4, 5]);
}
