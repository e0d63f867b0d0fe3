//! The links of every page in Markdown: each leads to a file that is there, and to a section of it. Those of docs/ are
//! read as files and as a site (`cargo xtask book`), which has no file but those of docs/.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of tests are tests"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use tools::cargo;

const SUMMARY: &str = "docs/SUMMARY.md";

/// A reader follows every link, in an editor, on a forge and on the site.
#[test]
fn links_lead_to_sections() {
    let pages = pages();
    let broken: Vec<_> = pages
        .iter()
        .flat_map(|(path, text)| {
            links(text)
                .filter_map(move |link| Some(format!("{path}: {link}: {}", broken(path, link)?)))
        })
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// mdBook leaves a page out that its summary does not name.
#[test]
fn summary_has_each_page_once() {
    let pages = pages();
    let listed: Vec<_> = links(&pages[SUMMARY])
        .map(|link| format!("docs/{link}"))
        .collect();
    let once: BTreeSet<_> = listed.iter().cloned().collect();
    assert_eq!(listed.len(), once.len(), "{SUMMARY} has a page twice");
    let of_docs = pages.keys().filter(|path| path.starts_with("docs/"));
    let unlisted: Vec<_> = of_docs
        .filter(|path| *path != SUMMARY && !once.contains(*path))
        .map(|path| format!("- [{}]({})", title(&pages[path]), &path["docs/".len()..]))
        .collect();
    assert!(
        unlisted.is_empty(),
        "{SUMMARY} lacks:\n{}",
        unlisted.join("\n")
    );
}

/// Returns the text of every page of the project by its path.
fn pages() -> BTreeMap<String, String> {
    let files = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .arg("*.md")
        .current_dir(cargo::root())
        .output()
        .unwrap();
    let files = String::from_utf8(files.stdout).unwrap();
    let pages = files.lines().filter_map(|path| {
        // A page that is deleted, and not yet from the index, cannot be read.
        let text = fs::read_to_string(cargo::root().join(path)).ok()?;
        Some((path.to_owned(), text))
    });
    pages.collect()
}

/// Returns why a link of a page leads nowhere.
fn broken(page: &str, link: &str) -> Option<&'static str> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, section) = match link.split_once('#') {
        Some((path, section)) => (path, Some(section)),
        None => (link, None),
    };
    let target = if path.is_empty() {
        PathBuf::from(page)
    } else {
        normal(&Path::new(page).with_file_name(path))
    };
    let file = cargo::root().join(&target);
    let of_docs = page.starts_with("docs/");
    if !file.exists() || of_docs && file.is_dir() {
        return Some("there is no such file");
    }
    if of_docs && !target.starts_with("docs") {
        return Some("a page of the site links only what is in docs/");
    }
    let section = section?;
    let found = sections(&fs::read_to_string(file).ok()?).any(|known| known == section);
    (!found).then_some("the page has no such section")
}

/// Returns a path without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}

/// Returns the lines of a page that are no code between fences.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// Returns the targets of the links and images of a page.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let parts = prose(text).flat_map(|line| {
        // A line of code may have text like a link between backticks.
        line.match_indices("](")
            .filter(move |(at, _)| line[..*at].matches('`').count().is_multiple_of(2))
            .map(move |(at, start)| &line[at + start.len()..])
    });
    parts.filter_map(|rest| rest.split_once(')').map(|(link, _)| link))
}

/// Returns the name of every section of a page, as GitHub and mdBook make it of the heading.
fn sections(text: &str) -> impl Iterator<Item = String> {
    let mut known = BTreeMap::<String, usize>::new();
    headings(text).map(move |heading| {
        let name = name(&shown(heading));
        let before = known.entry(name.clone()).or_default();
        *before += 1;
        match *before {
            1 => name,
            times => format!("{name}-{}", times - 1),
        }
    })
}

fn headings(text: &str) -> impl Iterator<Item = &str> {
    prose(text).filter_map(|line| {
        let heading = line.trim_start_matches('#');
        (heading.len() < line.len()).then(|| heading.strip_prefix(' '))?
    })
}

fn title(text: &str) -> &str {
    headings(text).next().unwrap_or_else(|| panic!("no title"))
}

/// Returns a heading as it is shown: of a link its text.
fn shown(heading: &str) -> String {
    let mut shown = String::new();
    let mut rest = heading;
    while let Some((before, after)) = rest.split_once("](") {
        shown += &before.replacen('[', "", 1);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    shown + rest
}

fn name(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|character| {
        if character == ' ' {
            return Some('-');
        }
        (character.is_alphanumeric() || "-_".contains(character)).then_some(character)
    });
    kept.flat_map(char::to_lowercase).collect()
}

#[test]
fn names_are_as_rendered() {
    let page = "# 2. Karmada API: rights, IngressClass\n```\n# code\n```\n## The fault (`--a` and `--b`)\n# [A](b.md) b\n# A b";
    let names: Vec<_> = sections(page).collect();
    assert_eq!(
        names,
        [
            "2-karmada-api-rights-ingressclass",
            "the-fault---a-and---b",
            "a-b",
            "a-b-1"
        ]
    );
}

#[test]
fn code_has_no_links() {
    let page = "[a](b.md#c) `x[0](y)` ![d](e.png)\n```\n[f](g.md)\n```";
    let found: Vec<_> = links(page).collect();
    assert_eq!(found, ["b.md#c", "e.png"]);
}
