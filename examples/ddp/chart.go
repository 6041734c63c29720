package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/guptarohit/asciigraph"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// curve is the training loss of a run over its training time: before the
// first step and after every epoch.
type curve struct {
	name    string
	seconds []float64 // ascending, from 0
	loss    []float64 // in nats
}

// lossFloor is the lower end of the logarithmic scale: a loss may round to 0.
const lossFloor = 1e-6

func newCurve(name string, first float32, epochs []epoch) curve {
	c := curve{name, []float64{0}, []float64{max(lossFloor, float64(first))}}
	elapsed := 0.0
	for _, e := range epochs {
		elapsed += e.elapsed.Seconds()
		c.seconds = append(c.seconds, elapsed)
		c.loss = append(c.loss, max(lossFloor, e.loss))
	}
	return c
}

// at returns the loss at a time, interpolated linearly on the logarithmic scale,
// and NaN after the end of the run.
func (c curve) at(seconds float64) float64 {
	for i := 1; i < len(c.seconds); i++ {
		t0, t1 := c.seconds[i-1], c.seconds[i]
		if seconds <= t1 {
			share := (seconds - t0) / (t1 - t0)
			return c.loss[i-1] * math.Pow(c.loss[i]/c.loss[i-1], share)
		}
	}
	return math.NaN()
}

// sketch draws the curves in characters, within 80 columns: the first dotted,
// the others as lines, in colours if the terminal has them.
func sketch(curves []curve, colours bool) string {
	const columns = 64
	slowest := 0.0
	for _, c := range curves {
		slowest = max(slowest, c.seconds[len(c.seconds)-1])
	}
	rows := make([][]float64, len(curves))
	legend := []string{"··· " + curves[0].name}
	for i, c := range curves {
		if i > 0 {
			legend = append(legend, "─── "+c.name)
		}
		for x := range columns {
			rows[i] = append(rows[i], math.Log10(c.at(slowest*float64(x)/(columns-1))))
		}
	}
	options := []asciigraph.Option{
		asciigraph.Height(12),
		asciigraph.XAxisRange(0, slowest),
		asciigraph.XAxisValueFormatter(func(s float64) string { return fmt.Sprintf("%.2f s", s) }),
		asciigraph.YAxisValueFormatter(func(v float64) string { return fmt.Sprintf("%.3g", math.Pow(10, v)) }),
		asciigraph.SeriesChars(asciigraph.CreateCharSet("·")),
		asciigraph.Caption("training loss (nats) over training time: " + strings.Join(legend, ", ")),
	}
	if colours {
		options = append(options, asciigraph.SeriesColors(asciigraph.Yellow, asciigraph.Cyan))
	}
	return asciigraph.PlotMany(rows, options...)
}

// savePlot draws the curves into a PNG file.
func savePlot(curves []curve, path string) error {
	p := plot.New()
	p.Title.Text = "The same training on more ranks"
	p.X.Label.Text = "training time (s)"
	p.Y.Label.Text = "training loss (nats)"
	p.Y.Scale = plot.LogScale{}
	p.Y.Tick.Marker = plot.LogTicks{Prec: -1}
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	for i, c := range curves {
		points := make(plotter.XYs, len(c.loss))
		for j := range points {
			points[j].X, points[j].Y = c.seconds[j], c.loss[j]
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return err
		}
		line.Color, dots.Color, dots.Shape = plotutil.Color(i), plotutil.Color(i), plotutil.Shape(i)
		p.Add(line, dots)
		p.Legend.Add(c.name, line, dots)
	}
	return p.Save(16*vg.Centimeter, 10*vg.Centimeter, path)
}
