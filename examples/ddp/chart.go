package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/guptarohit/asciigraph"
	"golang.org/x/term"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// curve returns the training loss of a run, in nats, over its training time, in seconds: before
// the first step and after every epoch.
func curve(r *run) plotter.XYs {
	const floor = 1e-6 // of the logarithmic scale: a loss may round to 0
	points := plotter.XYs{{X: 0, Y: max(floor, r.epochs[0].losses[0])}}
	var elapsed time.Duration
	for _, e := range r.epochs {
		elapsed += e.elapsed
		points = append(points, plotter.XY{X: elapsed.Seconds(), Y: max(floor, e.loss)})
	}
	return points
}

// at returns the logarithm of the loss at a time, interpolated linearly, and NaN after the end of
// the curve.
func at(curve plotter.XYs, seconds float64) float64 {
	for i, to := range curve[1:] {
		if from := curve[i]; seconds <= to.X {
			share := (seconds - from.X) / (to.X - from.X)
			return (1-share)*math.Log10(from.Y) + share*math.Log10(to.Y)
		}
	}
	return math.NaN()
}

// sketch draws the curves in characters, within 80 columns: the first dotted, the others as lines,
// in colours if the terminal has them.
func sketch(runs []*run, colours bool) string {
	const columns = 64
	slowest := max(runs[0].total.elapsed, runs[len(runs)-1].total.elapsed).Seconds()
	rows := make([][]float64, len(runs))
	legend := []string{"··· " + plural(runs[0].ranks)}
	for i, r := range runs {
		if i > 0 {
			legend = append(legend, "─── "+plural(r.ranks))
		}
		for points, x := curve(r), 0; x < columns; x++ {
			rows[i] = append(rows[i], at(points, slowest*(float64(x)/(columns-1))))
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

func savePlot(runs []*run, path string) error {
	p := plot.New()
	p.Title.Text = "The same training on more ranks"
	p.X.Label.Text = "training time (s)"
	p.Y.Label.Text = "training loss (nats)"
	p.Y.Scale = plot.LogScale{}
	p.Y.Tick.Marker = plot.LogTicks{Prec: -1}
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	var lines []any
	for _, r := range runs {
		lines = append(lines, plural(r.ranks), curve(r))
	}

	if err := plotutil.AddLinePoints(p, lines...); err != nil {
		return err
	}
	return p.Save(16*vg.Centimeter, 10*vg.Centimeter, path)
}

func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
