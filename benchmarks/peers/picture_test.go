package main

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"testing"

	"github.com/stretchr/testify/require"
)

func drawn(t *testing.T, rows []row) image.Image {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, drawPicture(&file, rows, "a machine"))
	picture, err := png.Decode(&file)
	require.NoError(t, err)
	return picture
}

// pixels counts the pixels in the contestant's colour.
func pixels(picture image.Image, c contestant) (n int) {
	line, _ := c.style()
	want := color.RGBAModel.Convert(line.Color).(color.RGBA)
	for x := range picture.Bounds().Dx() {
		for y := range picture.Bounds().Dy() {
			r, g, b, _ := picture.At(x, y).RGBA()
			if uint8(r>>8) == want.R && uint8(g>>8) == want.G && uint8(b>>8) == want.B {
				n++
			}
		}
	}
	return n
}

// The picture has a panel for each number of ranks, and every contestant is visible.
func TestPicture(t *testing.T) {
	var rows []row
	for _, ranks := range []int{2, 4, 8} {
		for _, size := range []int{0, 4, 1 << 10, 1 << 20} {
			for i, c := range []contestant{goroutines, ours, alloc, {"openmpi", "default"}, {"openmpi", "eager"}, {"mpich", "default"}, {"gloo", "default"}} {
				rows = append(rows, row{contestant: c, ranks: ranks, bytes: size, p50: float64(i+1) + float64(size)/1e3})
			}
		}
	}
	three := drawn(t, rows)
	for _, c := range contestants(rows) {
		require.NotZero(t, styles[c.library], c)
		require.Greater(t, pixels(three, c), 50, c)
	}
	two, one := drawn(t, rows[:len(rows)*2/3]), drawn(t, rows[:len(rows)/3])
	require.Greater(t, three.Bounds().Dx(), two.Bounds().Dx()+200)
	require.Equal(t, two.Bounds().Dx(), one.Bounds().Dx(), "the head needs its room")

	// A peer that failed with 8 ranks is missing in that panel, and one size is drawn as a dot.
	drawn(t, rows[:len(rows)-1])
	drawn(t, []row{{contestant: ours, ranks: 2, bytes: 4, p50: 1}})

	require.ErrorContains(t, drawPicture(&bytes.Buffer{}, rows[:4], ""), "nothing to draw")
}

func TestTicks(t *testing.T) {
	var labels []string
	for _, tick := range append(sizeTicks(4, 64<<20), timeTicks(0.1, 1e6)...) {
		if tick.Label != "" {
			labels = append(labels, tick.Label)
		}
	}
	require.Equal(t, []string{"4 B", "256 B", "16 KiB", "1 MiB", "64 MiB",
		"0.1 µs", "1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s"}, labels)
}
