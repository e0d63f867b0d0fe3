#!/usr/bin/env bash
# Lists what of karmada-rs is in the API of a kubectl context, one object a line and what tells it: its name, a label, an annotation, a
# finalizer, or the program that owns fields of it. Once all is uninstalled, nothing is.
#
#   manifests/list.sh CONTEXT
set -euo pipefail

context=${1:?"usage: $0 CONTEXT"}
programs='cluster-health-agent|cluster-health-agent-gateway|remedy-controller|ingress-controller|propagation-controller|scheduler'
programs+='|execution-controller|cluster-controller|placement-controller|placement-agent|kubectl-remedy|kubectl-remedy-renew'
programs+='|kubectl-remedy-renew-programs|kubectl-remedy-practice|cluster-health-agent-signals|cluster-health-agent-node-condition'
programs+='|cluster-health-agent-dns-service'

told='
  def prefixed: test("(^|[./])karmada-rs\\.io/");
  .items[]
  | [ (.metadata.name | select(test("^karmada-rs([:-].*)?$|\\.karmada-rs\\.io$|^(\($programs))(-(token|karmada|gateway|hub))?$")) | "name"),
      (.metadata | select((.namespace // "" | startswith("karmada-es-")) and (.name | test("^pull(-token)?$"))) | "name"),
      (.metadata.labels // {} | to_entries[] | select((.key | prefixed) or (.value | test("^karmada-rs"))) | "label \(.key)"),
      (.metadata.annotations // {} | keys[] | select(prefixed) | "annotation \(.)"),
      (.metadata.finalizers // [] | .[] | select(prefixed) | "finalizer \(.)"),
      (.metadata.managedFields // [] | .[].manager // "" | select(test("^(\($programs))$")) | "fields of \(.)") ] as $why
  | select($why != [])
  | "\(.kind) \(.metadata.namespace // "")/\(.metadata.name): \($why | unique | join(", "))"'

# kubectl fails if any aggregated API is down, although it lists all others. Events end by themselves.
kinds=$(kubectl --context "$context" api-resources --verbs list --output name || true)
kinds=$(grep -v -e '^events' -e '^componentstatuses$' <<<"$kinds" | paste -sd , -)
kubectl --context "$context" get "$kinds" --all-namespaces --show-managed-fields --output json |
  jq --raw-output --arg programs "$programs" "$told"
