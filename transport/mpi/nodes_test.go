//go:build linux && (amd64 || arm64)

package mpi

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFindNodes(t *testing.T) {
	a, b := host{"boot", "pids", "1:2", 7, "x"}, host{"boot", "pids", "1:3", 8, "y"}
	n := findNodes([]host{a, b, a, b, {"other", "pids", "1:2", 7, "z"}}, 2)
	require.Equal(t, []int{0, 1, 0, 1, 4}, n.of)
	require.Equal(t, []int{0, 2}, n.here)
	require.Nil(t, n.places([]int{0, 2}), "no memory")
}

func TestHostIsSaid(t *testing.T) {
	h, err := parseHost(sayHost())
	require.NoError(t, err)
	again, err := parseHost(sayHost())
	require.NoError(t, err)
	require.True(t, h.sharesMemory(again))
	require.NotEqual(t, h.token, again.token)
	_, err = parseHost("boot pids 1:2")
	require.Error(t, err)
}
