#!/bin/sh
# A list of a text and a field does not compile in an admission policy of Kubernetes, and does in plain CEL.
#
# Version:   k8s.io/apiserver v0.35.3 with its cel-go (ValidatingAdmissionPolicy, matchConditions), Go 1.25 or newer.
# One would guess: `x in ['', object.metadata.name]` compiles: CEL is typed gradually, `object` may be of any type, and so
#            `x == '' || x == object.metadata.name`, which says the same, does.
# Seen:      Kubernetes refuses the list: "expected type 'string' but found 'dyn'", since it has lists of one type only. The policy that has
#            the expression is created with a warning in its status at most where its types are not checked, and refused by others.
#            cel-go's own environment takes it.
# Where:     policies that are tried in a CEL playground, whose environment is cel-go's.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > go.mod <<'MOD'
module list

go 1.25.0

require k8s.io/apiserver v0.35.3
MOD
cat > main.go <<'GO'
package main

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

func check(name string, env *cel.Env, err error) {
	if err != nil {
		panic(err)
	}
	for _, expression := range []string{
		"x in ['', object.metadata.name]",
		"x == '' || x == object.metadata.name",
	} {
		_, issues := env.Compile(expression)
		fmt.Println(name, expression, issues.Err() == nil)
	}
}

func main() {
	variables := []cel.EnvOption{
		cel.Variable("x", cel.StringType),
		cel.Variable("object", cel.DynType),
	}
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	of, err := base.Env(environment.NewExpressions)
	if err != nil {
		panic(err)
	}
	kubernetes, err := of.Extend(variables...)
	check("kubernetes:", kubernetes, err)
	plain, err := cel.NewEnv(variables...)
	check("cel-go:", plain, err)
}
GO
go mod tidy > tidy.log 2>&1 || { cat tidy.log; exit 1; }
seen=$(go run .)
echo "$seen"
expected="kubernetes: x in ['', object.metadata.name] false
kubernetes: x == '' || x == object.metadata.name true
cel-go: x in ['', object.metadata.name] true
cel-go: x == '' || x == object.metadata.name true"
test "$seen" = "$expected"
