//! The scheduler's decisions beside those of Karmada's.

mod with_tools {
    use pipeline_tests::scheduling::compare;

    const DOCUMENTED: &str = include_str!("../../../docs/propagation-limits.md");
    /// Begins the list of differences on purpose.
    const SECTION: &str = "## Where the scheduler decides otherwise than Karmada's";

    /// A thousand decisions, about placements, fleets and room of all kinds: ours are Karmada's, or `docs/propagation-limits.md`
    /// tells why not. More are drawn by `cargo xtask simulate scheduling`.
    #[test]
    #[ignore = "long"]
    fn differences_are_documented() {
        let table = compare(1, 3_000).unwrap();
        table.check().unwrap();
        let (_, section) = DOCUMENTED.split_once(SECTION).unwrap();
        for row in table.rows() {
            assert!(section.contains(&format!("| {row} |")), "{row}");
        }
    }
}
