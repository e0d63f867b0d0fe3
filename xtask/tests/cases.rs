//! docs/cases.md against the code: each case stands there once, with exactly the tests that cite it.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of tests are tests"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use tools::cargo;

/// The names of the tests of each case.
type Tests = BTreeMap<String, BTreeSet<String>>;

#[test]
fn page_lists_what_tests_cite() {
    let page = fs::read_to_string(cargo::root().join("docs/cases.md")).unwrap();
    let listed = listed(&page);
    let cited = cited(&listed.keys().map(|case| &case[..1]).collect());
    for case in listed.keys().chain(cited.keys()) {
        let (listed, cited) = (listed.get(case), cited.get(case));
        assert_eq!(
            listed, cited,
            "{case}: docs/cases.md lists the left ones, the code cites it at the right ones"
        );
    }
}

#[test]
fn inputs_have_tests() {
    let page = fs::read_to_string(cargo::root().join("docs/cases.md")).unwrap();
    let (_, inputs) = page.split_once("## Inputs that failed once").unwrap();
    let functions = functions();
    let names = inputs.split('`').skip(1).step_by(2);
    for test in names.filter(|name| name.contains("::")) {
        assert!(
            functions.contains(test),
            "docs/cases.md: there is no test {test}"
        );
    }
}

/// Returns the names of the functions in packages and their tests.
fn functions() -> BTreeSet<String> {
    let mut functions = BTreeSet::new();
    for (file, code) in code().filter(|(file, _)| !file.contains("/examples/")) {
        let (module, lines) = (module_of(&file), code.lines().collect::<Vec<_>>());
        let names = (0..lines.len()).filter_map(|nth| function_at(&lines, nth));
        functions.extend(names.map(|name| format!("{module}{name}")));
    }
    functions
}

/// Returns the entries of the page: rows of a case, what happens, why, and the tests.
fn listed(page: &str) -> Tests {
    let mut listed = Tests::new();
    for row in page.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let (case, tests) = (cells[1], cells[4]);
        if !is_case(case) {
            continue;
        }
        // Every second part of a text is between backticks.
        let names = tests.split('`').skip(1).step_by(2);
        let names = names.map(str::to_owned).collect();
        let twice = listed.insert(case.to_owned(), names);
        assert!(twice.is_none(), "docs/cases.md has {case} twice");
    }
    assert!(!listed.is_empty(), "docs/cases.md lists no case");
    listed
}

/// Returns the citations in comments of the code, of cases with these letters.
fn cited(letters: &BTreeSet<&str>) -> Tests {
    let mut cited = Tests::new();
    for (file, code) in code() {
        let lines: Vec<&str> = code.lines().collect();
        for (nth, line) in lines.iter().enumerate() {
            for case in cases_in(line).filter(|case| letters.contains(&case[..1])) {
                let Some(test) = test_at(&lines, nth) else {
                    panic!("{file}:{}: {case} is cited at no test", nth + 1);
                };
                let name = format!("{}{test}", module_of(&file));
                cited.entry(case.to_owned()).or_default().insert(name);
            }
            assert!(
                !cites_a_bare_number(line),
                "{file}:{}: a case without its letter: {line}",
                nth + 1
            );
        }
    }
    cited
}

/// Returns the files of Rust code: their paths and texts.
fn code() -> impl Iterator<Item = (String, String)> {
    let files = Command::new("git")
        .args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "*.rs",
        ])
        .current_dir(cargo::root())
        .output()
        .unwrap();
    let files = String::from_utf8(files.stdout).unwrap();
    let files: Vec<_> = files.lines().map(str::to_owned).collect();
    files.into_iter().filter_map(|file| {
        let code = fs::read_to_string(cargo::root().join(&file)).ok()?;
        Some((file, code))
    })
}

/// Returns the words of a comment that look like cases.
fn cases_in(line: &str) -> impl Iterator<Item = &str> {
    let comment = line.find("//").map_or("", |start| &line[start..]);
    comment
        .split(|character: char| !character.is_ascii_alphanumeric())
        .filter(|word| is_case(word))
}

/// Returns `true` for a capital letter and a number.
fn is_case(word: &str) -> bool {
    let mut characters = word.chars();
    let letter = characters.next();
    letter.is_some_and(|letter| letter.is_ascii_uppercase())
        && (2..=4).contains(&word.len())
        && characters.all(|character| character.is_ascii_digit())
}

fn cites_a_bare_number(line: &str) -> bool {
    let mut words = line.trim_start().split(' ');
    let is_comment = words.next().is_some_and(|first| first.starts_with("//"));
    let is_citation = words.any(|word| word == "Case" || word == "Cases");
    is_comment
        && is_citation
        && words
            .next()
            .is_some_and(|word| word.starts_with(char::is_numeric))
}

/// Returns the name of the function that a line documents or is in, after the modules around it in its file.
fn test_at(lines: &[&str], nth: usize) -> Option<String> {
    let documents = lines[nth].trim_start().starts_with("///");
    let found = if documents {
        (nth..lines.len()).find(|nth| function(lines[*nth]).is_some())?
    } else {
        (0..nth).rfind(|nth| function(lines[*nth]).is_some())?
    };
    function_at(lines, found)
}

/// Returns the name of the function that begins at a line, after the modules around it in its file.
fn function_at(lines: &[&str], nth: usize) -> Option<String> {
    let mut name = function(lines[nth])?.to_owned();
    let mut indent = indent(lines[nth]);
    for line in lines[..nth].iter().rev() {
        if self::indent(line) < indent
            && let Some(module) = word_after(line, "mod ")
        {
            name = format!("{module}::{name}");
            indent = self::indent(line);
        }
    }
    Some(name)
}

fn function(line: &str) -> Option<&str> {
    word_after(line, "fn ")
}

/// Returns the name that follows a keyword in code.
fn word_after<'a>(line: &'a str, keyword: &str) -> Option<&'a str> {
    if line.trim_start().starts_with("//") {
        return None;
    }
    let (_, rest) = line.split_once(keyword)?;
    let end = rest.find(|character: char| !character.is_alphanumeric() && character != '_');
    Some(&rest[..end?])
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns the path of a file's module, with `::` at its end: within the pipeline's tests, or after its package.
fn module_of(file: &str) -> String {
    let path = file.trim_end_matches(".rs").trim_end_matches("/mod");
    if let Some(within) = path.strip_prefix("tests/tests/pipeline/") {
        return format!("{}::", within.replace('/', "::"));
    }
    let parts = path
        .split_once("/src/")
        .or_else(|| path.split_once("/tests/"));
    let (folder, within) = parts.unwrap();
    format!("{}::{}::", package(folder), within.replace('/', "::"))
}

/// Returns the name under which code refers to the package in a folder.
fn package(folder: &str) -> String {
    let manifest = cargo::root().join(Path::new(folder)).join("Cargo.toml");
    let manifest = fs::read_to_string(manifest).unwrap();
    let name = manifest
        .lines()
        .find_map(|line| line.strip_prefix("name = "));
    name.unwrap().trim_matches('"').replace('-', "_")
}

#[test]
fn citations_name_their_tests() {
    let code = [
        "/// Cases Z4 and (Y2), not IPv4 or Z-256.",
        "async fn deleted() {",
        "    // Neither does this (Y5).",
        "}",
        "mod real {",
        "    /// Case Z7.",
        "    fn repaired() {}",
    ];
    assert_eq!(cases_in(code[0]).collect::<Vec<_>>(), ["Z4", "Y2"]);
    assert_eq!(test_at(&code, 0).unwrap(), "deleted");
    assert_eq!(test_at(&code, 2).unwrap(), "deleted");
    assert_eq!(test_at(&code, 5).unwrap(), "real::repaired");
    assert!(cites_a_bare_number("    /// Case 7: repaired."));
}

#[test]
#[should_panic(expected = "has Z1 twice")]
fn repeated_case_is_refused() {
    listed("| Z1 | a | b | `x` |\n| Z1 | a | b | `y` |");
}
