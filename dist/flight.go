package dist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
)

// Environment variables of the flight recorder.
const (
	flightVariable = "GOCCL_FLIGHT"
	timesVariable  = "GOCCL_FLIGHT_TIMES"
	endVariable    = "GOCCL_FLIGHT_END"

	metricsVariable = "GOCCL_METRICS"
)

// WithFlight writes the flight recorder to a file in the directory dir when a call or the worker
// fails; see ccl.WithFlight. It overrides the environment variable GOCCL_FLIGHT. The empty name is
// ignored.
func WithFlight(dir string) InitOption {
	return InitOption{func(o *initOptions) { o.flight = cmp.Or(dir, o.flight) }}
}

// WithMetrics counts the rank's calls for other programs; see ccl.WithMetrics. So does the
// environment variable GOCCL_METRICS=true.
func WithMetrics() InitOption {
	return InitOption{func(o *initOptions) { o.recording = append(o.recording, ccl.WithMetrics()) }}
}

// ObservedCall is a call of a collective, as an observer sees it.
type ObservedCall = ccl.ObservedCall

// WithObserver calls before at the begin of each collective call of the rank, with the context of
// WithContext, and what it returns, unless nil, at the call's end; see ccl.WithObserver.
func WithObserver(before func(ctx context.Context, call ObservedCall) (after func(ObservedCall))) InitOption {
	return InitOption{func(o *initOptions) { o.recording = append(o.recording, ccl.WithObserver(before)) }}
}

// resolveFlight finds the options of the flight recorder and of the counters.
func (o *initOptions) resolveFlight() error {
	if dir := cmp.Or(o.flight, os.Getenv(flightVariable)); dir != "" {
		o.recording = append(o.recording, ccl.WithFlight(dir))
	}
	if _, err := boolVariable(endVariable, false); err != nil {
		return err
	}

	all, err := boolVariable(timesVariable, false)
	if err != nil {
		return err
	}
	if all {
		o.recording = append(o.recording, ccl.WithCallTimes())
	}

	counts, err := boolVariable(metricsVariable, false)
	if counts {
		o.recording = append(o.recording, ccl.WithMetrics())
	}
	return err
}

// boolVariable returns the value of an environment variable, by default value.
func boolVariable(name string, value bool) (bool, error) {
	text := os.Getenv(name)
	if text == "" {
		return value, nil
	}
	value, err := strconv.ParseBool(text)
	if err != nil {
		return false, &config.Error{File: "environment", Key: name, Message: fmt.Sprintf("%q is neither true nor false", text)}
	}
	return value, nil
}

// writeFlight writes the flight recorder if the worker has failed. Its own error tells more than
// one of writing.
func (r *rank) writeFlight(err error) {
	if g := r.group.Load(); g != nil && err != nil {
		_ = g.comm.WriteFlight()
	}
}

// writeFlightAtEnd writes the flight recorder of a rank that leaves its default group without a
// failure, if the user wants that: ranks that are goroutines leave nothing else behind.
func (g *ProcessGroup) writeFlightAtEnd() error {
	if g == nil {
		return nil
	}
	if isWanted, _ := boolVariable(endVariable, false); !isWanted { // its error was returned before
		return nil
	}
	return g.comm.WriteFlight()
}

// WriteMetrics writes what the ranks of this process have counted (see WithMetrics), and the steps
// of their trainings, in the text format of Prometheus. A program serves it where its metrics are
// read.
//
// Before InitProcessGroup and after DestroyProcessGroup it writes nothing. Of several jobs of Spawn
// at a time it writes that of the calling goroutine, or fails with ErrUnbound. It returns errors of
// w. Any goroutine may call it at any time.
func WriteMetrics(w io.Writer) error {
	g, _, err := known()
	if errors.Is(err, ErrNotInitialized) {
		return nil
	}
	if err != nil {
		return err
	}
	return g.comm.WriteMetrics(w)
}

// Metrics returns what WriteMetrics writes, for package expvar: values by metric and labels, such
// as goccl_calls_total{rank="0",group="default",collective="barrier"}. Where WriteMetrics fails
// there are none. Any goroutine may call it at any time.
func Metrics() map[string]float64 {
	g, _, _ := known()
	return g.Communicator().Metrics()
}
