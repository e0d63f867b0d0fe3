module karmada-rs.io/tests/tools/prometheus-operator

go 1.24.0

// Only its files are read: the definitions of PodMonitor and PrometheusRule.
require github.com/prometheus-operator/prometheus-operator v0.85.0
