# What is applied to which API, for uninstall.sh and for the files of a release (.ci/install-files), which source this.

# Each line: the API, the file of a release that has it (`-`: none), and what is in it, in the order of an installation: what confines
# accounts comes before them, and goes after them. `member1` stands for each member.
places() {
  cat <<'PLACES'
karmada karmada-confine admission/confine
karmada karmada karmada
karmada karmada-plugin karmada/kubectl-remedy.yaml karmada/kubectl-remedy-drain.yaml karmada/kubectl-remedy-join.yaml
karmada karmada-member karmada/agent.yaml
karmada karmada-gateway-agent karmada/gateway-agent.yaml
karmada karmada-tls-secrets tls-secrets/karmada.yaml
karmada karmada-propagation propagation
karmada karmada-estimators propagation/estimators/rights.yaml
karmada karmada-everything propagation/everything/rights.yaml
karmada - propagation/east-west/rights.yaml
karmada karmada-practice practice
karmada fleet fleet admission propagation propagation/cluster propagation/collect-endpoints/rights.yaml
karmada fleet-rebalance propagation/rebalance/rights.yaml
karmada - propagation/publish-nodes/rights.yaml
karmada fleet-plugin propagation/cluster/kubectl-remedy-join.yaml
karmada fleet-pull pull/rights.yaml
karmada karmada-renew renew
karmada fleet-renew renew renew/fleet/rights.yaml
karmada pull-renew renew/pull-member.yaml
host host host
host host-propagation propagation/host
host host-renew renew/host
host host-practice practice/host
host fleet-host propagation/collect-endpoints propagation/cluster/host
host fleet-host-renew renew/fleet
host hub-host placement/hub/host
host hub-remedies-host placement/remedies/host
host hub-ingresses-host placement/ingresses/host
host - renew/programs
gateway gateway-confine admission/gateway
gateway gateway gateway
gateway gateway-api gateway-api
gateway gateway-tls-secrets tls-secrets/gateway.yaml
gateway gateway-agent gateway/reachability
gateway gateway-renew renew/gateway.yaml
dns dns dns
member member member
member - member/node-condition/rights.yaml member/signals/rights.yaml member/dns-service/rights.yaml
member member-pull pull/member
member member-pull-renew renew/pull
member hub-member placement/crds/placement.kubernetes-fleet.io_appliedworks.yaml placement/member
member hub-member-renew renew/programs
hub hub placement/crds placement/hub
hub hub-agent placement/hub/cluster-health-agent.yaml
hub hub-remedies fleet/remedy.karmada.io_remedies.yaml placement/remedies/rights.yaml
hub hub-ingresses fleet/networking.karmada.io_multiclusteringresses.yaml placement/ingresses/rights.yaml
hub hub-ingresses-member placement/ingresses/member.yaml
hub hub-plugin placement/kubectl-remedy.yaml placement/kubectl-remedy-drain.yaml
hub hub-renew renew/hub.yaml
hub hub-renew-member renew/placement-member.yaml
PLACES
}

# Prints a kustomization, a folder of objects, or a file.
objects() {
  local path=$manifests/$1
  if [[ -e $path/kustomization.yaml ]]; then
    kubectl kustomize "$path"
  elif [[ -d $path ]]; then
    sed -s '1{/^---$/d}; $a---' "$path"/*.yaml | sed '$d'
  else
    cat "$path"
  fi
}
