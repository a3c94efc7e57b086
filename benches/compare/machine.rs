//! On what, with what and when a run was made.

use std::fs;
use std::process::Command;

use crate::entry::root;

pub(crate) fn described() -> String {
    let field = |file: &str, name: &str| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_once(':').map_or(String::new(), |(_, value)| value.trim().to_owned())
    };
    let whole = |file: &str| fs::read_to_string(file).unwrap_or_default().trim().to_owned();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kib: u64 = field("/proc/meminfo", "MemTotal").trim_end_matches(" kB").parse().unwrap_or_default();
    let server = |name: &str| said(&format!("functional/servers/{name}"), &["version"]);
    format!(
        "{}, {cores} cores of {}, {} GiB, Linux {}; load average before the run {}. {}, commit {}. PostgreSQL {}, Redis {}, Datastore emulator {}; {}.",
        chrono::Utc::now().format("%Y-%m-%d"),
        field("/proc/cpuinfo", "model name"),
        kib.div_ceil(1024 * 1024),
        whole("/proc/sys/kernel/osrelease"),
        whole("/proc/loadavg").split(' ').next().unwrap_or_default(),
        said("rustc", &["--version"]),
        said("git", &["describe", "--always", "--dirty"]),
        server("postgres"),
        server("redis"),
        server("datastore-emulator"),
        said("target/compare/venv/bin/python", &["--version"]),
    )
}

fn said(program: &str, arguments: &[&str]) -> String {
    let path = root().join(program);
    let mut command = if path.is_file() { Command::new(path) } else { Command::new(program) };
    let output = command.args(arguments).current_dir(root()).output();
    output.map_or("unknown".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
