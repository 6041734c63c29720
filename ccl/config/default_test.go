package config_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/goccl/goccl/algorithms"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/transport/local"
	_ "github.com/goccl/goccl/transport/shm" // messages list the transports of the program
)

// A communicator without a Selector behaves as with the default configuration.
func TestDefaultsAgree(t *testing.T) {
	c, err := ccl.New(context.Background(), local.New(1)[0])
	require.NoError(t, err)
	defer c.Close()
	without, err := c.Selector().ForGroup(4, "a group")
	require.NoError(t, err)
	with, err := config.Default().Resolve(config.Request{Ranks: 4})
	require.NoError(t, err)

	require.Equal(t, with.Timeout(), without.Timeout())
	require.Equal(t, with.Debug(), without.Debug())
	require.True(t, with.Topology().Equal(without.Topology()))
	require.ElementsMatch(t, with.Entries(), without.Entries())
	for _, entry := range append([]string{""}, with.Entries()...) {
		for _, coll := range ccl.Collectives() {
			for _, op := range ccl.Ops() {
				for _, dtype := range ccl.DTypes() {
					for _, bytes := range []int{0, 64, 1 << 20} {
						shape := ccl.Shape{
							Collective: coll, Ranks: 4, Bytes: bytes, Total: bytes, DType: dtype, Op: op, Topology: with.Topology(),
						}
						one, err := with.Choose(shape, entry)
						other, otherErr := without.Choose(shape, entry)
						require.Equal(t, err == nil, otherErr == nil, "%v by %q: %v, %v", shape, entry, err, otherErr)
						require.Equal(t, one.Entry, other.Entry)
						require.Same(t, one.Kernel, other.Kernel)
						require.Equal(t, one.Params, other.Params)
					}
				}
			}
		}
	}
}
