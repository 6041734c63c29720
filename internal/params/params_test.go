package params

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bytesize"
)

// Defaults lists the fields that have a yaml tag.
func TestDefaults(t *testing.T) {
	type fields struct {
		Chunk bytesize.Size `yaml:"chunk"`
		Depth int           `yaml:"depth" doc:"how deep"`
		Fast  bool          `yaml:"fast"`
		Label string        `yaml:"label"`
		Pause time.Duration `yaml:"pause"`
		cache int
	}
	all, err := Defaults("a", func() any { return &fields{Chunk: 4 << 10, Depth: 2, Label: "none", cache: 1} })
	require.NoError(t, err)
	var got [][4]string
	for _, p := range all {
		got = append(got, [4]string{p.Key, p.Type(), p.String(), p.Doc})
	}
	require.Equal(t, [][4]string{
		{"chunk", "bytes", "4KiB", ""},
		{"depth", "int", "2", "how deep"},
		{"fast", "bool", "false", ""},
		{"label", "string", `"none"`, ""},
		{"pause", "duration", "0s", ""},
	}, got)
	all, err = Defaults("a", nil)
	require.NoError(t, err)
	require.Empty(t, all)
}
