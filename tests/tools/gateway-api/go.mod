module karmada-rs.io/tests/tools/gateway-api

go 1.24.0

// Only its files are read: the definitions of Gateway, HTTPRoute and the others.
require sigs.k8s.io/gateway-api v1.5.1
