//! Histories that are right, however odd: what is not known is never held against anybody.

use treeline_history::{Outcome, Verb};

use crate::book::{Book, during, good};

fn unknown_set(book: &mut Book, name: &str, value: &str) {
    book.add(Verb::Set, name).sets = [("a".to_owned(), value.to_owned())].into();
}

#[test]
fn a_history_with_something_of_everything_holds() {
    good().holds();
}

#[test]
fn an_unknown_set_may_have_had_its_effect_or_not() {
    let mut book = Book::default();
    book.create("s", "3-1", &[("a", "1")]);
    unknown_set(&mut book, "s", "2");
    let mut without = book.clone();
    without.load("s", "3-1", &[("a", "1")]);
    without.holds();
    // It comes late: its server was still at it.
    without.load("s", "3-2", &[("a", "2")]);
    without.holds();
    book.load("s", "3-2", &[("a", "2")]);
    book.set("s", "3-3", "b", "3");
    book.load("s", "3-3", &[("a", "2"), ("b", "3")]);
    book.holds();
}

#[test]
fn an_answer_of_a_failing_server_is_no_answer() {
    let mut book = Book::default();
    book.create("s", "3-1", &[]);
    book.refused(Verb::Set, "s", 503, 1002).sets = [("a".to_owned(), "1".to_owned())].into();
    book.load("s", "3-2", &[("a", "1")]);
    book.holds();
}

#[test]
fn unknown_creates_renames_and_drops_may_have_had_their_effect() {
    let mut book = Book::default();
    book.create("s", "3-1", &[]);
    book.add(Verb::Create, "s/f");
    book.load("s/f", "4-1", &[]);
    book.add(Verb::Rename, "s/f").new_name = Some("g".to_owned());
    book.load("s/g", "4-2", &[]);
    book.create("s/f", "5-1", &[]);
    book.add(Verb::Drop, "s/g");
    book.missing("s/g");
    book.create("s/g", "6-1", &[]);
    book.holds();
}

#[test]
fn an_unknown_rename_away_and_a_rename_back_leave_the_name_free_in_between() {
    let mut book = Book::default();
    book.create("s", "3-1", &[]);
    book.create("s/f", "4-1", &[]);
    book.add(Verb::Rename, "s/f").new_name = Some("g".to_owned());
    book.missing("s/f");
    book.rename("s/g", "4-3", "f");
    book.load("s/f", "4-3", &[]);
    book.holds();
}

#[test]
fn a_cascade_takes_what_nobody_dropped() {
    let mut book = Book::default();
    book.create("s", "3-1", &[]);
    book.create("s/f", "4-1", &[]);
    book.drop("s", true);
    book.create("s", "5-1", &[]);
    book.create("s/f", "6-1", &[]);
    book.missing("s/g");
    book.holds();
}

#[test]
fn operations_that_overlap_may_have_come_in_either_order() {
    let mut book = Book::default();
    book.create("s", "3-1", &[]);
    during(book.set("s", "3-3", "a", "2"), 1, 100, 200);
    during(book.set("s", "3-2", "a", "1"), 2, 110, 190);
    during(book.load("s", "3-1", &[]), 3, 120, 180);
    during(book.load("s", "3-3", &[("a", "2")]), 4, 130, 150);
    during(book.drop("s", true), 5, 160, 300);
    during(book.create("s", "4-1", &[]), 6, 165, 290);
    during(book.missing("s"), 7, 160, 170);
    book.holds();
}

#[test]
fn the_order_of_the_lines_means_nothing() {
    let mut book = good();
    book.operations.reverse();
    book.holds();
}

#[test]
fn what_no_line_has_created_may_have_been_there_before() {
    let mut book = Book::default();
    let create = book.create("s", "3-1", &[]);
    create.path = vec!["m".to_owned(), "c".to_owned(), "s".to_owned()];
    let verdict = book.verdict().unwrap();
    assert!(verdict.holds(), "{verdict}");
    assert_eq!(
        (verdict.operations, verdict.succeeded, verdict.entities),
        (1, 1, 1)
    );
    assert_eq!(book.at(1).outcome, Outcome::Ok);
}
