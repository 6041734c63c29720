package text

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A host without a name has one in messages, and no name moves the cursor.
func TestHost(t *testing.T) {
	require.Equal(t, "?", Host(""))
	require.Equal(t, "node-a", Host("node-a"))
	require.Equal(t, " [2Jnode", Host("\x1b[2Jnode"))
}

func TestDidYouMean(t *testing.T) {
	names := []string{"direct", "ring", "tree"}
	for unknown, want := range map[string]string{
		"rign": "ring", "RING": "ring", "rin": "ring", "drect": "direct", "directly": "direct", "tere": "tree", "di": "direct", "re": "direct",
		"": "", "x": "", "halving_doubling": "", strings.Repeat("ring", 10000): "",
	} {
		if want != "" {
			want = " (did you mean " + want + "?)"
		}
		require.Equal(t, want, DidYouMean(unknown, names), "%.20q", unknown)
	}
	require.Equal(t, 3, EditDistance("kitten", "sitting"))
	require.Equal(t, 4, EditDistance("", "ring"))
	require.Equal(t, 4, EditDistance("ring", ""))
}
