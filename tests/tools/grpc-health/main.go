// Serves gRPC's own health service at the address that is its first argument. Each other argument is a service with its
// status, such as shop=NOT_SERVING.
package main

import (
	"log"
	"net"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

func main() {
	services := health.NewServer()
	for _, argument := range os.Args[2:] {
		service, name, _ := strings.Cut(argument, "=")
		status, known := grpc_health_v1.HealthCheckResponse_ServingStatus_value[name]
		if !known {
			log.Fatalf("%s has no status", argument)
		}
		services.SetServingStatus(service, grpc_health_v1.HealthCheckResponse_ServingStatus(status))
	}
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, services)
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	log.Print("Listening")
	log.Fatal(server.Serve(listener))
}
