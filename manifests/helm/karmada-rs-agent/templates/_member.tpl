{{- /*
Prints the objects of the kustomization in `folder`, of which the files in `programs` are those of a program with these values and the
others rights. The leases of the programs are in this cluster, in the namespace of the release.
*/ -}}
{{- define "karmada-rs.member" -}}
{{- $config := include "karmada-rs.config.name" .config -}}
{{- $kustomization := .root.Files.Get (printf "files/%s/kustomization.yaml" .folder) | fromYaml -}}
{{- $namespace := .root.Release.Namespace -}}
{{- $flags := list -}}
{{- if ne $namespace $kustomization.namespace }}{{ $flags = list (printf "--leader-elect-resource-namespace=%s" $namespace) }}{{ end -}}
{{- range $file := $kustomization.resources -}}
{{- $path := printf "%s/%s" $.folder $file -}}
{{- $program := index $.programs $file -}}
{{- if not $program -}}
{{ include "karmada-rs.file" (dict "root" $.root "path" $path "from" $kustomization.namespace "to" $namespace) }}
{{- else if $program.enabled -}}
{{ include "karmada-rs.program" (dict "root" $.root "path" $path "from" $kustomization.namespace "program" $program "flags" $flags "config" $config) }}
{{- end -}}
{{- end -}}
{{- end -}}
