package timeline

import (
	"time"

	"github.com/goccl/goccl/cmd/goccl/internal/svg"
)

// Measures of the picture, in pixels.
const (
	marginX   = 16
	labelX    = 80 // width of the ranks' names
	dataX     = marginX + labelX
	dataWidth = 1000
	barHeight = 14
	titleY    = 24
	topY      = 40
	lineY     = 18 // of a line of text
)

// picture is a picture over the time axis.
type picture struct {
	svg.Picture
	end time.Duration
}

// x returns the position of a time.
func (p *picture) x(t time.Duration) float64 {
	return dataX + dataWidth*float64(t)/float64(p.end)
}

// axis draws the time axis and returns the y below it.
func (p *picture) axis(y int) int {
	const ticks = 5
	for i := range ticks + 1 {
		t := p.end * time.Duration(i) / ticks
		x := p.x(t)
		p.Add(`<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#888"/>`, x, y, x, y+4)
		p.Add(`<text x="%.1f" y="%d" text-anchor="middle" fill="#555">%s</text>`, x, y+lineY, t.Round(rounding(p.end)))
	}
	return y + 2*lineY
}

// rounding returns a hundredth to a thousandth of a time, a power of ten.
func rounding(t time.Duration) time.Duration {
	unit := time.Duration(1)
	for unit*1000 <= t {
		unit *= 10
	}
	return unit
}
