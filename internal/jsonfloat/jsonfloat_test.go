package jsonfloat

import (
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// Values come back as they were, with infinities and NaN where the type has floats; a string of the same letters stays one.
func TestRoundTrip(t *testing.T) {
	type state struct {
		Best float64
		All  []float32
		Name string
	}
	text, err := Encode(state{math.Inf(1), []float32{1.5, float32(math.Inf(-1)), float32(math.NaN())}, "NaN"})
	require.NoError(t, err)
	require.JSONEq(t, `{"Best": "Infinity", "All": [1.5, "-Infinity", "NaN"], "Name": "NaN"}`, string(text))
	read, err := Decode(text, reflect.TypeFor[state]())
	require.NoError(t, err)
	got := read.Interface().(state)
	require.Equal(t, "NaN", got.Name)
	require.True(t, math.IsInf(got.Best, 1) && got.All[0] == 1.5 && math.IsInf(float64(got.All[1]), -1) && got.All[2] != got.All[2], "%v", got)
}
