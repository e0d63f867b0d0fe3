//! Counts in lines of code, as rustfmt leaves them.

/// The ends of the names of types that carry a write.
const WRITE_TYPES: [&str; 4] = ["Plan", "Write", "Change", "Step"];

/// The ends of the names of types in such a type.
const WRITTEN: [&str; 4] = ["Value", "Box", "Patch", "Write"];

/// The counts of many lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) lines: usize,
    pub(crate) functions: usize,
    /// Each `let`.
    pub(crate) bindings: usize,
    /// Each `let` of a closure.
    pub(crate) closures: usize,
    /// The words of comments.
    pub(crate) words: usize,
    /// The word "what" in comments.
    pub(crate) whats: usize,
}

impl Counts {
    /// Counts one more line.
    pub(crate) fn add(&mut self, line: &str) {
        self.lines += 1;
        if is_comment(line) {
            let words = line.split(|c: char| !c.is_ascii_alphabetic() && c != '\'');
            let words = words.map(|word| word.trim_matches('\''));
            for word in words.filter(|word| !word.is_empty()) {
                self.words += 1;
                self.whats += usize::from(word.eq_ignore_ascii_case("what"));
            }
            return;
        }
        self.functions += usize::from(is_function(line));
        self.bindings += names(line).filter(|name| *name == "let").count();
        let bound = line.split("let ").skip(1);
        self.closures += bound.filter(|bound| is_closure(bound)).count();
    }
}

/// Splits a file into its code and its inline tests.
pub(crate) fn split(text: &str) -> (Vec<&str>, Vec<&str>) {
    let (mut code, mut tests) = (Vec::new(), Vec::new());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let next = lines.peek().filter(|_| line == "#[cfg(test)]");
        if next.is_some_and(|next| next.starts_with("mod ") && next.ends_with('{')) {
            tests.push(line);
            for line in lines.by_ref() {
                tests.push(line);
                if line == "}" {
                    break;
                }
            }
        } else {
            code.push(line);
        }
    }
    (code, tests)
}

/// Returns the names of the types that carry a write: `…Plan`, `…Write`, `…Change` or `…Step`, whose fields or
/// variants name a `…Value`, a `…Box`, a `…Patch` or another `…Write`.
pub(crate) fn write_types<'a>(code: &[&'a str]) -> Vec<&'a str> {
    let lines = code.iter().copied().enumerate();
    let types = lines.filter_map(|(at, line)| Some((at, defined_type(line)?)));
    let types = types.filter(|(_, name)| WRITE_TYPES.iter().any(|end| name.ends_with(end)));
    types
        .filter(|(at, name)| {
            let mut held = definition(code, *at).flat_map(names);
            held.any(|one| one != *name && WRITTEN.iter().any(|end| one.ends_with(end)))
        })
        .map(|(_, name)| name)
        .collect()
}

/// Iterates over the lines of the definition that begins at a line, without comments and attributes.
fn definition<'a>(code: &[&'a str], at: usize) -> impl Iterator<Item = &'a str> {
    let mut lines = code.iter().copied().skip(at);
    let depth = code.get(at).map(|line| depth(line));
    let mut is_over = false;
    let lines = std::iter::from_fn(move || {
        let line = lines.next().filter(|_| !is_over)?;
        is_over = depth == Some(self::depth(line)) && line.ends_with([';', '}']);
        Some(line)
    });
    lines.filter(|line| !is_comment(line) && !line.trim_start().starts_with('#'))
}

/// Returns the name of the type whose definition begins in a line.
fn defined_type(line: &str) -> Option<&str> {
    let mut names = names(line).filter(|_| !is_comment(line));
    let keyword = names.find(|name| !["pub", "crate", "super"].contains(name))?;
    names
        .next()
        .filter(|_| ["struct", "enum"].contains(&keyword))
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

fn is_function(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.find(|word| !is_qualifier(word)) == Some("fn")
}

fn is_qualifier(word: &str) -> bool {
    ["const", "async", "unsafe"].contains(&word) || word.starts_with("pub")
}

/// Returns `true` if the text after a `let ` binds a closure.
fn is_closure(bound: &str) -> bool {
    let bound = bound.strip_prefix("mut ").unwrap_or(bound);
    let Some((name, value)) = bound.split_once(" = ") else {
        return false;
    };
    let value = value.strip_prefix("async ").unwrap_or(value);
    let value = value.strip_prefix("move ").unwrap_or(value);
    names(name).eq([name]) && value.starts_with('|')
}

/// Iterates over the names and keywords in a line.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let names = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    names.filter(|name| !name.is_empty())
}

fn depth(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Comments are no code, and a closure is one that has a name.
    #[test]
    fn lines_are_counted() {
        let text = "\
/// Returns what is left, and what's not.
pub(crate) async fn f() {
    let mut is_left = move |x| x;
    let left = items.filter(|x| is_left(x));
    if let Some(x) = g(|| 1) {}
}";
        let mut counts = Counts::default();
        for line in text.lines() {
            counts.add(line);
        }
        let expected = Counts {
            lines: 6,
            functions: 1,
            bindings: 3,
            closures: 1,
            words: 7,
            whats: 1,
        };
        assert_eq!(counts, expected);
    }

    /// Lines after inline tests are code again.
    #[test]
    fn inline_tests_are_split() {
        let (code, tests) = split("a\n#[cfg(test)]\nmod tests {\n    b\n}\n#[cfg(test)]\nmod c;");
        assert_eq!(code, ["a", "#[cfg(test)]", "mod c;"]);
        assert_eq!(tests, ["#[cfg(test)]", "mod tests {", "    b", "}"]);
    }

    /// A type carries a write if it holds one, and not by its name alone.
    #[test]
    fn write_types_hold_writes() {
        let code = "\
pub enum WorkChange {
    /// A Patch.
    Unchanged,
}
pub(super) struct Change(patch::Patch);
pub struct WorksPlan<'a> {
    writes: Vec<WorkWrite>,
}
struct Other(Value);
struct LastWrite;
struct Body(Value);";
        let code: Vec<_> = code.lines().collect();
        assert_eq!(write_types(&code), ["Change", "WorksPlan"]);
    }
}
