//! What is no history is refused with its line, and large ones are judged.

use std::io::{self, BufReader, Write as _};
use std::process::{Command, Stdio};

use treeline_history::{
    LINE_BYTES_MAX, LINES_MAX, Rule, Simulation, Unreadable, Verb, check, check_unended, simulate,
};

use crate::book::{Book, during, end, good, lines};

fn refusal(text: impl AsRef<[u8]>) -> Unreadable {
    check(text.as_ref()).unwrap_err()
}

/// What is refused whether or not it has to have an end line.
fn refusal_either_way(text: &str, reason: &str) -> Unreadable {
    let refused = refusal(text);
    assert!(refused.reason.contains(reason), "{refused}");
    assert_eq!(check_unended(text.as_bytes()), Err(refused.clone()));
    refused
}

#[test]
fn a_file_cut_in_the_middle_of_a_line_is_refused_at_that_line() {
    let text = lines(&good().operations);
    for (bytes, line) in [(5, good().line() + 1), (30, good().line())] {
        let refused = refusal(&text[..text.len() - bytes]);
        assert_eq!(refused.line, line);
        assert!(refused.reason.contains("cut off"), "{refused}");
    }
    // Without its last line's end it is whole.
    assert!(check(text.trim_end().as_bytes()).is_ok());
}

#[test]
fn a_history_without_an_operation_is_refused() {
    for text in [String::new(), "\n\n".to_owned(), end(0)] {
        refusal_either_way(&text, "no operation");
    }
}

#[test]
fn a_file_cut_off_at_the_end_of_a_line_is_refused_unless_that_is_allowed() {
    let text = lines(&good().operations);
    for (count, line) in text.lines().enumerate().skip(1) {
        let kept = text.find(line).unwrap();
        let refused = refusal(&text[..kept]);
        assert_eq!(refused.line, count);
        assert!(refused.reason.contains("no end line"), "{refused}");
        let verdict = check_unended(&text.as_bytes()[..kept]).unwrap();
        assert_eq!(verdict.operations, count);
    }
}

#[test]
fn an_end_line_that_counts_other_operations_than_there_are_is_refused() {
    let text = lines(&good().operations);
    let (first, without_it) = text.split_once('\n').unwrap();
    for text in [without_it.to_owned(), format!("{first}\n{text}")] {
        refusal_either_way(&text, "ends 22 operations");
    }
}

#[test]
fn what_comes_after_the_end_line_is_refused_at_its_line() {
    let whole = lines(&good().operations);
    let (first, _) = whole.split_once('\n').unwrap();
    for after in [first.to_owned(), end(good().line()), "{".to_owned()] {
        let text = format!("{whole}\n{after}\n");
        let refused = refusal_either_way(&text, "after the end line");
        assert_eq!(refused.line, good().line() + 3);
    }
    assert!(check((whole + "\n \n").as_bytes()).is_ok());
}

#[test]
fn an_unknown_operation_field_or_outcome_is_refused_at_its_line() {
    let text = lines(&good().operations);
    for (from, to, found) in [
        ("\"operation\":\"rename\"", "\"operation\":\"move\"", "move"),
        ("\"new_name\"", "\"newname\"", "newname"),
        (
            "\"outcome\":\"ok\",\"new_name\"",
            "\"outcome\":\"fine\",\"new_name\"",
            "fine",
        ),
        ("\"if_match\":\"4-2\"", "\"if_match\":\"4\"", "<id>-<version>"),
    ] {
        let line = text.lines().position(|line| line.contains(from)).unwrap() + 1;
        let refused = refusal(text.replacen(from, to, 1));
        assert_eq!(refused.line, line, "{refused}");
        assert!(refused.reason.contains(found), "{refused}");
    }
}

#[test]
fn an_end_before_the_beginning_is_refused_at_its_line() {
    let mut book = good();
    let begun = book.at(7).begun;
    book.at(7).ended = begun - 1;
    let refused = book.verdict().unwrap_err();
    assert_eq!(
        (refused.line, refused.reason.contains("before it began")),
        (7, true)
    );
}

#[test]
fn two_operations_of_one_client_at_once_are_refused() {
    let mut book = good();
    let ended = book.at(4).ended;
    book.at(5).begun = ended - 1;
    let refused = book.verdict().unwrap_err();
    assert_eq!(
        (refused.line, refused.reason.contains("client 0")),
        (5, true),
        "{refused}"
    );
    during(book.at(5), 1, ended - 1, ended + 5);
    assert!(book.verdict().unwrap().holds());
}

#[test]
fn a_value_that_is_asked_for_twice_is_refused_since_reads_could_not_be_told_apart() {
    let mut book = good();
    book.set("s/g", "7-2", "b", "2");
    let refused = book.verdict().unwrap_err();
    assert_eq!(
        (refused.line, refused.reason.contains("line 3")),
        (23, true),
        "{refused}"
    );
}

#[test]
fn a_rename_of_what_has_children_is_refused() {
    let mut book = good();
    book.rename("s", "6-2", "t");
    let refused = book.verdict().unwrap_err();
    assert_eq!(
        (refused.line, refused.reason.contains("children")),
        (23, true),
        "{refused}"
    );
}

#[test]
fn an_answer_that_lacks_what_it_must_say_is_refused() {
    for (line, missing) in [
        (2, "id"),
        (10, "names"),
        (11, "dropped"),
        (9, "status"),
        (7, "new name"),
    ] {
        let mut book = good();
        let operation = book.at(line);
        (
            operation.id,
            operation.names,
            operation.dropped,
            operation.new_name,
        ) = (None, None, None, None);
        operation.status = None;
        let refused = book.verdict().unwrap_err();
        assert_eq!(refused.line, line, "{refused}");
        assert!(refused.reason.contains(missing) || line == 7, "{refused}");
    }
}

#[test]
fn what_is_no_text_or_too_long_a_line_is_refused() {
    assert_eq!(refusal(b"\n\xff\xfe\n").line, 2);
    assert_eq!(refusal(b"{}\n").line, 1);
    let endless = vec![b' '; LINE_BYTES_MAX + 1];
    assert!(refusal(endless).reason.contains("longer than"));
}

#[test]
fn a_version_that_no_history_can_reach_is_found_without_counting_up_to_it() {
    let mut book = good();
    book.at(22).version = Some(u64::MAX);
    assert!(!book.verdict().unwrap().holds());
}

/// Any one of the entities may have had so many writes, but not two of them. Their versions are 400 million together, which
/// would take 13 GB one by one.
#[test]
fn versions_that_unknown_writes_may_have_made_are_judged_without_a_list_of_them() {
    const MANY: usize = 20_000;
    let mut book = Book::default();
    for number in 0..MANY {
        book.add(Verb::Create, "s");
        book.add(Verb::Set, "s").sets = [("a".to_owned(), number.to_string())].into();
    }
    let written = book.line();
    for id in 1..=MANY {
        book.load("s", &format!("{id}-{MANY}"), &[]);
    }
    book.breaks(Rule::Versions, &[written + 2]);
    book.operations.truncate(written + 1);
    book.holds();
}

/// Blank lines are lines too, or a log of nothing else would be read for ever.
#[test]
fn a_history_of_too_many_lines_is_refused_with_the_line() {
    let endless = BufReader::new(io::repeat(b'\n'));
    let refused = check(endless).unwrap_err();
    assert_eq!(refused.line, LINES_MAX + 1);
    assert!(refused.reason.contains("more than"), "{refused}");
}

#[test]
fn a_large_history_is_judged() {
    let mut operations = Vec::new();
    let simulation = Simulation {
        seed: 3,
        operations: 30_000,
        clients: 16,
        unknown_percent: 3,
    };
    simulate(&simulation, |operation| operations.push(operation));
    let verdict = check(lines(&operations).as_bytes()).unwrap();
    assert!(verdict.holds() && verdict.operations >= 30_000, "{verdict}");
}

#[test]
fn the_exit_code_tells_a_broken_rule_from_an_unreadable_history() {
    let mut broken = good();
    broken.at(5).version = Some(2);
    let whole = lines(&good().operations);
    let unended = whole.replace(&end(good().line()), "");
    let cases = [
        (&["-"][..], &whole, 0, "0 violations"),
        (&["-"], &lines(&broken.operations), 1, "H-VERSIONS"),
        (&["-"], &"{".to_owned(), 2, "line 1"),
        (&["-"], &String::new(), 2, "no operation"),
        (&["-"], &unended, 2, "line 22"),
        (&["--unended", "-"], &unended, 0, "0 violations"),
        (&["--unended", "-"], &whole, 0, "0 violations"),
    ];
    for (arguments, history, code, said) in cases {
        let mut checker = Command::new(env!("CARGO_BIN_EXE_treeline-history"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        checker
            .stdin
            .take()
            .unwrap()
            .write_all(history.as_bytes())
            .unwrap();
        let output = checker.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains(said), "{text}");
    }
}
