package chart

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/goccl/goccl/cmd/goccl/internal/measure"
)

// steps is a row of two panels for workloads with the same ranks and the same kind of backward: the
// parts of a step on the left, and communication without backward on the right.
type steps struct {
	heading string
	results []measure.Result // of a workload each
}

// workloads returns the rows of panels of a document's workloads.
func workloads(d *measure.Document) (all []*steps) {
	alike := func(r measure.Result) measure.Section {
		s := r.Section()
		s.Collective = ""
		return s
	}
	for _, group := range split(d.Results, alike) {
		if first := group[0]; measure.IsWorkload(first.Collective) {
			all = append(all, &steps{fmt.Sprintf("%s, %d ranks%s", first.Pace(), first.Ranks, d.Location(first)), group})
		}
	}
	return all
}

// bar is one of the bars that stand side by side at each workload. The upper part stands on the
// lower.
type bar struct {
	name         string
	color        color.Color
	lower, upper func(measure.Result) float64 // nil lower: 0
}

func (s *steps) draw() (*drawnRow, error) {
	backward := func(r measure.Result) float64 { return r.Yardstick(measure.Backward).P50 / 1e3 }
	added := func(entry string) func(measure.Result) float64 {
		return func(r measure.Result) float64 { return max(0, r.Row(entry).Added) / 1e3 }
	}
	ratio := func(entry string) func(measure.Result) float64 {
		return func(r measure.Result) float64 { return r.Row(entry).XFloor }
	}

	whole, alone := s.panel("a step, ms"), s.panel("communication alone / one all-reduce")
	d := &drawnRow{heading: s.heading, panels: []*plot.Plot{whole, alone}, legend: plot.NewLegend()}
	d.legend.Top, d.legend.Left, d.legend.Padding = true, true, vg.Millimeter/2
	setFont(&d.legend.TextStyle.Font, 10)
	err := s.add(whole, &d.legend,
		bar{"all at the end", colors[1], backward, added(measure.AtEnd)},
		bar{"overlapped", colors[0], backward, added(measure.Overlapped)})

	if err == nil {
		err = s.add(alone, &d.legend,
			bar{"views", colors[2], nil, ratio(measure.Views)},
			bar{"copies", colors[4], nil, ratio(measure.Copies)})
	}
	d.legendSize = d.legend.Rectangle(draw.Canvas{}).Size()
	d.legendSize.X *= 1.15 // another font can be wider
	return d, err
}

// panel returns a panel without bars.
func (s *steps) panel(label string) *plot.Plot {
	p := plot.New()
	p.Y.Label.Text = label
	p.Y.Min, p.Y.Tick.Marker = 0, plain{}
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		setFont(&axis.Label.TextStyle.Font, 10)
		setFont(&axis.Tick.Label.Font, smallSize)
	}

	var names []string
	for _, r := range s.results {
		names = append(names, r.Collective)
	}
	p.NominalX(names...)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = nil, lightGrey
	p.Add(grid)
	return p
}

// add adds two bars to each workload of a panel.
func (s *steps) add(p *plot.Plot, legend *plot.Legend, two ...bar) error {
	width := panelWidth / vg.Length(4*max(2, len(s.results)))
	values := func(of func(measure.Result) float64) (all plotter.Values) {
		for _, r := range s.results {
			all = append(all, of(r))
		}
		return all
	}

	for i, b := range two {
		upper, err := plotter.NewBarChart(values(b.upper), width)
		if err != nil {
			return err
		}

		upper.Color, upper.Offset, upper.LineStyle.Width = b.color, width*(vg.Length(i)-0.5), 0
		if b.lower != nil {
			lower, err := plotter.NewBarChart(values(b.lower), width)
			if err != nil {
				return err
			}

			lower.Color, lower.Offset, lower.LineStyle.Width = lightGrey, upper.Offset, 0
			upper.StackOn(lower)
			p.Add(lower)
			if i == 0 {
				legend.Add("backward", lower)
			}
		}
		p.Add(upper)
		legend.Add(b.name, upper)
	}
	return nil
}
