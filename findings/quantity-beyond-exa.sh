#!/bin/sh
# A Kubernetes quantity beyond 1000E loses its magnitude when it is written.
#
# Version:   k8s.io/apimachinery v0.35.3 (the module of kube-apiserver, kubectl and Karmada 1.18.2), Go 1.25 or newer.
# One would guess: 1000E + 1000E is written as 2000E, or as 2e21.
# Seen:      it is written as 2. Each part is valid, and so is the sum until it is written: the suffix after E is missing,
#            and nothing takes its place. A sum that is no multiple of 1000E is written right.
# Where:     sums of `resource.Quantity` that go through text: a script of Karmada's `kube.resourceAdd`, totals of a quota.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > go.mod <<'MOD'
module quantity

go 1.25.0

require k8s.io/apimachinery v0.35.3
MOD
cat > main.go <<'GO'
package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

func sum(texts ...string) string {
	sum := resource.Quantity{}
	for _, text := range texts {
		sum.Add(resource.MustParse(text))
	}
	return sum.String()
}

func main() {
	fmt.Println(sum("1000E", "1000E"), sum("999E", "1E"), sum("1000E", "1"), sum("100E", "100E"))
}
GO
go mod tidy 2>/dev/null
seen=$(go run .)
expected="2 1 1000000000000000000001 200E"
echo "seen: $seen"
test "$seen" = "$expected"
