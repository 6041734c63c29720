package chart

import (
	"math"
	"slices"

	"github.com/goccl/goccl/cmd/goccl/internal/svg"
)

// xy is a point of a panel, or of the picture.
type xy struct{ x, y float64 }

// tick is a mark on an axis; most have a name.
type tick struct {
	at   float64
	name string
}

// panel is a diagram.
type panel struct {
	label, axis  string // of the axes
	xLow, xHigh  float64
	low, high    float64
	xTicks       []tick
	yTicks       []tick
	hasNoColumns bool // no lines stand on the x axis
	draws        []func(p *svg.Picture, to func(xy) xy)
}

// draw draws the panel with its upper left at a position. What its draws draw is cut at its edges.
func (a *panel) draw(p *svg.Picture, x, y, height float64) {
	to := func(v xy) xy {
		return xy{panelWidth * (v.x - a.xLow) / (a.xHigh - a.xLow), height * (1 - (v.y-a.low)/(a.high-a.low))}
	}
	p.Add(`<svg x="%.1f" y="%.1f" width="%d" height="%.1f">`, x, y, panelWidth, height)
	p.Add(`<rect width="100%%" height="100%%" fill="none" stroke="#999"/>`)
	for _, t := range a.xTicks {
		if !a.hasNoColumns {
			p.Add(`<path d="M%.1f,0v%.1f" stroke="#dcdcdc"/>`, to(xy{x: t.at}).x, height)
		}
	}

	for _, t := range a.yTicks {
		p.Add(`<path d="M0,%.1fh%d" stroke="#dcdcdc"/>`, to(xy{y: t.at}).y, panelWidth)
	}
	for _, draw := range a.draws {
		draw(p, to)
	}
	p.Add(`</svg>`)

	for _, t := range a.xTicks {
		if t.name != "" {
			p.Text(x+to(xy{x: t.at}).x, y+height+16, `text-anchor="middle" font-size="11"`, t.name)
		}
	}

	for _, t := range a.yTicks {
		if t.name != "" {
			p.Text(x-5, y+to(xy{y: t.at}).y+4, `text-anchor="end" font-size="11"`, t.name)
		}
	}
	p.Text(x+panelWidth/2, y+height+36, `text-anchor="middle"`, a.axis)
	p.Add(`<g transform="translate(%.1f,%.1f) rotate(-90)">`, x-axisX+12, y+height/2)
	p.Text(0, 0, `text-anchor="middle"`, a.label)
	p.Add(`</g>`)
}

// quantity is what a panel shows of the points.
type quantity struct {
	label  string
	bytes  int // of the points to show; -1: all
	median func(point) (y float64, ok bool)
	tail   func(point) float64 // the end of the band at the 99th percentile; nil: no bands
	// scale returns the ends of the axis for algorithms whose medians reach from low to high, and
	// whose bands reach to tail.
	scale func(low, high, tail float64) (float64, float64)
	ticks func(low, high float64) []tick
}

// draw prepares the panels and the legend of a row. Times are base-10 logarithms.
func (r *row) draw() drawnRow {
	quantities := []quantity{{
		label: "time" + of(r.shortest), ticks: timeTicks, bytes: r.shortest,
		median: func(p point) (float64, bool) { return math.Log10(p.P50), p.P50 > 0 },
		tail:   func(p point) float64 { return math.Log10(max(p.P50, p.P99)) },
		scale: func(low, high, tail float64) (float64, float64) { // a far tail must not squeeze the medians
			return low - 0.1, min(tail, high+max(0.5, (high-low)/2)) + 0.1
		},
	}, {
		label: "bus bandwidth" + of(r.longest) + ", GB/s", ticks: plainTicks, bytes: r.longest,
		median: func(p point) (float64, bool) { return p.BusBW, p.BusBW > 0 },
		scale:  func(_, high, _ float64) (float64, float64) { return 0, high * 1.05 },
	}}
	d := drawnRow{heading: r.heading}
	seen := map[*line]bool{}
	for _, q := range quantities {
		if a := r.panel(q, seen); a != nil {
			d.panels = append(d.panels, a)
		}
	}

	for i, l := range r.algorithmsFirst() {
		name := l.name
		if !seen[l] {
			name += ", off scale"
		}
		d.legend = append(d.legend, legendEntry{name, func(p *svg.Picture, x, y float64) {
			k := l.look(i)
			p.Add(`<path d="M%.1f,%.1fh32" stroke="%s" %s/>`, x, y, k.color, k.stroke)
			if k.mark != "" {
				k.draw(p, []xy{{x + 16, y}})
			}
		}})
	}
	return d
}

// algorithmsFirst returns the lines in the order of the legend.
func (r *row) algorithmsFirst() []*line {
	all := slices.Clone(r.lines)
	slices.SortStableFunc(all, func(a, b *line) int { return min(len(a.yardstick), 1) - min(len(b.yardstick), 1) })
	return all
}

func (l *line) look(i int) look {
	if l.yardstick != "" {
		return yardsticks[l.yardstick].look
	}
	return algorithmLook(i)
}

// panel returns the panel of a quantity, and adds the lines that it shows to seen; nil if there is
// nothing to show.
func (r *row) panel(q quantity, seen map[*line]bool) *panel {
	all := r.algorithmsFirst()
	medians, tails := make([][]xy, len(all)), make([][]xy, len(all))
	a := &panel{label: q.label, axis: r.axis, xLow: math.Inf(1), xHigh: math.Inf(-1)}
	low, high, tail, algorithms := math.Inf(1), math.Inf(-1), math.Inf(-1), 0

	for i, l := range all {
		for _, at := range l.points {
			y, ok := q.median(at)
			if !ok || q.bytes >= 0 && at.bytes != q.bytes {
				continue
			}
			end := y
			if q.tail != nil {
				end = q.tail(at)
			}

			medians[i], tails[i] = append(medians[i], xy{at.x, y}), append(tails[i], xy{at.x, end})
			a.xLow, a.xHigh = min(a.xLow, at.x), max(a.xHigh, at.x)
			if l.yardstick == "" {
				low, high, tail = min(low, y), max(high, y), max(tail, end)
			}
		}
		if l.yardstick == "" && len(medians[i]) > 0 {
			algorithms++
		}
	}

	if algorithms == 0 {
		return nil
	}
	a.low, a.high = q.scale(low, high, tail)
	a.xLow, a.xHigh = a.xLow-0.2, a.xHigh+0.2 // room for the marks
	a.yTicks, a.xTicks = q.ticks(a.low, a.high), lengthTicks(a.xLow, a.xHigh)
	if r.values != nil {
		a.xTicks = nil
		for i, name := range r.values {
			a.xTicks = append(a.xTicks, tick{float64(i), name})
		}
	}

	for i, l := range all {
		if q.tail != nil && l.yardstick == "" && len(medians[i]) > 1 {
			a.draws = append(a.draws, l.look(i).band(medians[i], tails[i], algorithms))
		}
	}
	for i, l := range slices.Backward(all) { // the algorithms above the yardsticks
		if len(medians[i]) > 0 {
			seen[l] = seen[l] || crosses(medians[i], a.low, a.high)
			a.draws = append(a.draws, func(p *svg.Picture, to func(xy) xy) { l.look(i).draw(p, transformed(medians[i], to)) })
		}
	}
	return a
}

// band returns how the space between two lines is filled. The more bands there are, the fainter is
// each, since they overlap.
func (k look) band(from, until []xy, bands int) func(*svg.Picture, func(xy) xy) {
	ring := slices.Clone(until)
	slices.Reverse(ring)
	ring = append(slices.Clone(from), ring...)
	return func(p *svg.Picture, to func(xy) xy) {
		p.Add(`<path d="%sz" fill="%s" fill-opacity="%.2f"/>`, path(transformed(ring, to)), k.color, min(0.16, 0.5/float64(bands)))
	}
}

func transformed(points []xy, to func(xy) xy) (all []xy) {
	for _, v := range points {
		all = append(all, to(v))
	}
	return all
}

// crosses reports whether any part of a line is between two heights.
func crosses(points []xy, low, high float64) bool {
	for i, p := range points {
		if low <= p.y && p.y <= high || i > 0 && (p.y < low) != (points[i-1].y < low) {
			return true
		}
	}
	return false
}
