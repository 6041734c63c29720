package local

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/transport"
)

func init() { transport.Register(transport.Provider{Name: Name, Detect: detect, Join: join}) }

// detect is the provider's Detect: the transport is for goroutines.
func detect(j *transport.Job) (auto bool, err error) {
	if j.Launched {
		return false, &transport.NotAvailableError{Transport: Name, Reason: fmt.Sprintf(
			"%s, and local connects goroutines of one process: use shm, or auto", j.Origin)}
	}
	return true, nil
}

// join is the provider's Join.
func join(_ context.Context, j *transport.Job) ([]transport.Endpoint, error) { return New(j.Size), nil }
