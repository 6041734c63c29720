package main

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/goccl/goccl/dist"
)

// observe returns an observer that makes a span of each collective call, a child of that in the
// context of dist.WithContext. Any number of ranks may use it.
func observe(tracer trace.Tracer) func(context.Context, dist.ObservedCall) func(dist.ObservedCall) {
	return func(ctx context.Context, call dist.ObservedCall) func(dist.ObservedCall) {
		_, span := tracer.Start(ctx, call.Collective.String(), trace.WithAttributes(
			attribute.Int("goccl.rank", call.GlobalRank),
			attribute.String("goccl.group", call.Group),
			attribute.String("goccl.label", call.Label),
			attribute.Bool("goccl.async", call.Async),
		))

		return func(call dist.ObservedCall) {
			span.SetAttributes(
				attribute.Int64("goccl.call", int64(call.Seq)), // the same on all ranks of the group
				attribute.String("goccl.algorithm", call.Algorithm),
				attribute.Int("goccl.bytes", call.Bytes),
				attribute.Float64("goccl.waiting_seconds", call.Waiting.Seconds()),
			)
			if call.Err != nil {
				span.RecordError(call.Err)
				span.SetStatus(codes.Error, call.Err.Error())
			}
			span.End()
		}
	}
}
