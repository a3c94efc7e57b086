//! The pages: each link between them leads somewhere, and each alert to its heading of the runbook.
#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The alerts of the Terraform module, each a heading of the runbook.
const ALERTS: [&str; 13] = [
    "attempts-running-out",
    "backlog-near-retention",
    "backlog-too-old",
    "dead-letter-backlog",
    "dead-lettered",
    "dead-lettered-by-handler",
    "lost",
    "misuse",
    "push-refused",
    "push-too-slow",
    "unauthorized",
    "unavailable",
    "uncertain",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below a folder that has the ending; nothing where there is no such folder.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true if !path.ends_with(".terraform") => found.extend(files(&path, ending)),
            false if path.extension().is_some_and(|is| is == ending) => found.push(path),
            _ => {}
        }
    }
    found.sort();
    found
}

/// The pages at the root, in `docs/` and in `terraform/`.
fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<_> =
        fs::read_dir(root()).expect("the root").map(|entry| entry.expect("an entry").path()).collect();
    pages.retain(|path| path.extension().is_some_and(|is| is == "md"));
    pages.extend(files(&root().join("docs"), "md"));
    pages.extend(files(&root().join("terraform"), "md"));
    pages
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The lines of a page that are not code.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    page.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    })
}

/// The anchors that GitHub gives the headings of a page: lower case, without punctuation, a hyphen for
/// each space, and a number behind the second of a name.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut seen = BTreeMap::<String, usize>::new();
    let mut anchors = BTreeSet::new();
    for line in prose(page) {
        let text = line.trim_start_matches('#');
        let level = line.len() - text.len();
        let Some(text) = text.strip_prefix(' ').filter(|_| (1..=6).contains(&level)) else { continue };
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        let name = text.trim().to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-");
        let times = seen.entry(name.clone()).or_default();
        anchors.insert(if *times == 0 { name.clone() } else { format!("{name}-{times}") });
        *times += 1;
    }
    anchors
}

/// The targets of a page's links, but for those to elsewhere.
fn links(page: &str) -> Vec<String> {
    let mut links = Vec::new();
    for line in prose(page) {
        // Code within a line is every other part between backticks, and holds no link.
        let text: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for rest in text.split("](").skip(1) {
            let target = rest.split(')').next().unwrap_or_default();
            if !target.contains("://") && !target.starts_with("mailto:") {
                links.push(target.to_owned());
            }
        }
    }
    links
}

/// What is wrong with the links of a page.
fn broken(path: &Path, page: &str) -> Vec<String> {
    let folder = path.parent().expect("a folder");
    let wrong = |target: &String| {
        let (file, anchor) =
            target.split_once('#').map_or((&**target, None), |(file, anchor)| (file, Some(anchor)));
        let file = if file.is_empty() { path.to_owned() } else { folder.join(file) };
        let leads = match anchor {
            None => file.exists(),
            Some(anchor) if file == path => anchors(page).contains(anchor),
            Some(anchor) => fs::read_to_string(&file).is_ok_and(|page| anchors(&page).contains(anchor)),
        };
        !leads
    };
    let name = path.strip_prefix(root()).unwrap_or(path).display();
    links(page).into_iter().filter(wrong).map(|target| format!("{name}: {target}")).collect()
}

/// The alerts of the module's text: the keys of its maps of them, each of which its alert links.
fn alerts(module: &str) -> BTreeSet<&str> {
    let mut inside = false;
    let mut found = BTreeSet::new();
    for line in module.lines() {
        let opens = line.trim().strip_suffix(" = {");
        match opens.filter(|_| line.starts_with("  ")) {
            Some(name) if name.ends_with("_alerts") => inside = true,
            Some(name) if inside && line.len() - line.trim_start().len() == 4 => {
                found.insert(name);
            }
            _ => inside &= line != "  }",
        }
    }
    found
}

#[test]
fn every_link_leads_somewhere() {
    let pages = pages();
    assert!(pages.len() > 12, "the pages were not found: {pages:?}");
    let read: Vec<_> = pages.iter().map(|path| (path, read(path))).collect();
    assert!(read.iter().map(|(_, page)| links(page).len()).sum::<usize>() > 60, "no links were found");
    let broken: Vec<_> = read.iter().flat_map(|(path, page)| broken(path, page)).collect();
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn every_alert_has_a_heading_in_the_runbook() {
    let headings = anchors(&read(&root().join("docs/runbook.md")));
    let missing: Vec<_> = ALERTS.iter().filter(|alert| !headings.contains(**alert)).collect();
    assert!(missing.is_empty(), "docs/runbook.md has no heading for {missing:?}");

    let module = read(&root().join("terraform/alerts.tf"));
    assert_eq!(alerts(&module), ALERTS.into(), "the alerts of terraform/alerts.tf are not those of the list");
    let links = module.matches("content").count();
    assert_eq!(
        module.matches("${var.runbook_url}#${each.key}").count(),
        links,
        "an alert that links no heading"
    );
}

#[test]
fn what_is_broken_is_found_out() {
    let page = "# One\n## Two: `x` & y\n## One\n```\n# no heading, [no](link)\n```\n[a](#one-1) [b](#two-x--y) `[c](#not)` [d](#three) [e](no.md) [f](https://x#y)\n";
    assert_eq!(anchors(page).into_iter().collect::<Vec<_>>(), ["one", "one-1", "two-x--y"]);
    let path = root().join("docs/page.md");
    assert_eq!(broken(&path, page), ["docs/page.md: #three", "docs/page.md: no.md"]);
    let module = "locals {\n  more = {\n    none = {\n    }\n  }\n  log_alerts = {\n    lost = {\n      x = {\n      }\n    }\n    dead-lettered = {\n    }\n  }\n  other = {\n    no = {\n";
    assert_eq!(alerts(module).into_iter().collect::<Vec<_>>(), ["dead-lettered", "lost"]);
}
