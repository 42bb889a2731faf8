//! What a server costs before it does anything: the time to its first answer, its memory at rest, its size on disk.
//!
//! Measured on the embedded default, with nothing configured but the port and the directory.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::rates::median;
use super::remove;

const STARTS: usize = 10;

const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

const REST: Duration = Duration::from_secs(2);

/// The lines to print.
pub(super) fn report(binary: &Path, directory: &Path) -> Result<Vec<String>> {
    let data = directory.join("start");
    let (mut first, mut again) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        remove(&data)?;
        first.push(Started::launch(binary, &data)?.answered_after.as_secs_f64());
        again.push(Started::launch(binary, &data)?.answered_after.as_secs_f64());
    }
    let started = Started::launch(binary, &data)?;
    std::thread::sleep(REST);
    let memory = started.resident_kib()?;
    let bytes = std::fs::metadata(binary)?.len();
    Ok(vec![
        format!(
            "start to the first answered request: {:.0} ms on an empty directory, {:.0} ms on a filled one (medians of {STARTS})",
            median(first) * 1e3,
            median(again) * 1e3
        ),
        format!("resident memory at rest: {:.1} MiB", memory / 1024.0),
        format!(
            "size of the release binary: {:.1} MiB",
            as_f64(bytes)? / 1024.0 / 1024.0
        ),
    ])
}

/// A server that has answered once. Dropping it kills it.
struct Started {
    child: Child,
    answered_after: Duration,
}

impl Started {
    /// Asks every millisecond until there is an answer from the database.
    fn launch(binary: &Path, data: &Path) -> Result<Started> {
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let begun = Instant::now();
        let child = Command::new(binary)
            .env_clear()
            .args(["serve", "--listen", &address.to_string(), "--data-dir"])
            .arg(data)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let mut started = Started {
            child,
            answered_after: Duration::ZERO,
        };
        while !answers(address) {
            if let Some(status) = started.child.try_wait()? {
                bail!("the server ended before it answered ({status})");
            }
            ensure!(
                begun.elapsed() < ANSWERED_WITHIN,
                "no answer within {ANSWERED_WITHIN:?}"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        started.answered_after = begun.elapsed();
        Ok(started)
    }

    fn resident_kib(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))
            .context("the memory of a process is read from /proc, which only Linux has")?;
        let kib = resident(&status).context("/proc names no resident memory")?;
        as_f64(kib)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // It may have ended by itself; there is nobody left to tell either way.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim_end().parse().ok()
}

/// No file and no process here has more than four billion of anything that is counted this way.
fn as_f64(count: u64) -> Result<f64> {
    Ok(f64::from(u32::try_from(count)?))
}

fn answers(address: SocketAddr) -> bool {
    ask(address).is_ok_and(|answer| answer.starts_with(b"HTTP/1.1 200"))
}

fn ask(address: SocketAddr) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(ANSWERED_WITHIN))?;
    write!(
        stream,
        "GET /api/metalakes HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_read_from_the_status_of_a_process() {
        let status = "Name:\ttreeline\nVmHWM:\t   20000 kB\nVmRSS:\t   18464 kB\nThreads:\t3\n";
        assert_eq!(resident(status), Some(18_464));
        assert_eq!(resident("Name:\tkthreadd\n"), None);
    }
}
