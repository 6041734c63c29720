package tool

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A flag whose value has a wrong unit is named, with its value and with what to write instead.
func TestWrongUnits(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"bench --compute=10", `--compute: expected duration but got "10": time: missing unit in duration "10"`},
		{"bench --compute=5seconds", `--compute: expected duration but got "5seconds": time: unknown unit "seconds" in duration "5seconds"`},
		{"bench --compute=-1s", "--compute -1s: want 0 or more"},
		{"bench --time=-1s", "--time -1s: want more than 0"},
		{"explain --timeout=5seconds", `--timeout: "5seconds": want a duration of more than 0, such as 60s; none: wait for ever`},
		{"bench -b 4kb", `--begin: "4kb" is not a size in bytes; kb can mean powers of 1000 or 1024: write 4KiB for 1024`},
		{"bench --end=x", `--end: "x" is not a size in bytes; write it like 4096, 64KiB, 1MiB or 2GiB`},
		{"bench --param=ring.chunk=1.5K", `--param ring.chunk: "1.5K" is not a size in bytes; write 1536`},
		{"explain --bytes=8,4kb", `--bytes: "4kb" is not a size in bytes; kb can mean powers`},
	} {
		require.Contains(t, failed(t, 2, strings.Fields(c.args)...), c.want, c.args)
	}
}
