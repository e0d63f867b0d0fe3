#!/usr/bin/env bash
# Removes what our programs have written to the API of a kubectl context, whichever it is: Karmada's, the
# gateway's or a member's. Needs none of our programs, and they must not run any more.
#
#   manifests/clean.sh CONTEXT [--dry-run=server]
#
# With ONLY=nodes it removes the conditions of Nodes and nothing else, and the programs may run.
# INGRESS_CLASS_CONTROLLER is the ingress controller's --ingress-class-controller, and GATEWAY_CLASS_CONTROLLER its
# --gateway-class-controller, if that is not the default. Every command tests what it removes and may be repeated.
set -euo pipefail

context=${1:?"usage: $0 CONTEXT [--dry-run=server]"}
dry_run=${2:-}
controller=${INGRESS_CLASS_CONTROLLER:-karmada-rs.io/ingress-controller}

api() {
  kubectl --context "$context" "$@"
}

# Asks for one change. `delete` is silent about what is gone already.
change() {
  api "$@" ${dry_run:+"$dry_run"}
}

# kubectl fails if any aggregated API is down, although it lists all others. Only ours are needed.
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
if ! kinds=$(api api-resources --output name 2>"$errors"); then
  ours='karmada\.io|kubernetes-fleet\.io|networking\.k8s\.io|discovery\.k8s\.io|externaldns\.k8s\.io|coordination\.k8s\.io|multicluster\.x-k8s\.io'
  if [[ -z $kinds ]] || grep -Eq "$ours" "$errors"; then
    cat "$errors" >&2
    exit 1
  fi
fi
has() {
  [[ ${ONLY:-$1} == "$1" ]] && grep -qxF "$1" <<<"$kinds"
}

# Each line is an object and a JSON patch that removes the element `i` of a list, if it is still there.
removals() { # kind, prefix of the line, list, condition, path of the tested value, value
  local element=${5%/type}
  element=${element%/controllerName}
  element=${element%/reason}
  api get "$1" --all-namespaces --output go-template="{{range \$o := .items}}{{range \$i, \$e := $3}}{{if $4}}$2 [{\"op\":\"test\",\"path\":\"/$5\",\"value\":\"$6\"},{\"op\":\"remove\",\"path\":\"/$element\"}]{{\"\\n\"}}{{end}}{{end}}{{end}}"
}

remove_conditions() { # kind, types
  local kind=$1 type
  for type in "${@:2}"; do
    removals "$kind" '{{$o.metadata.name}}' .status.conditions \
      "eq \$e.type \"$type\"" 'status/conditions/{{$i}}/type' "$type" |
      while read -r name patch; do
        change patch "$kind" "$name" --subresource status --type json --patch "$patch"
      done
  done
}

# Conditions of clusters, of Karmada's kind and of KubeFleet's.
for kind in clusters.cluster.karmada.io memberclusters.cluster.kubernetes-fleet.io; do
  has "$kind" || continue
  remove_conditions "$kind" ServiceDomainNameResolutionReady ServiceNetworkReady HealthReporterReady \
    ReachableFromGateway GatewayReporterReady
  # Of signals that users declare: the types are theirs, the reasons ours. From the last one, so that the places of the others stay.
  for reason in DeclaredSignalReady DeclaredSignalFailed; do
    removals "$kind" '{{$o.metadata.name}}' .status.conditions \
      "and \$e.reason (eq \$e.reason \"$reason\")" 'status/conditions/{{$i}}/reason' "$reason" | sed '1!G;h;$!d' |
      while read -r name patch; do
        change patch "$kind" "$name" --subresource status --type json --patch "$patch"
      done
  done
done

# The actions that only a Remedy controller sets. Those of a MemberCluster are conditions.
if has memberclusters.cluster.kubernetes-fleet.io; then
  remove_conditions memberclusters.cluster.kubernetes-fleet.io TrafficControl
fi
if has clusters.cluster.karmada.io; then
  api get clusters.cluster.karmada.io --output \
    go-template='{{range .items}}{{if .status.remedyActions}}{{.metadata.name}}{{"\n"}}{{end}}{{end}}' |
    while read -r name; do
      change patch clusters.cluster.karmada.io "$name" --subresource status --type merge \
        --patch '{"status":{"remedyActions":null}}'
    done
fi

# What the remedy controller says about Remedies, which are the users' own.
if has remedies.remedy.karmada.io; then
  remove_conditions remedies.remedy.karmada.io Accepted Active
  api get remedies.remedy.karmada.io --output \
    go-template='{{range .items}}{{if .status.observedGeneration}}{{.metadata.name}}{{"\n"}}{{end}}{{end}}' |
    while read -r name; do
      status='{"observedGeneration":null,"activeClusters":null,"activeClusterNames":null'
      status+=',"refusedClusters":null,"refusedClusterNames":null}'
      # Without conditions of others nothing is left.
      conditions=$(api get remedies.remedy.karmada.io "$name" --output jsonpath='{.status.conditions}')
      [[ $conditions != '[]' ]] || status=null
      change patch remedies.remedy.karmada.io "$name" --subresource status --type merge \
        --patch "{\"status\":$status}"
    done
fi

# MultiClusterIngresses that the ingress controller still serves: the finalizer last, as the object may be
# waiting for it to go.
if has multiclusteringresses.networking.karmada.io; then
  removals multiclusteringresses.networking.karmada.io '{{$o.metadata.namespace}} {{$o.metadata.name}}' \
    .metadata.finalizers "eq \$e \"$controller\"" 'metadata/finalizers/{{$i}}' "$controller" |
    while read -r namespace name patch; do
      object=(--namespace "$namespace" multiclusteringresses.networking.karmada.io "$name")
      # The addresses are ours only if our provider wrote them.
      fields=$(api get "${object[@]}" --show-managed-fields \
        --output jsonpath='{.metadata.managedFields[?(@.manager=="ingress-controller")].fieldsV1}')
      [[ $fields == *'"f:loadBalancer"'* ]] && addresses=',"loadBalancer":null' || addresses=
      change patch "${object[@]}" --subresource status --type merge \
        --patch "{\"status\":{\"serviceLocations\":null,\"trafficBlockClusters\":null$addresses}}"
      [[ $(api get "${object[@]}" --output jsonpath='{.status}') != '{}' ]] ||
        change patch "${object[@]}" --subresource status --type merge --patch '{"status":null}'
      change --namespace "$namespace" patch multiclusteringresses.networking.karmada.io "$name" \
        --type json --patch "$patch"
    done
fi

# HTTPRoutes that it serves: our entries of their statuses, from the end of each list, and the finalizer last.
if has httproutes.gateway.networking.k8s.io; then
  gateways=${GATEWAY_CLASS_CONTROLLER:-karmada-rs.io/multi-cluster}
  removals httproutes.gateway.networking.k8s.io '{{$o.metadata.namespace}} {{$o.metadata.name}}' \
    .status.parents "eq \$e.controllerName \"$gateways\"" 'status/parents/{{$i}}/controllerName' "$gateways" | sed '1!G;h;$!d' |
    while read -r namespace name patch; do
      change --namespace "$namespace" patch httproutes.gateway.networking.k8s.io "$name" \
        --subresource status --type json --patch "$patch"
    done
  removals httproutes.gateway.networking.k8s.io '{{$o.metadata.namespace}} {{$o.metadata.name}}' \
    .metadata.finalizers "eq \$e \"$controller\"" 'metadata/finalizers/{{$i}}' "$controller" |
    while read -r namespace name patch; do
      change --namespace "$namespace" patch httproutes.gateway.networking.k8s.io "$name" \
        --type json --patch "$patch"
    done
fi

# What serves them in the gateway or in DNS, and exports their Services in Karmada: it bears the controller's label.
value=$(printf %s "$controller" | tr / _)
if ((${#value} > 63)); then
  echo "the label of a controller whose name is longer than 63 characters is a hash: read it from an object in the gateway" >&2
  exit 1
fi
label="app.kubernetes.io/managed-by=$value"
for kind in ingresses.networking.k8s.io httproutes.gateway.networking.k8s.io services secrets endpointslices.discovery.k8s.io dnsendpoints.externaldns.k8s.io \
  serviceexports.multicluster.x-k8s.io propagationpolicies.policy.karmada.io; do
  if has "$kind"; then
    change delete "$kind" --all-namespaces --selector "$label" --ignore-not-found
  fi
done

# The endpoints that the execution-controller has collected, and the Services that it has derived from ServiceImports.
for kind in endpointslices.discovery.k8s.io services; do
  if has "$kind"; then
    change delete "$kind" --all-namespaces --ignore-not-found \
      --selector app.kubernetes.io/managed-by=karmada-rs.io_execution-controller
  fi
done

# Leases. That of the scheduler is Karmada's, if its scheduler has had it since.
if has leases.coordination.k8s.io; then
  change --namespace karmada-system delete leases.coordination.k8s.io remedy-controller ingress-controller \
    propagation-controller execution-controller cluster-controller --ignore-not-found
  change --namespace fleet-system delete leases.coordination.k8s.io placement-controller placement-agent \
    remedy-controller --ignore-not-found
  change delete leases.coordination.k8s.io --all-namespaces \
    --field-selector metadata.name=cluster-health-agent --ignore-not-found
  managers=$(api --namespace karmada-system get leases.coordination.k8s.io karmada-scheduler --ignore-not-found \
    --show-managed-fields --output jsonpath='{.metadata.managedFields[*].manager}')
  if [[ $managers == scheduler ]]; then
    change --namespace karmada-system delete leases.coordination.k8s.io karmada-scheduler --ignore-not-found
  fi
fi

# Conditions of Nodes (--node-condition).
if has nodes; then
  remove_conditions nodes ServiceDomainNameResolutionReady ServiceNetworkReady
fi
