// Runs ExternalDNS with its own flags and without the SDK of a cloud: its source, its registry, its plan and its policy.
//
// The cloud alone is a mock: the zones of ExternalDNS's own provider "inmemory", which are served as DNS. The loop stands in for
// that of ExternalDNS's package controller, which links every cloud.
//
//	external-dns ADDRESS [NAME=IP]... FLAGS...
//
// ADDRESS is that of the name server, and each NAME a record that somebody else has there.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/miekg/dns"
	log "github.com/sirupsen/logrus"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"

	"sigs.k8s.io/external-dns/endpoint"
	"sigs.k8s.io/external-dns/pkg/apis/externaldns"
	"sigs.k8s.io/external-dns/pkg/apis/externaldns/validation"
	"sigs.k8s.io/external-dns/plan"
	"sigs.k8s.io/external-dns/provider"
	"sigs.k8s.io/external-dns/provider/inmemory"
	"sigs.k8s.io/external-dns/registry"
	"sigs.k8s.io/external-dns/registry/txt"
	"sigs.k8s.io/external-dns/source"
	"sigs.k8s.io/external-dns/source/annotations"
	"sigs.k8s.io/external-dns/source/wrappers"
)

func main() {
	crlog.SetLogger(logr.Discard())
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("no address of the name server")
	}
	address, args := args[0], args[1:]
	var theirs []*endpoint.Endpoint
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, ip, _ := strings.Cut(args[0], "=")
		theirs = append(theirs, endpoint.NewEndpoint(name, endpoint.RecordTypeA, ip))
		args = args[1:]
	}
	cfg := externaldns.NewConfig()
	if err := cfg.ParseFlags(args); err != nil {
		return err
	}
	if err := validation.ValidateConfig(cfg); err != nil {
		return err
	}
	annotations.SetAnnotationPrefix(cfg.AnnotationPrefix)
	level, err := log.ParseLevel(cfg.LogLevel)
	if err != nil {
		return err
	}
	log.SetLevel(level)

	zones := newCloud(cfg.InMemoryZones)
	if err := zones.ApplyChanges(ctx, &plan.Changes{Create: theirs}); err != nil {
		return err
	}
	sourceCfg, err := source.NewSourceConfig(cfg)
	if err != nil {
		return err
	}
	endpoints, err := wrappers.Build(ctx, sourceCfg)
	if err != nil {
		return err
	}
	owned, err := txt.New(cfg, zones)
	if err != nil {
		return err
	}
	served := make(chan error, 2)
	for _, network := range []string{"udp", "tcp"} {
		go func() {
			server := dns.Server{Addr: address, Net: network, Handler: zones}
			served <- server.ListenAndServe()
		}()
	}
	changed := make(chan struct{}, 1)
	if cfg.UpdateEvents {
		endpoints.AddEventHandler(ctx, func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		})
	}
	ticks := time.NewTicker(cfg.Interval)
	defer ticks.Stop()
	for {
		if err := synchronize(ctx, cfg, endpoints, owned); err != nil {
			return err
		}
		select {
		case err := <-served:
			return err
		case <-changed:
		case <-ticks.C:
		}
	}
}

// synchronize brings the records up to date once, as RunOnce of ExternalDNS's Controller does.
func synchronize(ctx context.Context, cfg *externaldns.Config, from source.Source, to registry.Registry) error {
	current, err := to.Records(ctx)
	if err != nil {
		return err
	}
	ctx = context.WithValue(ctx, provider.RecordsContextKey, current)
	found, err := from.Endpoints(ctx)
	if err != nil {
		return err
	}
	desired, err := to.AdjustEndpoints(found)
	if err != nil {
		return err
	}
	domains := endpoint.NewDomainFilterWithOptions(endpoint.WithDomainFilter(cfg.DomainFilter))
	next := (&plan.Plan{
		Policies:       []plan.Policy{plan.Policies[cfg.Policy]},
		Current:        current,
		Desired:        desired,
		DomainFilter:   endpoint.MatchAllDomainFilters{domains, to.GetDomainFilter()},
		ManagedRecords: cfg.ManagedDNSRecordTypes,
		ExcludeRecords: cfg.ExcludeDNSRecordTypes,
		OwnerID:        to.OwnerID(),
	}).Calculate()
	if !next.Changes.HasChanges() {
		return nil
	}
	return to.ApplyChanges(ctx, next.Changes)
}

// cloud is the mock of a cloud: zones in memory, served as DNS.
type cloud struct {
	*inmemory.InMemoryProvider
	// served are the records after the last change, as the provider itself may not be read during one.
	served atomic.Pointer[[]*endpoint.Endpoint]
}

func newCloud(zones []string) *cloud {
	of := &cloud{InMemoryProvider: inmemory.NewInMemoryProvider(inmemory.InMemoryInitZones(zones), inmemory.InMemoryWithLogging())}
	of.served.Store(&[]*endpoint.Endpoint{})
	return of
}

func (of *cloud) ApplyChanges(ctx context.Context, changes *plan.Changes) error {
	if err := of.InMemoryProvider.ApplyChanges(ctx, changes); err != nil {
		return err
	}
	records, err := of.Records(ctx)
	if err != nil {
		return err
	}
	of.served.Store(&records)
	return nil
}

// ServeDNS answers from the records.
func (of *cloud) ServeDNS(to dns.ResponseWriter, question *dns.Msg) {
	answer := new(dns.Msg).SetRcode(question, dns.RcodeNameError)
	answer.Authoritative = true
	asked := question.Question[0]
	for _, record := range *of.served.Load() {
		if !strings.EqualFold(dns.Fqdn(record.DNSName), asked.Name) {
			continue
		}
		answer.Rcode = dns.RcodeSuccess
		if dns.TypeToString[asked.Qtype] != record.RecordType && record.RecordType != endpoint.RecordTypeCNAME {
			continue
		}
		header := dns.RR_Header{Name: asked.Name, Class: dns.ClassINET, Ttl: uint32(record.RecordTTL)}
		for _, target := range record.Targets {
			if found := resource(header, record.RecordType, target); found != nil {
				answer.Answer = append(answer.Answer, found)
			}
		}
	}
	if err := to.WriteMsg(answer); err != nil {
		log.Errorf("cannot answer: %v", err)
	}
}

func resource(header dns.RR_Header, kind, target string) dns.RR {
	header.Rrtype = dns.StringToType[kind]
	switch kind {
	case endpoint.RecordTypeA:
		return &dns.A{Hdr: header, A: net.ParseIP(target)}
	case endpoint.RecordTypeAAAA:
		return &dns.AAAA{Hdr: header, AAAA: net.ParseIP(target)}
	case endpoint.RecordTypeCNAME:
		return &dns.CNAME{Hdr: header, Target: dns.Fqdn(target)}
	}
	return nil
}
