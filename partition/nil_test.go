package partition_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/partition"
)

// A rank that is outside a group, whose communicator is nil there, has no partition of it.
func TestPartitionOfNoGroup(t *testing.T) {
	for name, c := range map[string]*ccl.Communicator{"nil": nil, "zero": {}} {
		p, err := partition.New(bg, c)
		require.ErrorIs(t, err, ccl.ErrInvalidCommunicator, name)
		require.Nil(t, p, name)
	}
}

// A nil partition is inactive: its methods tell so, as those of the zero value, and none panics.
func TestNilPartition(t *testing.T) {
	var p *partition.Partition
	require.False(t, p.Active())
	require.Equal(t, []int{0, -1}, []int{p.Size(), p.Rank()})
	require.Nil(t, p.Shape())
	require.Nil(t, p.Index())
	require.Nil(t, p.Workers())
	require.Nil(t, p.Communicator())
	require.True(t, p.Equal(nil))
	require.False(t, p.Equal(&partition.Partition{}))
	require.NoError(t, p.Close())
	for name, call := range map[string]func() (*partition.Partition, error){
		"Inclusive": func() (*partition.Partition, error) { return p.Inclusive(bg, []int{0}) },
		"Cartesian": func() (*partition.Partition, error) { return p.Cartesian(bg, 1) },
	} {
		made, err := call()
		require.NoError(t, err, name)
		require.False(t, made.Active(), name)
	}
	var invalid *ccl.InvalidArgumentError
	_, err := p.Union(bg, p)
	require.ErrorAs(t, err, &invalid)
	_, _, err = p.BroadcastTo(bg, p)
	require.ErrorAs(t, err, &invalid)
	_, _, err = p.ReductionTo(bg, p)
	require.ErrorAs(t, err, &invalid)
	require.Empty(t, partition.InOrder(p, p))
}
