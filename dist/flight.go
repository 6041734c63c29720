package dist

import (
	"cmp"
	"fmt"
	"os"
	"strconv"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
)

// Environment variables of the flight recorder.
const (
	flightVariable = "GOCCL_FLIGHT"
	timesVariable  = "GOCCL_FLIGHT_TIMES"
)

// WithFlight writes the flight recorder to a file in the directory dir when a call or the worker
// fails; see ccl.WithFlight. It overrides the environment variable GOCCL_FLIGHT. The empty name is
// ignored.
func WithFlight(dir string) InitOption {
	return InitOption{func(o *initOptions) { o.flight = cmp.Or(dir, o.flight) }}
}

// resolveFlight finds the options of the flight recorder.
func (o *initOptions) resolveFlight() error {
	if dir := cmp.Or(o.flight, os.Getenv(flightVariable)); dir != "" {
		o.recording = append(o.recording, ccl.WithFlight(dir))
	}
	all, err := boolVariable(timesVariable, false)
	if all {
		o.recording = append(o.recording, ccl.WithCallTimes())
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
