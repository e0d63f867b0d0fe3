//! Amounts of resources: the requests of pods, and the offers of nodes.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::quantity::Quantity;

/// Amounts of resources by the names of these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts(BTreeMap<String, Quantity>);

impl<'a> FromIterator<(&'a str, &'a str)> for Amounts {
    /// Reads amounts by the names of the resources. A value that is no quantity counts as absent.
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(amounts: I) -> Self {
        let amounts = amounts.into_iter();
        let read =
            amounts.filter_map(|(name, text)| Some((name.to_owned(), Quantity::parse(text)?)));
        Self(read.collect())
    }
}

impl Amounts {
    /// Reads a list of amounts as objects have it. A value that is no quantity counts as absent.
    pub fn read(list: Option<&Value>) -> Self {
        let list = list.and_then(Value::as_object).into_iter().flatten();
        let amounts = list.filter_map(|(name, amount)| {
            let amount = match amount {
                Value::String(text) => Quantity::parse(text),
                Value::Number(number) => Quantity::parse(&number.to_string()),
                _ => None,
            };
            Some((name.clone(), amount?))
        });
        Self(amounts.collect())
    }

    /// Returns the amounts that kube-scheduler counts for a pod with the spec `pod`: those of the whole pod, or its containers
    /// and sidecars together, or the most that is needed while an init container runs, and the overhead.
    pub fn of_pod(pod: &Value) -> Self {
        let mut running = Self::default();
        for container in list(pod, "containers") {
            running.add(&of_container(container));
        }
        let (mut sidecars, mut starting) = (Self::default(), Self::default());
        for container in list(pod, "initContainers") {
            let request = of_container(container);
            let policy = container.get("restartPolicy").and_then(Value::as_str);
            if policy == Some("Always") {
                running.add(&request);
                sidecars.add(&request);
                starting.raise(&sidecars);
            } else {
                // The sidecars before it run beside an init container.
                let mut now = sidecars.clone();
                now.add(&request);
                starting.raise(&now);
            }
        }
        let mut total = running;
        total.raise(&starting);
        total.0.extend(of_whole(pod, &total));
        total.add(&Self::read(pod.get("overhead")));
        total.0.retain(|_, amount| amount.is_positive());
        total
    }

    /// Subtracts `less`. An amount that was not there goes below nothing.
    pub fn subtract(&mut self, less: &Self) {
        for (name, &amount) in &less.0 {
            let rest = self.0.entry(name.clone()).or_default();
            *rest = *rest - amount;
        }
    }

    /// Returns the number of times that `request` can be taken, or `None` if it asks for nothing.
    pub fn times(&self, request: &Self) -> Option<i128> {
        let requested = request.0.iter();
        let of_each = requested.filter_map(|(name, &amount)| {
            let have = self.0.get(name).copied().unwrap_or_default();
            count(name, have)
                .max(0)
                .checked_div(count(name, amount).max(0))
        });
        of_each.min()
    }

    /// Returns the amounts as many times.
    #[must_use]
    pub fn multiplied(&self, times: i128) -> Self {
        let amounts = self.0.iter();
        let multiplied = amounts.map(|(name, &amount)| (name.clone(), amount * times));
        Self(multiplied.collect())
    }

    /// Returns `true` if there is at least as much of each resource as `least` has.
    pub fn has(&self, least: &Self) -> bool {
        let mut least = least.0.iter();
        least.all(|(name, amount)| self.0.get(name).copied().unwrap_or_default() >= *amount)
    }

    /// Adds `more`.
    pub fn add(&mut self, more: &Self) {
        for (name, &amount) in &more.0 {
            let sum = self.0.entry(name.clone()).or_default();
            *sum = *sum + amount;
        }
    }

    /// Raises each amount to that of `other`, if that is more.
    pub fn raise(&mut self, other: &Self) {
        for (name, &amount) in &other.0 {
            let most = self.0.entry(name.clone()).or_default();
            *most = amount.max(*most);
        }
    }

    /// Returns the amount of a resource, which is never less than nothing, in its canonical text.
    pub fn text(&self, resource: &str) -> String {
        let amount = self.0.get(resource).copied().unwrap_or_default();
        text(resource, amount.max(Quantity::default()))
    }

    /// Returns the amounts in their canonical texts.
    pub fn texts(&self) -> BTreeMap<String, String> {
        let amounts = self.0.iter();
        amounts
            .map(|(name, &amount)| (name.clone(), text(name, amount)))
            .collect()
    }
}

/// Returns an amount as Kubernetes counts it for scheduling: CPU in thousandths and everything else in units, both rounded
/// up.
fn count(resource: &str, amount: Quantity) -> i128 {
    match resource {
        "cpu" => amount.millis(),
        _ => amount.units(),
    }
}

fn text(resource: &str, amount: Quantity) -> String {
    match resource {
        "cpu" => amount.milli(),
        "memory" | "ephemeral-storage" => amount.binary(),
        _ if is_huge_pages(resource) => amount.binary(),
        _ => amount.decimal(),
    }
}

/// Returns the requests of a container. A member's API server takes a limit for a request that is absent.
fn of_container(container: &Value) -> Amounts {
    let mut request = resources(container, "limits");
    request.0.extend(resources(container, "requests").0);
    request
}

/// Returns the requests of a pod as a whole, which count in place of those of its containers (KEP-2837).
fn of_whole(pod: &Value, containers: &Amounts) -> BTreeMap<String, Quantity> {
    let mut whole = resources(pod, "limits").0;
    // As the API server fills them in, containers' requests go before a limit. Of huge pages a pod has all of its limit.
    whole.retain(|name, _| is_huge_pages(name) || !containers.0.contains_key(name));
    whole.extend(resources(pod, "requests").0);
    // Other resources only containers ask for.
    whole.retain(|name, _| matches!(name.as_str(), "cpu" | "memory") || is_huge_pages(name));
    whole
}

/// Returns the requests, or the limits, of a container or of a whole pod.
fn resources(of: &Value, part: &str) -> Amounts {
    let resources = of.get("resources");
    Amounts::read(resources.and_then(|resources| resources.get(part)))
}

fn is_huge_pages(resource: &str) -> bool {
    resource.starts_with("hugepages-")
}

fn list<'a>(pod: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    let list = pod.get(field).and_then(Value::as_array);
    list.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The requests of a pod as a whole count in place of those of its containers.
    #[test]
    fn whole_pod_goes_before_containers() {
        let mut pod = json!({
            "containers": [{ "resources": { "requests": { "cpu": "1", "memory": "1Gi", "x.io/gpu": "1" } } }],
            "overhead": { "cpu": "1" },
        });
        let of_containers = [("cpu", "2"), ("memory", "1Gi"), ("x.io/gpu", "1")];
        assert_eq!(Amounts::of_pod(&pod), Amounts::from_iter(of_containers));
        pod["resources"] =
            json!({ "requests": { "cpu": "500m" }, "limits": { "cpu": "2", "x.io/gpu": "9" } });
        let of_whole = [("cpu", "1500m"), ("memory", "1Gi"), ("x.io/gpu", "1")];
        assert_eq!(Amounts::of_pod(&pod), Amounts::from_iter(of_whole));
    }

    /// A limit of the whole pod is its request only where no container asks for any, as kube-apiserver 1.36 has it.
    #[test]
    fn limit_of_whole_goes_last() {
        let one = json!({ "resources": { "requests": { "cpu": "1" } } });
        let cases = [
            (json!([one, one]), json!({ "cpu": "4" }), vec![("cpu", "2")]),
            (
                json!([one, {}]),
                json!({ "cpu": "4", "memory": "1Gi" }),
                vec![("cpu", "1"), ("memory", "1Gi")],
            ),
            (json!([{}, {}]), json!({ "cpu": "4" }), vec![("cpu", "4")]),
            (
                json!([{ "resources": { "requests": { "cpu": "0" } } }]),
                json!({ "cpu": "4" }),
                vec![],
            ),
            (
                json!([{ "resources": { "requests": { "hugepages-2Mi": "2Mi" } } }]),
                json!({ "hugepages-2Mi": "8Mi" }),
                vec![("hugepages-2Mi", "8Mi")],
            ),
        ];
        for (containers, limits, expected) in cases {
            let pod = json!({ "containers": containers, "resources": { "limits": limits } });
            let asked = Amounts::of_pod(&pod);
            assert_eq!(asked, Amounts::from_iter(expected), "{containers}");
        }
        let init = json!({ "containers": [{}], "initContainers": [one], "resources": { "limits": { "cpu": "4" } } });
        assert_eq!(Amounts::of_pod(&init), Amounts::from_iter([("cpu", "1")]));
    }
}
