//! As much of HTTP/1.1 as it takes to know whether an answer is a success, and where it ends.

use anyhow::{Context as _, Result, bail, ensure};

/// An answer that is here as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The length of its head and its body.
    pub(crate) bytes: usize,
}

/// Looks whether the answer at the beginning of what was received is complete; none if more must be read. The server
/// says the length of every body, so an answer that does not is an error and not a body of unknown end.
pub(crate) fn parse(received: &[u8]) -> Result<Option<Answer>> {
    let Some((status_line, mut rest)) = split_line(received) else {
        return Ok(None);
    };
    let mut length: Option<usize> = None;
    loop {
        let Some((line, after)) = split_line(rest) else {
            return Ok(None);
        };
        rest = after;
        if line.is_empty() {
            break;
        }
        if let Some(value) = header(line, b"content-length") {
            length = Some(value.trim().parse().context("a length that is no number")?);
        }
    }
    let status = status(status_line)?;
    let Some(length) = length else {
        bail!("the answer, a {status}, does not say how long it is");
    };
    if rest.len() < length {
        return Ok(None);
    }
    let bytes = received.len() - rest.len() + length;
    Ok(Some(Answer { status, bytes }))
}

/// The first line without its end, and what follows it.
fn split_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
    Some((line, &bytes[end + 1..]))
}

fn status(line: &[u8]) -> Result<u16> {
    let text = std::str::from_utf8(line).context("a status line that is no text")?;
    ensure!(text.starts_with("HTTP/1.1 "), "`{text}` is no status line");
    let code = text.get(9..12).and_then(|code| code.parse().ok());
    code.with_context(|| format!("`{text}` has no status"))
}

/// The value of this header, if the line is one.
fn header<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a str> {
    let (start, value) = line.split_at_checked(name.len())?;
    let value = value.strip_prefix(b":")?;
    if !start.eq_ignore_ascii_case(name) {
        return None;
    }
    std::str::from_utf8(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nContent-Length: 2\r\n\r\n{}";

    #[test]
    fn an_answer_is_complete_with_its_last_byte_and_not_before() {
        for end in 0..WHOLE.len() {
            assert_eq!(parse(&WHOLE[..end]).unwrap(), None, "{end} bytes");
        }
        let whole = Answer {
            status: 200,
            bytes: WHOLE.len(),
        };
        assert_eq!(parse(WHOLE).unwrap(), Some(whole));
        let more = [WHOLE, b"HTTP"].concat();
        assert_eq!(parse(&more).unwrap(), Some(whole));
    }

    #[test]
    fn the_status_is_told_whatever_it_is() {
        let conflict = b"HTTP/1.1 409 Conflict\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(parse(conflict).unwrap().map(|answer| answer.status), Some(409));
    }

    #[test]
    fn what_cannot_be_understood_is_an_error() {
        for text in [
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: two\r\n\r\n",
            "HTTP/1.1 OK\r\ncontent-length: 0\r\n\r\n",
            "SSH-2.0\r\ncontent-length: 0\r\n\r\n",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
