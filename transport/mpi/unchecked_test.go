package mpi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport/mpi"
)

// dtypeOf compiles because every element of this package is one of package ccl, which excludes named types made of uint16.
func dtypeOf[T mpi.Element]() ccl.DType { return ccl.DTypeOf[T]() }

func TestElementsAreThoseOfCCL(t *testing.T) {
	require.Equal(t, ccl.Uint16, dtypeOf[uint16]())
	require.Equal(t, ccl.Int64, dtypeOf[int]())
}
