package dist

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Ranks that a group does not have are left out: an error may have them from damaged memory.
func TestToJob(t *testing.T) {
	require.Equal(t, []int{3, 7}, toJob([]int{1, 0, 2, -1}, []int{7, 3}, true))
	require.Equal(t, []int{0, 2}, toJob([]int{2, 0}, nil, false))
	require.Empty(t, toJob([]int{0}, nil, true))
}
