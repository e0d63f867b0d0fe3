#!/usr/bin/env bash
# Takes away what was installed into the API of a kubectl context: what places.sh has for it, the credentials that were made for that,
# and what our programs have written (clean.sh). It needs none of our programs. Kinds stay, and so do the users' objects and namespaces.
#
#   manifests/uninstall.sh API CONTEXT [--dry-run=server]
#
# API is `host`, `member`, `karmada` (that of a fleet, too), `gateway`, `dns` or `hub`. Every command may be repeated.
set -euo pipefail

manifests=$(dirname "$0")
source "$manifests/places.sh"
usage="usage: $0 host|member|karmada|gateway|dns|hub CONTEXT [--dry-run=server]"
where=${1:?"$usage"} context=${2:?"$usage"} dry_run=${3:-}
if ! places | cut -d ' ' -f 1 | grep -qxF "$where"; then
  echo "$usage" >&2
  exit 2
fi
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT

api() {
  kubectl --context "$context" "$@"
}

# Deletes the objects on standard input.
remove() {
  local objects
  objects=$(cat)
  [[ -n $objects ]] || return 0
  if ! api delete --wait=false --ignore-not-found ${dry_run:+"$dry_run"} --filename - <<<"$objects" 2>"$errors" &&
    # Of a kind that the API does not have, nothing is there.
    grep -v -e 'no matches for kind' -e '^ensure CRDs are installed first' -e '^Warning: ' "$errors" >&2; then
    exit 1
  fi
}

# The members that have a namespace here, or rights that have outlived it.
members() {
  case $where in
    karmada) api get namespaces,clusterroles --output name |
      sed -nE 's#^namespace/karmada-es-##p; s#.*/karmada-rs:(cluster-health-agent|pull):([^:]+)$#\2#p' ;;
    hub) api get namespaces,clusterroles --output name |
      sed -nE 's#^namespace/fleet-member-##p; s#.*/karmada-rs:cluster-health-agent:fleet:##p' ;;
  esac | sort -u
}

# What is applied, for each member where it is for one.
applied() { # part
  local text member
  text=$(objects "$1")
  # Elsewhere it is for one, as the agent in a member and the practice on the host.
  if [[ ! $where =~ ^(karmada|hub)$ || $text != *member1* ]]; then
    echo "$text"
    return
  fi
  for member in $members; do
    echo "${text//member1/$member}"
    echo ---
  done
}

# The Secrets with the tokens of accounts, or which pods read.
credentials() {
  awk '
    /^---/ { kind = namespace = name = "" }
    /^kind: / { kind = $2 }
    /^  name: / { name = $2 }
    /^  namespace: / { namespace = $2; if (kind == "ServiceAccount") secret(name "-token") }
    /^ *secretName: / { secret($2) }
    function secret(name) {
      print "---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: " name "\n  namespace: " namespace
    }'
}

members=$(members)
# First what runs and its rights, and what confines these last. Each part once: several places may have it.
parts=$(places | sed -n "s/^$where [^ ]* //p" | tr ' ' '\n' | sed '1!G;h;$!d' | awk '!seen[$0]++')
objects=$(
  for part in $parts; do
    case $part in
      # Kinds, and with them all their objects.
      fleet | fleet/* | placement/crds*) ;;
      *)
        applied "$part"
        echo ---
        ;;
    esac
  done
)
remove <<<"$objects"
credentials <<<"$objects" | remove
# The end of their names is a hash of what is in them. That of the dashboard is of monitoring.
api delete ${dry_run:+"$dry_run"} configmaps --all-namespaces --ignore-not-found --selector 'app.kubernetes.io/part-of=karmada-rs,!grafana_dashboard'
"$manifests/clean.sh" "$context" ${dry_run:+"$dry_run"}
