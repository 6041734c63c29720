//go:build !linux || (!amd64 && !arm64)

package mpi

import (
	"context"

	"github.com/goccl/goccl/transport"
)

// Name is the transport's name in ccl.yaml.
const Name = "mpi"

func init() { transport.Register(transport.Provider{Name: Name, Detect: detect, Join: join}) }

func detect(*transport.Job) (auto bool, err error) {
	return false, &transport.NotAvailableError{Transport: Name, Reason: "it needs Linux on amd64 or arm64"}
}

func startUnchecked(context.Context) (calls uncheckedCalls, rank, size int, err error) {
	_, err = detect(nil)
	return nil, 0, 0, err
}

func join(_ context.Context, j *transport.Job) ([]transport.Endpoint, error) {
	_, err := detect(j)
	return nil, err
}
