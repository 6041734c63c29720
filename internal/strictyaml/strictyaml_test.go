package strictyaml

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParserPanicsAreErrors(t *testing.T) {
	err := guarded(func(any) error { panic("internal error") }, nil)
	require.EqualError(t, err, "the parser gave up: internal error")
}
