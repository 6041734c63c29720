// Command otel makes spans of OpenTelemetry (go.opentelemetry.io/otel) of the collective calls of
// several ranks. observe.go is the part to read and to copy.
//
//	go run . -ranks 2
//	go build . && goccl run -n 2 ./otel
//
// The first line has goroutines as ranks, the second processes. Each rank makes some steps, which
// are spans of the program, and the calls in a step are their children. The spans are written to
// standard output as JSON; a program that sends them elsewhere takes another exporter. The program
// is a module of its own, so that goccl does not depend on OpenTelemetry.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/goccl/goccl/dist"
)

func main() {
	ranks := flag.Int("ranks", 0, "`number` of ranks; 0: one for each usable core, or as many as the launcher started")
	steps := flag.Int("steps", 2, "`number` of steps")
	flag.Parse()
	if err := run(*ranks, *steps); err != nil {
		fmt.Fprintf(os.Stderr, "otel: %v\n", err)
		os.Exit(1)
	}
}

// run writes the spans of some steps to standard output.
func run(ranks, steps int) error {
	exporter, err := stdouttrace.New()
	if err != nil {
		return err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	err = train(provider.Tracer("github.com/goccl/goccl/examples/otel"), ranks, steps)
	return errors.Join(err, provider.Shutdown(context.Background()))
}

// train makes some steps on some ranks, 0 for the default.
func train(tracer trace.Tracer, ranks, steps int) error {
	var number dist.SpawnOption
	if ranks > 0 {
		number = dist.WithRanks(ranks)
	}

	return dist.Spawn(func(ctx context.Context, _ int) error {
		if err := dist.InitProcessGroup("ccl", dist.WithObserver(observe(tracer))); err != nil {
			return err
		}

		gradients := make([]float32, 1000)
		for range steps {
			ctx, span := tracer.Start(ctx, "step")
			err := dist.AllReduce(gradients, dist.Avg, dist.WithContext(ctx), dist.WithLabel("gradients"))
			span.End()
			if err != nil {
				return err
			}
		}
		return dist.DestroyProcessGroup()
	}, number)
}
