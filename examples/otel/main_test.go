package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/goccl/goccl/dist"
)

// traced returns a tracer and where its spans are.
func traced() (trace.Tracer, *tracetest.InMemoryExporter) {
	exporter := tracetest.NewInMemoryExporter()
	return sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)).Tracer("test"), exporter
}

// attributes returns those of a span, by name.
func attributes(span tracetest.SpanStub) map[attribute.Key]any {
	all := map[attribute.Key]any{}
	for _, a := range span.Attributes {
		all[a.Key] = a.Value.AsInterface()
	}
	return all
}

// Each call of each rank is a span below the step that makes it.
func TestSpans(t *testing.T) {
	tracer, exporter := traced()
	require.NoError(t, train(tracer, 3, 2))

	steps, calls := map[trace.SpanID]bool{}, map[any]int{}
	for _, s := range exporter.GetSpans() {
		if s.Name == "step" {
			steps[s.SpanContext.SpanID()] = true
		}
	}
	require.Len(t, steps, 3*2)
	for _, s := range exporter.GetSpans() {
		if s.Name == "step" {
			continue
		}
		require.Equal(t, "all_reduce", s.Name)
		require.True(t, steps[s.Parent.SpanID()], "its parent is no step")
		require.Equal(t, codes.Unset, s.Status.Code)
		a := attributes(s)
		calls[a["goccl.rank"]]++
		require.EqualValues(t, calls[a["goccl.rank"]], a["goccl.call"])
		require.EqualValues(t, 4000, a["goccl.bytes"])
		require.Equal(t, "gradients", a["goccl.label"])
		require.Equal(t, false, a["goccl.async"])
		require.NotEmpty(t, a["goccl.algorithm"])
		seconds := s.EndTime.Sub(s.StartTime).Seconds()
		require.True(t, 0 <= a["goccl.waiting_seconds"].(float64) && a["goccl.waiting_seconds"].(float64) <= seconds, "%v of %v s", a, seconds)
	}
	require.Equal(t, map[any]int{int64(0): 2, int64(1): 2, int64(2): 2}, calls)
}

// The span of a call that fails has the error.
func TestErrors(t *testing.T) {
	tracer, exporter := traced()
	require.Error(t, dist.Spawn(func(context.Context, int) error {
		if err := dist.InitProcessGroup("ccl", dist.WithObserver(observe(tracer))); err != nil {
			return err
		}
		return dist.AllReduce([]float32{}, dist.Sum)
	}, dist.WithRanks(2)))
	spans := exporter.GetSpans()
	require.NotEmpty(t, spans)
	for _, s := range spans {
		require.Equal(t, codes.Error, s.Status.Code)
		require.Contains(t, s.Status.Description, "all_reduce")
		require.Len(t, s.Events, 1)
	}
}
