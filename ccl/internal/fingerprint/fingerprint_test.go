package fingerprint

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Processes compare the ids, so an id must depend on the name alone.
func TestEntryID(t *testing.T) {
	require.Equal(t, uint64(0xcbf29ce484222325), EntryID(""), "FNV-1a's offset basis")
	require.Equal(t, uint64(0xaf63dc4c8601ec8c), EntryID("a"))
}
