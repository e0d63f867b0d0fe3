//! A real kube-apiserver passes the conformance suite of the embedded one.

mod real {
    use std::io::{Write, stderr};

    use anyhow::{Context, ensure};
    use api_conformance::{count, run, run_not_embedded};
    use pipeline_tests::{
        control_plane::{ApiKind, ControlPlane},
        netns::{inside, isolated},
        test_name,
    };

    #[test]
    fn a_real_server_conforms() {
        isolated(test_name!(), async || {
            let api = ControlPlane::start("api", ApiKind::Real).await?;
            let ran = run(api.client(), "").await?;
            ensure!(ran == count(), "only {ran} cases ran");
            for (name, result) in run_not_embedded(api.client()).await? {
                result.with_context(|| name)?;
            }
            Ok(())
        });
        if !inside() {
            // libtest captures `eprintln!` of a test that passes.
            writeln!(stderr(), "{} cases ran on kube-apiserver", count()).unwrap();
        }
    }
}
