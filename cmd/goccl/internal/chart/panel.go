package chart

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// drawnRow is a row that is ready to be drawn.
type drawnRow struct {
	heading    string
	panels     []*plot.Plot
	legend     plot.Legend
	legendSize vg.Point
}

// height is the height of the panels, and at least that of the legend.
func (d *drawnRow) height() vg.Length { return max(panelHeight, d.legendSize.Y) }

// quantity is what a panel shows of the points.
type quantity struct {
	label  string
	ticks  plot.Ticker
	bytes  int // of the points to show; -1: all
	median func(point) (y float64, there bool)
	tail   func(point) float64 // the end of the band at the 99th percentile; nil: no bands
	// scale returns the ends of the axis for algorithms whose medians reach from low to high, and
	// whose bands reach to tail.
	scale func(low, high, tail float64) (float64, float64)
}

// draw draws the panels and the legend of a row. Times are on a logarithmic scale, as base-10
// logarithms: gonum's logarithmic axes leave empty space beside a long label.
func (r *row) draw() (*drawnRow, error) {
	quantities := []quantity{{
		label: "time" + of(r.shortest), ticks: times{}, bytes: r.shortest,
		median: func(p point) (float64, bool) { return math.Log10(p.P50), p.P50 > 0 },
		tail:   func(p point) float64 { return math.Log10(max(p.P50, p.P99)) },
		scale: func(low, high, tail float64) (float64, float64) { // a far tail must not squeeze the medians
			return low - 0.1, min(tail, high+max(0.5, (high-low)/2)) + 0.1
		},
	}, {
		label: "bus bandwidth" + of(r.longest) + ", GB/s", ticks: plain{}, bytes: r.longest,
		median: func(p point) (float64, bool) { return p.BusBW, p.BusBW > 0 },
		scale:  func(_, high, _ float64) (float64, float64) { return 0, high * 1.05 },
	}}
	d := &drawnRow{heading: r.heading, legend: plot.NewLegend()}
	d.legend.Top, d.legend.Left, d.legend.Padding = true, true, vg.Millimeter/2
	setFont(&d.legend.TextStyle.Font, 10)
	seen := map[*line]bool{}

	for _, q := range quantities {
		p, err := r.panel(q, seen)
		if err != nil {
			return nil, err
		}
		if p != nil {
			d.panels = append(d.panels, p)
		}
	}

	for i, l := range r.algorithmsFirst() {
		name := l.name
		if !seen[l] {
			name += ", off scale"
		}
		l.look(i).addLegend(&d.legend, name)
	}
	d.legendSize = d.legend.Rectangle(draw.Canvas{}).Size()
	d.legendSize.X *= 1.15 // another font can be wider
	return d, nil
}

// algorithmsFirst returns the lines in the order of the legend.
func (r *row) algorithmsFirst() (all []*line) {
	for _, l := range r.lines {
		if l.yardstick == "" {
			all = append(all, l)
		}
	}
	for _, l := range r.lines {
		if l.yardstick != "" {
			all = append(all, l)
		}
	}
	return all
}

// look returns the look of the i-th line.
func (l *line) look(i int) look {
	if l.yardstick != "" {
		return yardsticks[l.yardstick]
	}
	return algorithmLook(i)
}

// panel returns the panel of a quantity, and adds the lines that it shows to seen; nil if there is
// nothing to show.
func (r *row) panel(q quantity, seen map[*line]bool) (*plot.Plot, error) {
	p, all := r.axes(q), r.algorithmsFirst()
	medians, tails := make([]plotter.XYs, len(all)), make([]plotter.XYs, len(all))
	low, high, tail, algorithms := math.Inf(1), math.Inf(-1), math.Inf(-1), 0

	for i, l := range all {
		for _, at := range l.points {
			y, there := q.median(at)
			if !there || q.bytes >= 0 && at.bytes != q.bytes {
				continue
			}
			end := y
			if q.tail != nil {
				end = q.tail(at)
			}

			medians[i], tails[i] = append(medians[i], plotter.XY{X: at.x, Y: y}), append(tails[i], plotter.XY{X: at.x, Y: end})
			if l.yardstick == "" {
				low, high, tail = min(low, y), max(high, y), max(tail, end)
			}
		}
		if l.yardstick == "" && len(medians[i]) > 0 {
			algorithms++
		}
	}
	if algorithms == 0 {
		return nil, nil
	}

	low, high = q.scale(low, high, tail)
	for i, l := range all {
		if q.tail != nil && l.yardstick == "" && len(medians[i]) > 1 {
			if err := l.look(i).addBand(p, medians[i], tails[i], algorithms); err != nil {
				return nil, fmt.Errorf("%s: %w", r.heading, err)
			}
		}
	}
	for i, l := range slices.Backward(all) { // the algorithms above the yardsticks
		if len(medians[i]) > 0 {
			seen[l] = seen[l] || crosses(medians[i], low, high)
			if err := l.look(i).add(p, medians[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", r.heading, err)
			}
		}
	}
	p.Y.Min, p.Y.Max = low, high // whatever has been added
	p.X.Min -= 0.2               // room for the marks
	p.X.Max += 0.2
	return p, nil
}

// crosses reports whether any part of a line is between two heights.
func crosses(points plotter.XYs, low, high float64) bool {
	for i, p := range points {
		if low <= p.Y && p.Y <= high || i > 0 && (p.Y < low) != (points[i-1].Y < low) {
			return true
		}
	}
	return false
}

// axes returns an empty panel.
func (r *row) axes(q quantity) *plot.Plot {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = r.axis, q.label
	p.X.Tick.Marker, p.Y.Tick.Marker = lengths{}, q.ticks
	if r.values != nil {
		p.X.Tick.Marker = names(r.values)
	}

	for f, points := range map[*font.Font]float64{
		&p.X.Label.TextStyle.Font: 10, &p.Y.Label.TextStyle.Font: 10, &p.X.Tick.Label.Font: smallSize, &p.Y.Tick.Label.Font: smallSize,
	} {
		setFont(f, points)
	}
	p.X.Padding, p.Y.Padding = 0, 0
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = lightGrey, lightGrey
	grid.Vertical.Dashes, grid.Horizontal.Dashes = nil, nil
	p.Add(grid)
	return p
}
