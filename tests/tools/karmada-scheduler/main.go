// Has Karmada's scheduler decide about bindings, each in an API of its own that holds the clusters.
//
// Each line that it reads is a Case, and the line that it prints for it a Decision.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	estimators "github.com/karmada-io/karmada/pkg/estimator/client"
	"github.com/karmada-io/karmada/pkg/generated/clientset/versioned/fake"
	"github.com/karmada-io/karmada/pkg/scheduler"
)

const (
	// atOnce is the number of schedulers at a time. Each waits, mostly for its informers.
	atOnce = 64
	// limit is the time that a scheduler has.
	limit = time.Minute
	// mostRounds is the number of decisions after which one that changes the clusters each time is given up.
	mostRounds = 10
	// estimateKey is the annotation of a cluster with what its estimator says.
	estimateKey = "karmada-rs.io/estimate"
)

// Case is what the scheduler decides about.
type Case struct {
	Clusters []clusterv1alpha1.Cluster    `json:"clusters"`
	Binding  workv1alpha2.ResourceBinding `json:"binding"`
	// KeepsEmpty is Karmada's --enable-empty-workload-propagation.
	KeepsEmpty bool `json:"keepsEmpty"`
}

// Decision is the binding once the scheduler changes nothing more.
type Decision struct {
	Binding *workv1alpha2.ResourceBinding `json:"binding"`
	// Settles is false if each decision changes the clusters again.
	Settles bool `json:"settles"`
}

func main() {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	estimators.GetReplicaEstimators()["of-the-test"] = annotated{}
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	answers, failures := make([][]byte, len(lines)), make([]error, len(lines))
	var decisions sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for nth, line := range lines {
		free <- struct{}{}
		decisions.Go(func() {
			defer func() { <-free }()
			answers[nth], failures[nth] = answer(line)
		})
	}
	decisions.Wait()
	if err := errors.Join(failures...); err != nil {
		return err
	}
	writer := bufio.NewWriter(out)
	for _, answer := range answers {
		fmt.Fprintf(writer, "%s\n", answer)
	}
	return writer.Flush()
}

func answer(line []byte) ([]byte, error) {
	var given Case
	if err := json.Unmarshal(line, &given); err != nil {
		return nil, fmt.Errorf("%w in %s", err, line)
	}
	decision, err := decide(given)
	if err != nil {
		return nil, fmt.Errorf("%w about %s", err, line)
	}
	return json.Marshal(decision)
}

// decide runs a scheduler until it has decided about the binding, and then about what it has written itself.
func decide(given Case) (*Decision, error) {
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	objects := []runtime.Object{&given.Binding}
	for nth := range given.Clusters {
		objects = append(objects, &given.Clusters[nth])
	}
	karmada := fake.NewSimpleClientset(objects...)
	kube, err := kubernetes.NewForConfig(&rest.Config{Transport: nowhere{}})
	if err != nil {
		return nil, err
	}
	under, err := scheduler.NewScheduler(nil, karmada, kube,
		scheduler.WithSchedulerName(scheduler.DefaultScheduler),
		scheduler.WithEnableSchedulerPlugin([]string{"*"}),
		scheduler.WithEnableEmptyWorkloadPropagation(given.KeepsEmpty))
	if err != nil {
		return nil, err
	}
	bindings := karmada.WorkV1alpha2().ResourceBindings(given.Binding.Namespace)
	changes, err := bindings.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	defer changes.Stop()
	go under.Run(ctx)
	before := given.Binding.Spec.Clusters
	for range mostRounds {
		binding, err := next(ctx, changes)
		if err != nil {
			return nil, err
		}
		if isRefused(binding) || equality.Semantic.DeepEqual(binding.Spec.Clusters, before) {
			return &Decision{binding, true}, nil
		}
		before = binding.Spec.Clusters
		// An API counts each change of the spec, and the scheduler decides about each generation.
		binding.Generation++
		if _, err := bindings.Update(ctx, binding, metav1.UpdateOptions{}); err != nil {
			return nil, err
		}
		given.Binding = *binding
	}
	return &Decision{&given.Binding, false}, nil
}

// next returns the binding after the last write of a decision: its generation is observed, or it is refused.
func next(ctx context.Context, changes watch.Interface) (*workv1alpha2.ResourceBinding, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, errors.New("no decision")
		case change := <-changes.ResultChan():
			binding, is := change.Object.(*workv1alpha2.ResourceBinding)
			if is && (binding.Status.SchedulerObservedGeneration == binding.Generation || isRefused(binding)) {
				return binding.DeepCopy(), nil
			}
		}
	}
}

// isRefused returns true if the binding cannot be scheduled. None can be so before its first decision.
func isRefused(binding *workv1alpha2.ResourceBinding) bool {
	return meta.IsStatusConditionFalse(binding.Status.Conditions, workv1alpha2.Scheduled)
}

// annotated is the estimator of each cluster that is annotated with an estimate.
type annotated struct{}

func (annotated) MaxAvailableReplicas(_ context.Context, request estimators.ReplicaEstimationRequest) ([]workv1alpha2.TargetCluster, error) {
	var estimates []workv1alpha2.TargetCluster
	for _, cluster := range request.Clusters {
		replicas, err := strconv.ParseInt(cluster.Annotations[estimateKey], 10, 32)
		if err != nil {
			replicas = estimators.UnauthenticReplica
		}
		estimates = append(estimates, workv1alpha2.TargetCluster{Name: cluster.Name, Replicas: int32(replicas)})
	}
	return estimates, nil
}

func (annotated) MaxAvailableComponentSets(context.Context, estimators.ComponentSetEstimationRequest) ([]estimators.ComponentSetEstimationResponse, error) {
	return nil, errors.New("the test has no components")
}

// nowhere is the way to an API that there is not: Events go there.
type nowhere struct{}

func (nowhere) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("there is no such API")
}
