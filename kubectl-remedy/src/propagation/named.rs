//! The object that an argument names, as kubectl's arguments do.

use crate::error::Error;

/// The type and the name of an object: `TYPE/NAME`, or `TYPE.GROUP/NAME`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Named<'a> {
    /// A name of its kind: plural, singular, short, or the kind itself.
    pub(crate) type_: &'a str,
    /// The group, if it is given.
    pub(crate) group: Option<&'a str>,
    pub(crate) name: &'a str,
}

impl<'a> Named<'a> {
    /// Returns the object of an argument, unless that is a name alone.
    ///
    /// # Errors
    /// Fails if the type or the name is empty.
    pub(crate) fn parse(argument: &'a str) -> Result<Option<Self>, Error> {
        let Some((type_, name)) = argument.split_once('/') else {
            return Ok(None);
        };
        if type_.is_empty() || name.is_empty() || name.contains('/') {
            let problem = format!("{argument} is not TYPE/NAME, such as deployment/web");
            return Err(Error::Unusable(problem));
        }
        let (type_, group) = match type_.split_once('.') {
            Some((type_, group)) => (type_, Some(group)),
            None => (type_, None),
        };
        Ok(Some(Self { type_, group, name }))
    }

    /// Returns `true` if it is a cluster of the fleet, which is never propagated.
    pub(crate) fn is_cluster(&self) -> bool {
        let is_type = ["cluster", "clusters"]
            .iter()
            .any(|name| self.type_.eq_ignore_ascii_case(name));
        is_type && self.group.is_none_or(|group| group == "cluster.karmada.io")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named<'a>(type_: &'a str, group: Option<&'a str>, name: &'a str) -> Named<'a> {
        Named { type_, group, name }
    }

    /// Arguments read as kubectl reads them, and a name alone is that of a cluster.
    #[test]
    fn arguments_read_as_kubectls() {
        for (argument, expected) in [
            ("member1", None),
            ("deploy/web", Some(named("deploy", None, "web"))),
            (
                "deployments.apps/web",
                Some(named("deployments", Some("apps"), "web")),
            ),
            (
                "shirt.example.com/one",
                Some(named("shirt", Some("example.com"), "one")),
            ),
            (
                "clusterrole/system:a",
                Some(named("clusterrole", None, "system:a")),
            ),
        ] {
            assert_eq!(Named::parse(argument).unwrap(), expected, "{argument}");
        }
        for (argument, expected) in [
            ("cluster/m1", true),
            ("Clusters.cluster.karmada.io/m1", true),
            ("clusters.cluster.x-k8s.io/m1", false),
            ("clusterrole/m1", false),
        ] {
            let named = Named::parse(argument).unwrap().unwrap();
            assert_eq!(named.is_cluster(), expected, "{argument}");
        }
        for wrong in ["/web", "deploy/", "a/b/c"] {
            let error = Named::parse(wrong).unwrap_err().to_string();
            assert!(error.contains("is not TYPE/NAME"), "{error}");
        }
    }
}
