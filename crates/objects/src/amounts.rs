//! Amounts of resources: what pods ask for, and what nodes offer.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::quantity::Quantity;

/// Amounts of resources by the names of these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts(BTreeMap<String, Quantity>);

impl<'a> FromIterator<(&'a str, &'a str)> for Amounts {
    /// Reads amounts by the names of the resources. What is no quantity counts as absent.
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(amounts: I) -> Self {
        let amounts = amounts.into_iter();
        let read =
            amounts.filter_map(|(name, text)| Some((name.to_owned(), Quantity::parse(text)?)));
        Self(read.collect())
    }
}

impl Amounts {
    /// Reads a list of amounts as objects have it. What is no quantity counts as absent.
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

    /// Returns what kube-scheduler counts for a pod with the spec `pod`: what it asks for as a whole, or its containers
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
        // What the pod asks for as a whole counts in place of its containers' (KEP-2837).
        let of_whole = of_container(pod).0.into_iter();
        total
            .0
            .extend(of_whole.filter(|(name, _)| is_of_pods(name)));
        total.add(&Self::read(pod.get("overhead")));
        total.0.retain(|_, amount| amount.is_positive());
        total
    }

    /// Subtracts `less`. What was not there goes below nothing.
    pub fn subtract(&mut self, less: &Self) {
        for (name, &amount) in &less.0 {
            let rest = self.0.entry(name.clone()).or_default();
            *rest = *rest - amount;
        }
    }

    /// Returns the number of times that `request` can be taken, or `None` if it asks for nothing.
    ///
    /// As Kubernetes counts for scheduling, CPU is in thousandths and everything else in units, both
    /// rounded up.
    pub fn times(&self, request: &Self) -> Option<i128> {
        let count = |name: &str, amount: Quantity| match name {
            "cpu" => amount.millis(),
            _ => amount.units(),
        };
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

    /// Returns what there is of a resource, which is never less than nothing, in its canonical text.
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

fn text(resource: &str, amount: Quantity) -> String {
    match resource {
        "cpu" => amount.milli(),
        "memory" | "ephemeral-storage" => amount.binary(),
        _ if resource.starts_with("hugepages-") => amount.binary(),
        _ => amount.decimal(),
    }
}

/// Returns the requests of a container. A member's API server takes a limit for a request that is absent.
fn of_container(container: &Value) -> Amounts {
    let resources = container.get("resources");
    let part = |name: &str| Amounts::read(resources.and_then(|resources| resources.get(name)));
    let mut request = part("limits");
    request.0.extend(part("requests").0);
    request
}

/// Returns `true` for a resource that a pod may ask for as a whole.
fn is_of_pods(resource: &str) -> bool {
    matches!(resource, "cpu" | "memory") || resource.starts_with("hugepages-")
}

fn list<'a>(pod: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    let list = pod.get(field).and_then(Value::as_array);
    list.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What a pod asks for as a whole counts in place of what its containers ask for.
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
}
