//! The agent's verdict beside real resolvers.

mod with_resolvers {
    use std::path::Path;

    use pipeline_tests::{programs, resolvers::compare};

    const DOCUMENTED: &str = include_str!("../../../docs/probe.md");
    /// Begins the list of differences on purpose.
    const SECTION: &str = "### What the vote does not tell";

    /// A hundred clusters with broken DNS, each in its way: whatever glibc, musl and Go see, the agent votes, or says,
    /// or `docs/probe.md` tells why not. More are drawn by `cargo xtask simulate resolvers`.
    #[test]
    #[ignore = "long"]
    fn differences_are_documented() {
        programs::build_for_tests().unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_pipeline-tests"));
        let table = compare(program, 1..=100, 16).unwrap();
        table.check().unwrap();
        let (_, section) = DOCUMENTED.split_once(SECTION).unwrap();
        for row in table.rows() {
            assert!(section.contains(&format!("| {row} |")), "{row}");
        }
    }
}
