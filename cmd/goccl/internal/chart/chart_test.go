package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/cmd/goccl/internal/measure"
)

// results has two sections of several lengths, with algorithms a and b, one of a
// single length, and a barrier.
func results() (all []measure.Result) {
	add := func(c measure.Case, entries ...string) {
		r := measure.Result{Case: c, Rows: []measure.Row{
			{Library: measure.Yardstick, Entry: measure.OwnCopy, Calls: 9, P50: 1 + float64(c.Bytes)/1e4, BusBW: 10},
			{Library: measure.Yardstick, Entry: measure.Barrier, Calls: 9, P50: 0.2},
			{Library: measure.Yardstick, Entry: measure.CoreToCore},
		}}
		for i, e := range entries {
			us := float64(i+1) * (0.5 + float64(c.Bytes)/1e3)
			r.Rows = append(r.Rows, measure.Row{Library: measure.Library, Entry: e, Calls: 9, P50: us, BusBW: float64(c.Bytes) / us / 1e3})
		}
		r.Rows = append(r.Rows, measure.Row{Library: measure.Library, Entry: "refused", Refused: "for tests"})
		all = append(all, r)
	}
	for _, ranks := range []int{2, 4} {
		for bytes := 4; bytes <= 1<<20; bytes *= 4 {
			add(measure.Case{Collective: "all_reduce", DType: "float32", Op: "sum", Ranks: ranks, Bytes: bytes, InPlace: true}, "a & co", "b")
		}
	}
	add(measure.Case{Collective: "broadcast", DType: "float32", Ranks: 8, Bytes: 64, InPlace: true}, "alone")
	add(measure.Case{Collective: "barrier", Ranks: 2}, "")
	return all
}

// The picture is XML, and names all that was measured; a row of panels stands below
// the other.
func TestSVG(t *testing.T) {
	picture, err := SVG(results())
	require.NoError(t, err)
	texts := map[string]int{}
	decoder := xml.NewDecoder(bytes.NewReader(picture))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if text, ok := token.(xml.CharData); ok {
			texts[string(text)]++
		}
	}
	for text, times := range map[string]int{
		"all_reduce of float32 by sum, in place, 2 ranks": 1,
		"all_reduce of float32 by sum, in place, 4 ranks": 1,
		"broadcast of float32 from rank 0, 8 ranks":       1,
		"a & co": 2, "b": 2, "alone": 1, "own copy": 3, "barrier": 3,
		"refused": 0, "core to core, one way": 0,
		"median time": 3, "bus bandwidth (GB/s)": 3, "1MiB": 4, "10 µs": 2,
	} {
		require.Equal(t, times, texts[text], text)
	}
	again, err := SVG(results())
	require.NoError(t, err)
	require.Equal(t, string(picture), string(again), "the same every time")
	require.NotContains(t, string(picture), "NaN")
	require.NotContains(t, string(picture), "Inf")
}

func TestSave(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.png")
	require.NoError(t, Save(path, results()[:3]))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	picture, err := png.Decode(bytes.NewReader(text))
	require.NoError(t, err)
	require.InDelta(t, float64(width/rowHeight), float64(picture.Bounds().Dx())/float64(picture.Bounds().Dy()), 0.01)

	path = filepath.Join(dir, "a.svg")
	require.NoError(t, Save(path, results()))
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	want, err := SVG(results())
	require.NoError(t, err)
	require.Equal(t, string(want), string(text))

	all := results()
	require.ErrorContains(t, Save(path, all[len(all)-1:]), "nothing to draw")
	require.ErrorContains(t, Save(path, nil), "nothing to draw")
	require.ErrorIs(t, Save(filepath.Join(dir, "missing", "a.svg"), results()), os.ErrNotExist)
}

// All algorithms look different.
func TestLooks(t *testing.T) {
	type pair struct{ color, mark any }
	seen := map[pair]bool{}
	for i := range len(colors) * len(marks) {
		k := algorithmLook(i)
		require.False(t, seen[pair{k.color, k.mark}], i)
		seen[pair{k.color, k.mark}] = true
	}
}

func TestTicks(t *testing.T) {
	for _, m := range [][2]float64{{2, 26}, {2, 3}, {5.5, 6.5}, {0, 40}, {12, 20}} {
		names := 0
		for _, tick := range (lengths{}).Ticks(m[0], m[1]) {
			require.True(t, m[0] <= tick.Value && tick.Value <= m[1])
			if tick.Label != "" {
				names++
			}
		}
		require.True(t, 1 <= names && names <= 8, "%v: %d", m, names)
	}
	for _, m := range [][2]float64{{-1.5, 4.7}, {0.35, 0.8}, {2, 3}} {
		names := 0
		for _, tick := range (times{}).Ticks(m[0], m[1]) {
			require.True(t, m[0] <= tick.Value && tick.Value <= m[1])
			if tick.Label != "" {
				names++
			}
		}
		require.True(t, 1 <= names && names <= 9, "%v: %d", m, names)
	}
	for us, want := range map[float64]string{0.05: "50 ns", 1: "1 µs", 200: "200 µs", 1000: "1 ms", math.Pow(10, 6): "1 s", 2e7: "20 s"} {
		require.Equal(t, want, timeText(us))
	}
}
