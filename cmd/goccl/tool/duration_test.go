package tool

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A flag whose value has a wrong unit is named, with its value and with what to write instead.
func TestWrongUnits(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"bench --compute=10", `--compute: "10" is not a duration; it has no unit: write 10s for seconds, 10ms for milliseconds`},
		{"bench --compute=5seconds", `--compute: "5seconds" is not a duration; write 5s`},
		{"bench --time=x", `--time: "x" is not a duration; write it like 250us, 200ms, 5s or 1m30s`},
		{"bench --compute=-1s", "--compute -1s: want 0 or more"},
		{"bench --time=-1s", "--time -1s: want more than 0"},
		{"run -n 2 --grace=1MIN ./train", `--grace: "1MIN" is not a duration; write 1m`},
		{"explain --timeout=5seconds", `--timeout: "5seconds" is not a duration; write 5s; none: wait for ever`},
		{"bench -b 4kb", `--begin: "4kb" is not a size in bytes; kb can mean powers of 1000 or 1024: write 4KiB for 1024`},
		{"bench --end=x", `--end: "x" is not a size in bytes; write it like 4096, 64KiB, 1MiB or 2GiB`},
		{"bench --param=ring.chunk=1.5K", `--param ring.chunk: "1.5K" is not a size in bytes; write 1536`},
		{"explain --bytes=8,4kb", `--bytes: "4kb" is not a size in bytes; kb can mean powers`},
	} {
		require.Contains(t, failed(t, 2, strings.Fields(c.args)...), c.want, c.args)
	}
}

// What is probably meant by a wrong duration is one, except where nothing can be told.
func TestMeantDuration(t *testing.T) {
	for text, want := range map[string]string{
		"5 s": "5s", "5S": "5s", "5sec": "5s", "5secs": "5s", " 1.5 seconds": "1.5s",
		"3min": "3m", "3 Minutes": "3m", "2hours": "2h", "2hr": "2h", "2hrs": "2h",
		"7msec": "7ms", "7 ms": "7ms", "7millis": "7ms", "9usecs": "9us", "9microseconds": "9us", "4nanos": "4ns",
	} {
		_, err := parseDuration(text)
		require.ErrorContains(t, err, "; write "+want, text)
		_, err = time.ParseDuration(want)
		require.NoError(t, err)
	}
	for _, text := range []string{"", "x", "1h1", "5days", "5 s later", "-"} {
		_, err := parseDuration(text)
		require.ErrorContains(t, err, "; write it like 250us, 200ms, 5s or 1m30s", text)
	}
	d, err := parseDuration("1m30s")
	require.NoError(t, err)
	require.Equal(t, 90*time.Second, d)
}
