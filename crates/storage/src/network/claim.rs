//! Which of a database's hosts is the primary, by what each says of itself. No I/O.
//!
//! A host in recovery is a standby. Of two that both say that they are the primary, as after a failover whose old primary
//! comes back, the one with the higher timeline is: a promotion raises it, and nothing else does. So it is the order of the
//! promotions in the database's own words, and every server comes to the same answer whatever it sees first. Where it does
//! not decide, none is used. Nor is one whose timeline is lower than one that was used already.

use crate::failure::Failure;

/// What a host said of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// It accepts writes.
    Primary(Line),
    /// It is in recovery.
    Standby,
    /// It did not answer, which may change by itself.
    Silent(String),
    /// It does not let us in, or could not say.
    Refused(String),
}

/// The history that a primary writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// Of the cluster; the same for a primary and all that descends from it.
    pub(super) system: String,
    /// One more with each promotion. Nothing is known of it where a URL names one host.
    pub(super) timeline: u32,
}

/// The host to use, and its line, from all that was said; `known` is the line that was used last.
pub(super) fn judge(said: &[(&str, Said)], known: Option<&Line>) -> Result<(usize, Line), Failure> {
    let claims = said
        .iter()
        .enumerate()
        .filter_map(|(number, (name, said))| match said {
            Said::Primary(line) => Some((number, *name, line)),
            Said::Standby | Said::Silent(_) | Said::Refused(_) => None,
        });
    let claims: Vec<_> = claims.collect();
    let Some((number, name, line)) = claims.iter().max_by_key(|(_, _, line)| line.timeline).copied() else {
        return Err(no_primary(said));
    };
    let others = || claims.iter().filter(|(other, ..)| *other != number);
    if let Some((_, other, _)) = others().find(|(_, _, theirs)| theirs.system != line.system) {
        return Err(Failure::Refused(format!(
            "{name} and {other} are primaries of different databases; name the hosts of one (`database`)"
        )));
    }
    if let Some((_, other, _)) = others().find(|(_, _, theirs)| theirs.timeline == line.timeline) {
        return Err(Failure::Unavailable(format!(
            "{name} and {other} both say that they are the primary, of timeline {}; stop the one that is not, or name \
             only the other (`database`)",
            line.timeline
        )));
    }
    match known {
        Some(known) if known.system != line.system => Err(Failure::Refused(format!(
            "{name} is the primary of another database than this server has used; name the hosts of one (`database`)"
        ))),
        Some(known) if known.timeline > line.timeline => Err(Failure::Disconnected(format!(
            "{name} says that it is the primary, but of timeline {}, and {} was used already; make a standby of it",
            line.timeline, known.timeline
        ))),
        _ => Ok((number, line.clone())),
    }
}

fn no_primary(said: &[(&str, Said)]) -> Failure {
    let each = said.iter().map(|(name, said)| match said {
        Said::Primary(_) => format!("{name} is the primary"),
        Said::Standby => format!("{name} is a standby (in recovery)"),
        Said::Silent(reason) | Said::Refused(reason) => format!("{name}: {reason}"),
    });
    let each = each.collect::<Vec<_>>().join("; ");
    let any = |is: fn(&Said) -> bool| said.iter().any(|(_, said)| is(said));
    if any(|said| matches!(said, Said::Refused(_))) {
        return Failure::Refused(each);
    }
    let mend = if any(|said| matches!(said, Said::Standby)) {
        "promote one of them, or name its primary"
    } else {
        "start it, or name where it is"
    };
    Failure::Disconnected(format!("{each}; {mend} (`database`)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(system: &str, timeline: u32) -> Line {
        Line {
            system: system.to_owned(),
            timeline,
        }
    }

    fn primary(timeline: u32) -> Said {
        Said::Primary(line("s", timeline))
    }

    fn silent() -> Said {
        Said::Silent("connection refused".to_owned())
    }

    fn used(said: &[Said], known: Option<&Line>) -> Result<usize, Failure> {
        let said: Vec<_> = ["h1", "h2", "h3"].into_iter().zip(said.iter().cloned()).collect();
        judge(&said, known).map(|(number, _)| number)
    }

    fn refusal(said: &[Said], known: Option<&Line>) -> String {
        match used(said, known).unwrap_err() {
            Failure::Disconnected(text) | Failure::Refused(text) | Failure::Unavailable(text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_one_that_is_not_in_recovery_is_used_wherever_it_stands() {
        assert_eq!(used(&[Said::Standby, primary(1), silent()], None).unwrap(), 1);
        assert_eq!(used(&[primary(1)], Some(&line("s", 1))).unwrap(), 0);
        let wrong = Said::Refused("password authentication failed".to_owned());
        assert_eq!(
            used(&[wrong, Said::Standby, primary(3)], Some(&line("s", 1))).unwrap(),
            2
        );
    }

    #[test]
    fn of_two_primaries_the_one_that_was_promoted_last_is_used() {
        for said in [[primary(1), primary(2)], [primary(2), primary(1)]] {
            let newer = said.iter().position(|said| *said == primary(2));
            for known in [None, Some(line("s", 1)), Some(line("s", 2))] {
                assert_eq!(used(&said, known.as_ref()).ok(), newer);
            }
        }
    }

    #[test]
    fn none_is_used_where_the_timeline_does_not_decide() {
        let told = refusal(&[primary(2), primary(2), primary(1)], None);
        assert!(
            told.contains("h2") && told.contains("both") && told.contains("timeline 2"),
            "{told}"
        );
        let foreign = Said::Primary(line("other", 9));
        let told = refusal(&[primary(2), foreign.clone()], None);
        assert!(told.contains("different databases"), "{told}");
        let told = refusal(&[silent(), foreign], Some(&line("s", 2)));
        assert!(told.contains("another database"), "{told}");
    }

    #[test]
    fn nothing_goes_back_to_an_older_timeline() {
        let told = refusal(&[primary(1), silent()], Some(&line("s", 2)));
        assert!(told.contains("timeline 1") && told.contains("standby"), "{told}");
    }

    #[test]
    fn where_there_is_no_primary_each_host_is_named_with_the_mend() {
        let told = refusal(&[Said::Standby, silent()], None);
        assert!(
            told.contains("h1 is a standby") && told.contains("h2: connection refused"),
            "{told}"
        );
        assert!(told.contains("promote") && told.contains("`database`"), "{told}");
        let told = refusal(&[silent(), silent()], None);
        assert!(told.contains("start it") && told.contains("`database`"), "{told}");
        let wrong = Said::Refused("no such user".to_owned());
        assert!(matches!(used(&[wrong, silent()], None), Err(Failure::Refused(_))));
    }
}
