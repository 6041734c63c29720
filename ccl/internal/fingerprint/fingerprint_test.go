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

// The words keep every field apart. A label changes none of them.
func TestEncode(t *testing.T) {
	for _, f := range []Fingerprint{
		{},
		{Collective: 255, DType: 255, Op: 1<<32 - 1, Key: 1<<32 - 1, Count: 1<<63 - 1, Root: 1<<32 - 1, Entry: 1<<64 - 1, Counts: 1<<64 - 1},
		{Collective: 1, DType: 2, Op: 3, Key: KeyID("step 1"), Count: 4, Root: 5, Entry: 6, Counts: 7},
	} {
		require.Equal(t, f, Decode(f.Encode()))
		require.Equal(t, f, Decode(WithLabel(f.Encode(), "loss")))
	}
}

// A key differs from none and from others.
func TestKeyID(t *testing.T) {
	require.Zero(t, KeyID(""))
	seen := map[uint32]bool{0: true}
	for _, key := range []string{"a", "b", "ab", "ba", "grads of block 1", "grads of block 2"} {
		require.False(t, seen[KeyID(key)], key)
		seen[KeyID(key)] = true
	}
}
