//! The files of a release, for those who have nothing else.

mod real {
    use std::fs;

    use anyhow::{Result, ensure};
    use pipeline_tests::{
        control_plane::ApiKind,
        fleet::isolated,
        programs::{self, Binary, Profile},
        test_name,
    };
    use tools::cargo;

    use super::super::{MEMBERS, Reader, before_us, controllers};

    const REGISTRY: &str = "registry.example/fleet";
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    /// That of every image.
    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    /// Installs on a Karmada by the files in place of the manifests, as docs/air-gap.md says.
    const BY_FILES: &str = "
(cd files && sha256sum --quiet --check SHA256SUMS)
kubectl --context karmada apply -f files/install-karmada-confine.yaml
kubectl --context karmada apply -f files/install-karmada.yaml -f files/install-karmada-plugin.yaml
access karmada karmada-system remedy-controller access/remedy-controller
access karmada karmada-system ingress-controller access/ingress-controller
kubectl --context gateway create namespace karmada-rs
kubectl --context gateway apply -f files/install-gateway.yaml
access gateway karmada-rs ingress-controller access/gateway
store host karmada-system remedy-controller-karmada access/remedy-controller
store host karmada-system ingress-controller-karmada access/ingress-controller
store host karmada-system ingress-controller-gateway access/gateway
kubectl --context host apply -f files/install-host.yaml
mkdir plugin
tar -xzf files/kubectl-remedy-linux-amd64.tar.gz -C plugin
image=$(sed -n 's#^\\(.*/cluster-health-agent@[^ ]*\\) .*#\\1#p' files/images.txt)
PATH=$PWD/plugin:$PATH kubectl remedy join member1 --context karmada --member-context member1 --image \"$image\" \
    --server https://203.0.113.7:5443 --wait=false
";

    /// Has Helm take over.
    const BY_CHARTS: &str = "
helm upgrade --install karmada-rs-rights files/karmada-rs-rights-*.tgz --kube-context karmada --namespace karmada-system \
    --set place=karmada --take-ownership
helm upgrade --install karmada-rs files/karmada-rs-[0-9]*.tgz --kube-context host --namespace karmada-system --take-ownership
";

    /// Prints the images of our pods: Karmada's is `a`.
    const IMAGES: &str = r#"
kubectl --context host get deployments,daemonsets -A \
    -o jsonpath='{range .items[*]}{.spec.template.spec.containers[*].image}{"\n"}{end}' | grep -v '^a$' | sort
"#;

    /// Makes the files of a release, of images that nobody has built, and leaves nothing else.
    async fn publish(reader: &Reader) -> Result<()> {
        let released = Binary::ALL.into_iter().filter(|it| *it != Binary::Sandbox);
        let images: Vec<_> = released
            .map(|program| format!("{} {DIGEST}", program.name()))
            .collect();
        fs::write(reader.path("images"), images.join("\n"))?;
        let plugin = programs::path(Binary::KubectlRemedy, Profile::Debug)?;
        let script = format!(
            "mkdir files
            {root}/.ci/plugin-archive {plugin} {root}/LICENSE files/kubectl-remedy-linux-amd64.tar.gz
            {root}/.ci/release-files https://git.example/fleet {REGISTRY} {VERSION} files < images
            rm -r images manifests",
            root = cargo::root().display(),
            plugin = plugin.display(),
        );
        reader.run(&script).await.map(drop)
    }

    /// Runs commands for which this repository is empty.
    async fn run_apart(reader: &Reader, commands: &str) -> Result<()> {
        fs::write(reader.path("commands"), commands)?;
        let script = format!(
            "unshare --mount bash -euo pipefail -c 'mount -t tmpfs none {}; . ./functions; . ./commands'",
            cargo::root().display()
        );
        reader.run(&script).await.map(drop)
    }

    /// Checks that each program that was installed has the image of the release.
    async fn has_images(reader: &Reader) -> Result<()> {
        let images = reader.run(IMAGES).await?;
        let expected = [
            format!("{REGISTRY}/cluster-health-agent@{DIGEST}"),
            format!("{REGISTRY}/ingress-controller:{VERSION}@{DIGEST}"),
            format!("{REGISTRY}/remedy-controller:{VERSION}@{DIGEST}"),
        ];
        ensure!(images.lines().eq(expected), "{images}");
        Ok(())
    }

    /// Who has the folder of a release and nothing of this repository installs on a Karmada: traffic is served, every image is the
    /// release's, and its charts take over.
    #[test]
    #[ignore = "long"]
    fn files_suffice() {
        isolated(test_name!(), async || {
            let fleet = before_us(ApiKind::Real).await?;
            let reader = Reader::new(&fleet, ApiKind::Real)?;
            reader.learn_functions().await?;
            publish(&reader).await?;
            run_apart(&reader, BY_FILES).await?;
            has_images(&reader).await?;
            let controllers = controllers(&fleet, &reader, ApiKind::Real).await?;
            fleet.create_ingress("moved", "karmada-rs").await?;
            fleet.serves(&MEMBERS).await?;
            for controller in controllers {
                controller.stop().await?;
            }
            run_apart(&reader, BY_CHARTS).await?;
            has_images(&reader).await
        });
    }
}
