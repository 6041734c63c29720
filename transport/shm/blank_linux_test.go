package shm

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// After Free, an endpoint does not replace the mapping by private memory: its addresses may hold
// other memory.
func TestNothingIsMappedAfterFree(t *testing.T) {
	own(t)
	ep, err := Join(context.Background(), Job{Name: "job", Size: 1})
	require.NoError(t, err)
	m := ep.(*mapped)
	at := fmt.Sprintf("%x-", uintptr(m.segment.file.base))
	require.Contains(t, mappedAreas(t), at)
	require.NoError(t, m.Close())
	require.NoError(t, m.Free())
	require.NotContains(t, mappedAreas(t), at)
	m.Refuse(1, "no") // faults
	require.NotContains(t, mappedAreas(t), at)
	require.Error(t, m.segment.blank())

}

func mappedAreas(t *testing.T) string {
	text, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	return strings.ReplaceAll(string(text), "\n", " ")
}
