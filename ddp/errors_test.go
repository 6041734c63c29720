package ddp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ddp"
)

// Names that are empty, or that a terminal may act on, are shown in quotes.
func TestNamesInErrors(t *testing.T) {
	err := &ddp.UnreadyError{Parameters: []string{"a.weight", "", "b\x1b[2J", "größe"}}
	require.ErrorContains(t, err, `no gradient was ready for a.weight, "", "b\x1b[2J", größe: call Ready`)
}
