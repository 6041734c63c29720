package chart

import (
	"fmt"

	"github.com/goccl/goccl/cmd/goccl/internal/measure"
	"github.com/goccl/goccl/cmd/goccl/internal/svg"
)

// steps is a row of two panels for workloads with the same ranks and the same kind of backward: the
// parts of a step on the left, and communication without backward on the right.
type steps struct {
	heading string
	results []measure.Result // of a workload each
}

// workloads returns the rows of panels of a document's workloads.
func workloads(d *measure.Document) (all []*steps) {
	withoutName := func(r measure.Result) measure.Section {
		s := r.Section()
		s.Collective = ""
		return s
	}
	for _, group := range split(d.Results, withoutName) {
		if first := group[0]; measure.IsWorkload(first.Collective) {
			all = append(all, &steps{fmt.Sprintf("%s, %d ranks%s", first.Pace(), first.Ranks, d.Location(first)), group})
		}
	}
	return all
}

// bar is one of the two bars that stand side by side at each workload, on another one if it has a
// base.
type bar struct {
	name, color string
	base, value func(measure.Result) float64 // nil base: 0
}

func (s *steps) draw() drawnRow {
	alone := func(r measure.Result) float64 { return r.Yardstick(measure.Backward).P50 / 1e3 }
	added := func(entry string) func(measure.Result) float64 {
		return func(r measure.Result) float64 { return max(0, r.Row(entry).Added) / 1e3 }
	}
	ratio := func(entry string) func(measure.Result) float64 {
		return func(r measure.Result) float64 { return r.Row(entry).XFloor }
	}

	parts := []bar{{"all at the end", colors[1], alone, added(measure.AtEnd)}, {"overlapped", colors[0], alone, added(measure.Overlapped)}}
	communication := []bar{{"views", colors[2], nil, ratio(measure.Views)}, {"copies", colors[4], nil, ratio(measure.Copies)}}
	d := drawnRow{heading: s.heading, panels: []*panel{s.panel("a step, ms", parts), s.panel("communication alone / one all-reduce", communication)}}
	for _, b := range append([]bar{{"backward", baseColor, nil, nil}}, append(parts, communication...)...) {
		d.legend = append(d.legend, legendEntry{b.name, func(p *svg.Picture, x, y float64) {
			p.Add(`<rect x="%.1f" y="%.1f" width="24" height="12" fill="%s"/>`, x, y-6, b.color)
		}})
	}
	return d
}

const baseColor = "#dcdcdc"

// panel returns a panel with two bars at each workload.
func (s *steps) panel(label string, bars []bar) *panel {
	a := &panel{label: label, xLow: -0.5, xHigh: float64(len(s.results)) - 0.5, hasNoColumns: true}
	const width = 0.3
	for i, r := range s.results {
		a.xTicks = append(a.xTicks, tick{float64(i), r.Collective})

		for k, b := range bars {
			base := 0.0
			if b.base != nil {
				base = b.base(r)
			}

			top := base + b.value(r)
			a.high = max(a.high, 1.05*top)
			a.draws = append(a.draws, func(p *svg.Picture, to func(xy) xy) {
				x := float64(i) + width*float64(k-1)
				drawBar(p, to(xy{x, base}), to(xy{x + width, 0}), baseColor)
				drawBar(p, to(xy{x, top}), to(xy{x + width, base}), b.color)
			})
		}
	}
	a.yTicks = plainTicks(0, a.high)
	return a
}

// drawBar draws a bar between two corners.
func drawBar(p *svg.Picture, from, to xy, color string) {
	p.Add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, from.x, from.y, to.x-from.x, to.y-from.y, color)
}
