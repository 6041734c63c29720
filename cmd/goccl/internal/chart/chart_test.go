package chart

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/cmd/goccl/internal/measure"
)

// documented has two sections of several lengths, with algorithms a and b, one of a single length, and a barrier.
func documented() *measure.Document {
	d := &measure.Document{
		Date:    time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Machine: measure.Machine{CPU: "a < b", Cores: 2, GOMAXPROCS: 2, OS: "linux", Arch: "amd64", Go: "go1.26", Revision: "0a1b"},
		Config:  measure.Config{File: "ccl.yaml", FoundBy: "working directory"},
	}
	add := func(c measure.Case, entries ...string) {
		r := measure.Result{Case: c, Config: "ccl.yaml", Rows: []measure.Row{
			{Library: measure.Yardstick, Entry: measure.OwnCopy, Calls: 9, P50: 1 + float64(c.Bytes)/1e4, BusBW: 10},
			{Library: measure.Yardstick, Entry: measure.Barrier, Calls: 9, P50: 0.0002},
			{Library: measure.Yardstick, Entry: measure.CoreToCore},
		}}
		for i, e := range entries {
			us := float64(i+1) * (0.5 + float64(c.Bytes)/1e3)
			r.Rows = append(r.Rows, measure.Row{Library: measure.Library, Entry: e, Calls: 9, P50: us, P99: 3 * us, BusBW: float64(c.Bytes) / us / 1e3})
		}
		r.Rows = append(r.Rows, measure.Row{Library: measure.Library, Entry: "refused", Refused: "for tests"})
		d.Results = append(d.Results, r)
	}
	for _, ranks := range []int{2, 4} {
		for bytes := 4; bytes <= 1<<20; bytes *= 4 {
			add(measure.Case{Collective: "all_reduce", DType: "float32", Op: "sum", Ranks: ranks, Bytes: bytes, InPlace: true}, "a & co", "b")
		}
	}
	add(measure.Case{Collective: "broadcast", DType: "float32", Ranks: 8, Bytes: 64, InPlace: true}, "alone")
	add(measure.Case{Collective: "barrier", Ranks: 2}, "")
	return d
}

// texts returns how often each text stands in a picture, which is XML.
func texts(t *testing.T, picture string) map[string]int {
	t.Helper()
	all := map[string]int{}
	decoder := xml.NewDecoder(strings.NewReader(picture))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		if text, ok := token.(xml.CharData); ok {
			all[string(text)]++
		}
	}
}

// The picture names the machine, the configuration, and all that was measured; a row of panels stands below the other, and
// the last one is over the ranks.
func TestSVG(t *testing.T) {
	picture, err := SVG(documented())
	require.NoError(t, err)
	found := texts(t, picture)
	for text, times := range map[string]int{
		"a < b; 2 cores, GOMAXPROCS 2; linux/amd64; go1.26":                                  1,
		"configuration ccl.yaml (working directory), 2026-01-02 03:04:05 UTC, revision 0a1b": 1,
		"all_reduce of float32 by sum, in place, 2 ranks":                                    1,
		"all_reduce of float32 by sum, in place, 4 ranks":                                    1,
		"all_reduce of float32 by sum, in place: over ranks":                                 1,
		"broadcast of float32 from rank 0, 8 ranks":                                          1,
		"a & co": 3, "b": 3, "alone": 1, "own copy": 4, "barrier, off scale": 4,
		"refused": 0, "core to core": 0, "ranks": 2,
		"time": 3, "bus bandwidth, GB/s": 3, "time of 4 bytes": 1, "bus bandwidth of 1MiB, GB/s": 1, "1MiB": 4, "100 µs": 2,
	} {
		require.Equal(t, times, found[text], text)
	}
	again, err := SVG(documented())
	require.NoError(t, err)
	require.Equal(t, picture, again, "the same every time")
	require.NotContains(t, picture, "NaN")
	require.NotContains(t, picture, "Inf")

	picture, err = Across(documented())
	require.NoError(t, err)
	found = texts(t, picture)
	require.Equal(t, 1, found["all_reduce of float32 by sum, in place: over ranks"])
	require.Zero(t, found["bytes of one rank's input"])
}

// The scales are those of the algorithms, whatever a yardstick or a far tail is.
func TestScales(t *testing.T) {
	d := documented()
	for i := range d.Results {
		rows := d.Results[i].Rows
		rows[0].P50, rows[0].BusBW = 1e-3, 1e6
		if len(rows) > 4 {
			rows[4].P99 = 1e9
		}
	}
	for _, r := range rows(d)[:2] {
		drawn := r.draw()
		require.Len(t, drawn.panels, 2)
		least, most := math.Log10(0.5), math.Log10(2*1048.576)
		times, bandwidths := drawn.panels[0], drawn.panels[1]
		require.InDelta(t, least, times.low, 0.2)
		require.InDelta(t, most+(most-least)/2, times.high, 0.3)
		require.InDelta(t, 1, bandwidths.high, 0.1)
		require.Zero(t, bandwidths.low)
		require.NotEmpty(t, drawn.legend)
	}
}

// What varies beside the length has panels of its own; what does not depend on it is the same at all places.
func TestAxes(t *testing.T) {
	d := &measure.Document{}
	for _, topology := range []string{"ring_1d", "torus_2d:2x1"} {
		for _, bytes := range []int{64, 4096} {
			r := measure.Result{Case: measure.Case{Collective: "all_reduce", DType: "float32", Op: "sum", Ranks: 2, Bytes: bytes}, Transport: "local", Topology: topology}
			for i, params := range []string{"chunk=1KiB on=true", "chunk=2KiB on=true", ""} {
				r.Rows = append(r.Rows, measure.Row{Library: measure.Library, Entry: "e", Params: params, Calls: 1, P50: float64(bytes + i), P99: 1e5, BusBW: 1})
			}
			d.Results = append(d.Results, r)
		}
	}
	type shape struct {
		heading, axis string
		places        string
		lines         []string
	}
	var got []shape
	for _, r := range rows(d) {
		s := shape{heading: r.heading, axis: r.axis, places: strings.Join(r.values, " ")}
		for _, l := range r.lines {
			s.lines = append(s.lines, fmt.Sprintf("%s %d", l.name, len(l.points)))
		}
		got = append(got, s)
	}
	const heading = "all_reduce of float32 by sum, out of place, 2 ranks over local"
	lengths := []string{"e chunk=1KiB on=true 2", "e chunk=2KiB on=true 2", "e 2"}
	chunks := []string{"e on=true 4", "e 4"} // two places of two lengths
	require.Equal(t, []shape{
		{heading, "bytes of one rank's input", "", lengths},
		{heading + ": over chunk", "chunk", "1KiB 2KiB", chunks},
		{heading + ", torus_2d:2x1", "bytes of one rank's input", "", lengths},
		{heading + ", torus_2d:2x1: over chunk", "chunk", "1KiB 2KiB", chunks},
		{heading + ": over topology", "topology", "ring_1d torus_2d:2x1", []string{"e chunk=1KiB on=true 4", "e chunk=2KiB on=true 4", "e 4"}},
	}, got)

	d.Results = []measure.Result{d.Results[1]}
	require.Len(t, rows(d), 1, "of one length, there are panels over the chunk only")
	d.Results[0].Rows = d.Results[0].Rows[2:]
	require.Equal(t, "bytes of one rank's input", rows(d)[0].axis, "if nothing varies, the point is drawn")
}

// Barriers have no length, and are drawn over the ranks.
func TestBarriers(t *testing.T) {
	d := &measure.Document{}
	for _, ranks := range []int{2, 3} {
		d.Results = append(d.Results, measure.Result{Case: measure.Case{Collective: "barrier", Ranks: ranks}, Rows: []measure.Row{{Library: measure.Library, Calls: 9, P50: float64(ranks), P99: 5}}})
	}
	all := rows(d)
	require.Len(t, all, 1)
	require.Len(t, all[0].draw().panels, 1, "they have no bandwidth")
	picture, err := SVG(d)
	require.NoError(t, err)
	require.Equal(t, 1, texts(t, picture)["time"])
}

func TestSave(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.svg")
	require.NoError(t, Save(path, documented()))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	want, err := SVG(documented())
	require.NoError(t, err)
	require.Equal(t, want, string(text))

	d := documented()
	d.Results = d.Results[len(d.Results)-1:]
	require.ErrorContains(t, Save(path, d), "nothing to draw")
	require.ErrorContains(t, Save(path, &measure.Document{}), "nothing to draw")
	require.ErrorIs(t, Save(filepath.Join(dir, "missing", "a.svg"), documented()), os.ErrNotExist)
}

// All algorithms look different.
func TestLooks(t *testing.T) {
	seen := map[look]bool{}
	for i := range len(colors) * len(marks) {
		k := algorithmLook(i)
		require.False(t, seen[k], i)
		seen[k] = true
	}
}

func TestTicks(t *testing.T) {
	for _, m := range [][2]float64{{2, 26}, {2, 3}, {5.5, 6.5}, {0, 40}, {12, 20}} {
		names := 0
		for _, tick := range lengthTicks(m[0], m[1]) {
			require.True(t, m[0] <= tick.at && tick.at <= m[1])
			if tick.name != "" {
				names++
			}
		}
		require.True(t, 1 <= names && names <= 8, "%v: %d", m, names)
	}
	for _, m := range [][2]float64{{-1.5, 4.7}, {0.35, 0.8}, {2, 3}} {
		names := 0
		for _, tick := range timeTicks(m[0], m[1]) {
			require.True(t, m[0] <= tick.at && tick.at <= m[1])
			if tick.name != "" {
				names++
			}
		}
		require.True(t, 1 <= names && names <= 9, "%v: %d", m, names)
	}
	for _, high := range []float64{0.0131, 0.9, 1, 1.05, 2.9, 40, 999} {
		ticks := plainTicks(0, high)
		require.True(t, 3 <= len(ticks) && len(ticks) <= 8, "%v: %v", high, ticks)
		require.Zero(t, ticks[0].at)
		require.LessOrEqual(t, ticks[len(ticks)-1].at, high)
	}
	for us, want := range map[float64]string{0.05: "50 ns", 1: "1 µs", 200: "200 µs", 1000: "1 ms", math.Pow(10, 6): "1 s", 2e7: "20 s"} {
		require.Equal(t, want, timeText(us))
	}
}
