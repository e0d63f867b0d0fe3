{{- /* Copied by `cargo xtask generate` from manifests/helm/karmada-rs/templates/_objects.tpl. Do not edit. */ -}}
{{- /*
What the charts have in common. Objects come from files/, whose paths are those of manifests/: `cargo xtask generate` copies them
from there. Each template below takes a dict with `root`, the chart's context, and with what it names.

`karmada-rs.kustomization` prints the objects of the kustomization in the folder `path`, as `karmada-rs.file` does.
*/ -}}
{{- define "karmada-rs.kustomization" -}}
{{- $context := . -}}
{{- $kustomization := .root.Files.Get (printf "files/%s/kustomization.yaml" .path) | fromYaml -}}
{{- range $kustomization.resources -}}
{{- $resource := set (omit $context "path") "path" (printf "%s/%s" $context.path .) -}}
{{- if hasSuffix ".yaml" . -}}
{{ include "karmada-rs.file" $resource }}
{{- else -}}
{{ include "karmada-rs.kustomization" $resource }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Prints the objects of the file `path`, but those of the kinds that match the regular expression `without`. */ -}}
{{- define "karmada-rs.file" -}}
{{- $without := .without -}}
{{- range regexSplit "(?m)^---\\n" (include "karmada-rs.text" .) -1 }}
{{- if not (and $without (regexMatch (printf "(?m)^kind: (%s)$" $without) .)) }}
---
{{ . }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Prints the text of the file `path`, with the namespace `from` renamed to `to`, and `member1` to `member`. */ -}}
{{- define "karmada-rs.text" -}}
{{- $text := .root.Files.Get (printf "files/%s" .path) | required (printf "the chart has no files/%s" .path) -}}
{{- if .to -}}
{{- $text = regexReplaceAll (printf "(namespace: |serviceaccount:|== ')%s\\b" .from) $text (printf "${1}%s" .to) -}}
{{- end -}}
{{- if .member -}}
{{- $text = replace "member1" .member $text -}}
{{- end -}}
{{ $text }}
{{- end -}}

{{- /*
Prints the definitions of kinds that match the glob `path`, but those called as in `except`. Helm leaves them, and so all objects of
these kinds, when the chart is uninstalled.
*/ -}}
{{- define "karmada-rs.kinds" -}}
{{- $except := .except -}}
{{- range $path, $_ := .root.Files.Glob (printf "files/%s" .path) }}
{{- $parts := base $path | trimSuffix ".yaml" | splitn "_" 2 }}
{{- if not (has (printf "%s.%s" $parts._1 $parts._0) $except) }}
---
{{ regexReplaceAll "(?m)^metadata:\\n" ($.root.Files.Get $path) "metadata:\n  annotations:\n    helm.sh/resource-policy: keep\n" }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /*
Prints the objects of a program from the file `path`, in the release's namespace, which is `from` there. `program` has its values,
`flags` those that other values of the chart ask for, `without` the names of those that these leave out, `config` the name of the ConfigMap that its container reads, and `volumes` the
names of its volumes if it does not have all.
*/ -}}
{{- define "karmada-rs.program" -}}
{{- $program := .program -}}
{{- $values := .root.Values -}}
{{- $text := include "karmada-rs.text" (set (omit . "to") "to" .root.Release.Namespace) -}}
{{- range regexSplit "(?m)^---\\n" $text -1 -}}
{{- $object := fromYaml . -}}
{{- if $object.Error }}{{ fail (printf "%s: %s" $.path $object.Error) }}{{ end -}}
{{- $spec := $object.spec -}}
{{- if eq $object.kind "CronJob" }}{{ $spec = $spec.jobTemplate.spec }}{{ end -}}
{{- if has $object.kind (list "Deployment" "DaemonSet" "CronJob") -}}
{{- include "karmada-rs.pods" (dict "spec" $spec "root" $.root "program" $program "flags" $.flags "without" $.without "config" $.config "volumes" $.volumes) -}}
{{- end -}}
{{- if eq $object.kind "NetworkPolicy" }}{{ include "karmada-rs.from" (dict "object" $object "namespace" $values.prometheusNamespace) }}{{ end -}}
{{- $one := and (not (kindIs "invalid" $program.replicas)) (lt (int $program.replicas) 2) -}}
{{- /* A single replica must not keep its node from being drained. */ -}}
{{- if not (or (and (eq $object.kind "NetworkPolicy") (not $values.networkPolicies)) (and (eq $object.kind "PodDisruptionBudget") $one)) }}
{{- if not (or $object.metadata.namespace (hasPrefix "Cluster" $object.kind)) -}}
{{- $_ := set $object.metadata "namespace" $.root.Release.Namespace -}}
{{- end }}
---
{{ toYaml $object }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Has a NetworkPolicy admit what it does from other namespaces from this one, or from any, and prints nothing. */ -}}
{{- define "karmada-rs.from" -}}
{{- $selector := dict -}}
{{- with .namespace }}{{ $selector = dict "matchLabels" (dict "kubernetes.io/metadata.name" .) }}{{ end -}}
{{- range .object.spec.ingress -}}
{{- range .from -}}
{{- if hasKey . "namespaceSelector" }}{{ $_ := set . "namespaceSelector" $selector }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Changes the `spec` of a Deployment, DaemonSet or Job by the values of its program, and prints nothing. */ -}}
{{- define "karmada-rs.pods" -}}
{{- $program := .program -}}
{{- $values := .root.Values -}}
{{- $pod := .spec.template.spec -}}
{{- $container := index $pod.containers 0 -}}
{{- $version := printf ":%s" (default .root.Chart.AppVersion $values.tag) -}}
{{- $digest := index $values.digests $container.image -}}
{{- if and $digest (not $values.tag) }}{{ $version = printf "%s@%s" $version $digest }}{{ end -}}
{{- if $program.digest }}{{ $version = printf "@%s" $program.digest }}{{ end -}}
{{- $_ := set $container "image" (printf "%s/%s%s" $values.registry $container.image $version) -}}
{{- if not (kindIs "invalid" $program.replicas) }}{{ $_ := set .spec "replicas" (int $program.replicas) }}{{ end -}}
{{- with $program.resources }}{{ $_ := set $container "resources" . }}{{ end -}}
{{- with $program.nodeSelector }}{{ $_ := set $pod "nodeSelector" (merge (deepCopy .) $pod.nodeSelector) }}{{ end -}}
{{- if $program.tolerations -}}
{{- $_ := set $pod "tolerations" $program.tolerations -}}
{{- else if not (kindIs "invalid" $program.tolerations) -}}
{{- $_ := unset $pod "tolerations" -}}
{{- end -}}
{{- with $program.hostAliases }}{{ $_ := set $pod "hostAliases" . }}{{ end -}}
{{- with $program.podLabels }}{{ $_ := set $.spec.template.metadata "labels" (merge (deepCopy $.spec.template.metadata.labels) .) }}{{ end -}}
{{- with $program.podAnnotations }}{{ $_ := set $.spec.template.metadata "annotations" . }}{{ end -}}
{{- with $program.env -}}
{{- $names := list -}}
{{- range . }}{{ $names = append $names .name }}{{ end -}}
{{- $env := list -}}
{{- range $container.env }}{{ if not (has .name $names) }}{{ $env = append $env . }}{{ end }}{{ end -}}
{{- $_ := set $container "env" (concat $env .) -}}
{{- end -}}
{{- with $program.affinity }}{{ $_ := set $pod "affinity" . }}{{ end -}}
{{- if not $values.fixedUser }}{{ $_ := set $pod "securityContext" (omit $pod.securityContext "runAsUser" "runAsGroup" "fsGroup") }}{{ end -}}
{{- with $program.priorityClassName }}{{ $_ := set $pod "priorityClassName" . }}{{ end -}}
{{- with $values.pullSecrets -}}
{{- $secrets := list -}}
{{- range . }}{{ $secrets = append $secrets (dict "name" .) }}{{ end -}}
{{- $_ := set $pod "imagePullSecrets" $secrets -}}
{{- end -}}
{{- with .config }}{{ $_ := set (index $container.envFrom 0).configMapRef "name" . }}{{ end -}}
{{- $args := list -}}
{{- $without := default list .without -}}
{{- range $container.args -}}
{{- if not (has (splitList "=" . | first) $without) }}{{ $args = append $args . }}{{ end -}}
{{- end -}}
{{- /* A flag replaces one of its name. */ -}}
{{- range list .flags $program.flags -}}
{{- $names := list -}}
{{- range . }}{{ $names = append $names (splitList "=" . | first) }}{{ end -}}
{{- $others := list -}}
{{- range $args -}}
{{- if not (has (splitList "=" . | first) $names) }}{{ $others = append $others . }}{{ end -}}
{{- end -}}
{{- $args = concat $others (default list .) -}}
{{- end -}}
{{- $_ := set $container "args" $args -}}
{{- with .volumes -}}
{{- $_ := set $pod "volumes" (include "karmada-rs.named" (dict "list" $pod.volumes "names" .) | fromYamlArray) -}}
{{- $_ := set $container "volumeMounts" (include "karmada-rs.named" (dict "list" $container.volumeMounts "names" .) | fromYamlArray) -}}
{{- end -}}
{{- end -}}

{{- /* Prints those objects of `list` that have one of these `names`. */ -}}
{{- define "karmada-rs.named" -}}
{{- $named := list -}}
{{- $names := .names -}}
{{- range .list }}{{ if has .name $names }}{{ $named = append $named . }}{{ end }}{{ end -}}
{{ toYaml $named }}
{{- end -}}

{{- /*
Prints the name of the ConfigMap `name` with `data`. Its end is a hash of these, as kustomize makes it: pods start anew when they
change.
*/ -}}
{{- define "karmada-rs.config.name" -}}
{{- $hash := dict "kind" "ConfigMap" "name" "" "data" .data | toJson | sha256sum | trunc 10 -}}
{{- range $from, $to := dict "0" "g" "1" "h" "3" "k" "a" "m" "e" "t" }}{{ $hash = replace $from $to $hash }}{{ end -}}
{{ .name }}-{{ $hash }}
{{- end -}}

{{- define "karmada-rs.config" }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "karmada-rs.config.name" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    app.kubernetes.io/part-of: karmada-rs
data:
  {{- toYaml .data | nindent 2 }}
{{- end -}}
