#!/bin/sh
# A folded text of YAML gets an empty line more each time kustomize writes it, where a line is indented deeper than the one before.
#
# Version:   sigs.k8s.io/kustomize/kyaml v0.21.0, Go 1.24 or newer; the kustomize in kubectl 1.36.3 does the same.
# One would guess: what is read and written again unchanged means the same.
# Seen:      `>-` with the lines `first`, `  deeper`, `last` is "first\n  deeper\nlast" when it is read. Written again as folded text and
#            read, it is "first\n\n  deeper\nlast".
# Where:     an expression of an admission policy, or a script, differs by an empty line between `kubectl apply -k` and `kubectl apply -f` or
#            a chart with the same file. Server-side apply by another manager, as Helm 4 does it, then meets a conflict. Literal text (`|-`)
#            stays as it is.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > go.mod <<'MOD'
module folded

go 1.24.0

require sigs.k8s.io/kustomize/kyaml v0.21.0
MOD
cat > main.go <<'GO'
package main

import (
	"fmt"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// read returns the text of a document, and the document as kyaml writes it.
func read(document string) (string, string) {
	node, err := yaml.Parse(document)
	if err != nil {
		panic(err)
	}
	text, err := node.GetString("text")
	if err != nil {
		panic(err)
	}
	written, err := node.String()
	if err != nil {
		panic(err)
	}
	return text, written
}

func main() {
	for _, style := range []string{">-", "|-"} {
		first, written := read("text: " + style + "\n  first\n    deeper\n  last\n")
		second, _ := read(written)
		fmt.Printf("%s %q %q\n", style, first, second)
	}
}
GO
go mod tidy > tidy.log 2>&1 || { cat tidy.log; exit 1; }
seen=$(go run .)
printf "%s\n" "$seen"
expected='>- "first\n  deeper\nlast" "first\n\n  deeper\nlast"
|- "first\n  deeper\nlast" "first\n  deeper\nlast"'
test "$seen" = "$expected"
