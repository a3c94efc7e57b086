//! What a terminal gets that a file does not: a bold head, and what is under way.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::process::Stdio;
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::asked::Asked;
use crate::program::program;
use crate::site::Site;

const BOLD: &str = "\u{1b}[1m";
/// No run takes longer; one that hangs fails its test.
const LIMIT: Duration = Duration::from_secs(60);

/// What one terminal shows of a run whose stdout, stderr or both it is.
async fn shown(asked: &Asked, arguments: &[&str], out: bool, err: bool, no_color: bool) -> (String, String) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let end = || Stdio::from(OpenOptions::new().read(true).write(true).open(&name).unwrap());
    let mut command = program(arguments, &asked.variables);
    if no_color {
        command.env("NO_COLOR", "1");
    }
    command.stdin(Stdio::null());
    command.stdout(if out { end() } else { Stdio::piped() });
    command.stderr(if err { end() } else { Stdio::piped() });
    let child = command.spawn().unwrap();
    // Or the terminal would never end.
    drop(command);
    let reader = tokio::task::spawn_blocking(move || {
        let (mut terminal, mut bytes) = (File::from(terminal), Vec::new());
        // A terminal that everybody has left says EIO.
        let _ = terminal.read_to_end(&mut bytes);
        String::from_utf8(bytes).unwrap()
    });
    let ended = tokio::task::spawn_blocking(|| child.wait_with_output().unwrap());
    let ended = tokio::time::timeout(LIMIT, ended).await.expect("it ends").unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    let terminal = tokio::time::timeout(LIMIT, reader).await.expect("the terminal ends").unwrap();
    let piped = [ended.stdout, ended.stderr].concat();
    (terminal, String::from_utf8(piped).unwrap())
}

#[tokio::test]
async fn a_table_is_bold_at_a_terminal_only() {
    let site = Site::sqlite().await;
    let asked = Asked::of(&site);
    asked.done("orders", "po-1").await;
    for arguments in [&["keys", "list"][..], &["keys", "get", "orders", "po-1"]] {
        let (terminal, _) = shown(&asked, arguments, true, false, false).await;
        assert!(terminal.contains(BOLD) && terminal.contains("po-1"), "{terminal:?}");
        let (terminal, _) = shown(&asked, arguments, true, false, true).await;
        assert!(!terminal.contains('\u{1b}') && terminal.contains("po-1"), "{terminal:?}");
        let (_, piped) = shown(&asked, arguments, false, true, false).await;
        assert!(!piped.contains('\u{1b}') && piped.contains("po-1"), "{piped:?}");
    }
}

#[tokio::test]
async fn a_purge_shows_how_it_goes_on_at_a_terminal_only() {
    let site = Site::sqlite().await;
    let asked = Asked::of(&site);
    asked.done("orders", "po-1").await;
    let (terminal, piped) = shown(&asked, &["keys", "purge"], false, true, false).await;
    assert!(terminal.contains("deleted 0"), "{terminal:?}");
    assert_eq!(piped, "Deleted: 0.\n");
    let (terminal, piped) = shown(&asked, &["keys", "purge"], true, false, false).await;
    assert_eq!((terminal.trim_end(), &*piped), ("Deleted: 0.", ""));
}

#[tokio::test]
async fn a_long_list_shows_how_it_goes_on_and_its_lines_stay_whole() {
    let site = Site::sqlite().await;
    let asked = Asked::of(&site);
    asked.many(520).await;
    let (terminal, piped) = shown(&asked, &["keys", "list", "--json"], false, true, false).await;
    assert!(terminal.contains("found 500"), "{terminal:?}");
    assert_eq!(piped.lines().count(), 520);
    // Both at once: what is under way is taken away before lines are written.
    let (terminal, _) = shown(&asked, &["keys", "list", "--json"], true, true, false).await;
    let whole = |line: &&str| line.trim_end().ends_with('}') && line.contains(r#"{"consumer":"orders""#);
    assert_eq!(terminal.lines().filter(whole).count(), 520);
}
