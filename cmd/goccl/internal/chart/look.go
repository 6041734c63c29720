package chart

import (
	"fmt"

	"github.com/goccl/goccl/cmd/goccl/internal/measure"
	"github.com/goccl/goccl/cmd/goccl/internal/svg"
)

type look struct {
	color  string
	stroke string // width and dashes, as attributes
	mark   string // the path of a mark around its centre; "": none
	hollow bool   // the mark is not filled
}

var yardsticks = map[string]struct {
	name string
	look look
}{
	measure.OwnCopy:    {"own copy", look{color: "#787878", stroke: `stroke-width="1.6" stroke-dasharray="7 4"`}},
	measure.PeerCopy:   {"peer copy", look{color: "#787878", stroke: `stroke-width="1.6"`}},
	measure.Floor:      {"floor", look{color: "#787878", stroke: `stroke-width="0.8" stroke-dasharray="7 4"`}},
	measure.Barrier:    {"barrier", look{color: "#787878", stroke: `stroke-width="1.6" stroke-dasharray="1 3"`}},
	measure.CoreToCore: {"core to core", look{color: "#787878", stroke: `stroke-width="0.8" stroke-dasharray="1 3"`}},
}

var (
	// Blue, vermilion, bluish green, reddish purple, orange, sky blue, black.
	colors = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"}
	// Circle, square, triangle, cross, ring, box, triangle, plus.
	marks = []look{
		{mark: "m-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0"},
		{mark: "m-3.5,-3.5h7v7h-7z"},
		{mark: "m-4,3h8l-4,-7z"},
		{mark: "m-3.5,-3.5l7,7m0,-7l-7,7", hollow: true},
		{mark: "m-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0", hollow: true},
		{mark: "m-3.5,-3.5h7v7h-7z", hollow: true},
		{mark: "m-4,3h8l-4,-7z", hollow: true},
		{mark: "m-4,0h8m-4,-4v8", hollow: true},
	}
)

// algorithmLook returns the look of the i-th algorithm. The numbers of colours and marks are
// coprime, so dozens of looks differ.
func algorithmLook(i int) look {
	k := marks[i%len(marks)]
	k.color, k.stroke = colors[i%len(colors)], `stroke-width="2"`
	return k
}

// draw draws a line through points of the picture, and its marks. A single point needs a mark to be
// visible.
func (k look) draw(p *svg.Picture, points []xy) {
	p.Add(`<path d="%s" fill="none" stroke="%s" %s/>`, path(points), k.color, k.stroke)
	if k.mark == "" && len(points) == 1 {
		k.mark, k.hollow = marks[len(marks)-1].mark, true
	}
	if k.mark == "" {
		return
	}
	fill := k.color
	if k.hollow {
		fill = "none"
	}

	for _, at := range points {
		p.Add(`<path d="M%.1f,%.1f%s" fill="%s" stroke="%s"/>`, at.x, at.y, k.mark, fill, k.color)
	}
}

func path(points []xy) (d string) {
	for i, at := range points {
		d += fmt.Sprintf("%c%.1f,%.1f", "ML"[min(i, 1)], at.x, at.y)
	}
	return d
}
