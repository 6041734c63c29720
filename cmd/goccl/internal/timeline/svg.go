package timeline

import (
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/goccl/goccl/cmd/goccl/internal/inspect"
	"github.com/goccl/goccl/internal/flight"
)

// Measures of the picture, in pixels.
const (
	marginX   = 16
	labelX    = 80 // width of the ranks' names
	dataX     = marginX + labelX
	dataWidth = 1000
	rightX    = 40 // for half of the last label of the axis
	rowHeight = 20
	barHeight = 14
	titleY    = 24
	topY      = 40
	lineY     = 18 // of a line of text
)

// colors are those of the names of calls, in their order; distinct also for the colour-blind.
var colors = []string{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999"}

// SVG draws the calls of all ranks, a row for each rank in each group, with the legend below.
func SVG(w io.Writer, j *inspect.Job) error {
	all, end, timed := rows(j)
	p := picture{end: end, color: map[string]string{}}
	p.chooseColors(all)
	y, group := topY, ""
	for _, r := range all {
		if r.group != group {
			y += lineY
			p.text(marginX, y-6, "bold", r.group)
			group = r.group
		}
		p.text(marginX, y+barHeight-3, "", fmt.Sprintf("rank %d", r.rank))
		p.add(`<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#ddd"/>`, dataX, y+rowHeight-3, dataX+dataWidth, y+rowHeight-3)
		for _, s := range r.spans {
			p.bar(s, y)
		}
		y += rowHeight
	}
	y = p.axis(y, timed)
	y = p.legend(y)
	head := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+
		"\n"+`<rect width="100%%" height="100%%" fill="white"/>`+"\n"+`<text x="%d" y="%d" font-size="15" font-weight="bold">%s</text>`+"\n",
		dataX+dataWidth+rightX, y, marginX, titleY, html.EscapeString(fmt.Sprintf("last calls of job %s, %d ranks", j.Name, j.Size)))
	_, err := io.WriteString(w, head+p.body.String()+"</svg>\n")
	return err
}

type picture struct {
	body  strings.Builder
	end   time.Duration
	names []string
	color map[string]string
}

func (p *picture) add(format string, args ...any) { fmt.Fprintf(&p.body, format+"\n", args...) }

func (p *picture) text(x, y int, weight, text string) {
	if weight != "" {
		weight = ` font-weight="` + weight + `"`
	}
	p.add(`<text x="%d" y="%d"%s>%s</text>`, x, y, weight, html.EscapeString(text))
}

// chooseColors gives each name of a call a color, in the order of the names.
func (p *picture) chooseColors(all []row) {
	for _, r := range all {
		for _, s := range r.spans {
			p.names = append(p.names, s.name)
		}
	}
	slices.Sort(p.names)
	p.names = slices.Compact(p.names)
	for i, name := range p.names {
		p.color[name] = colors[i%len(colors)]
	}
}

// x returns the position of a time.
func (p *picture) x(t time.Duration) float64 {
	return dataX + dataWidth*float64(t)/float64(p.end)
}

// bar draws a call: filled if it has ended, an outline if not, red-edged if it has failed, pale if it has no times.
func (p *picture) bar(s span, y int) {
	from, to := p.x(s.from), p.x(s.to)
	p.add(`<rect x="%.1f" y="%d" width="%.1f" height="%d" %s><title>%s</title></rect>`,
		from, y, max(to-from-1, 1.5), barHeight, p.look(s), html.EscapeString(s.text))
}

func (p *picture) look(s span) string {
	color := p.color[s.name]
	look := fmt.Sprintf(`fill="%s" stroke="%s"`, color, color)
	switch {
	case s.unfinished:
		look = fmt.Sprintf(`fill="white" stroke="%s" stroke-width="2"`, color)
	case s.state == flight.StateFailed || s.state == flight.StateRejected:
		look = fmt.Sprintf(`fill="%s" stroke="#c00" stroke-width="2"`, color)
	}
	if !s.timed {
		look += ` opacity="0.55"`
	}
	return look
}

// axis draws the time axis and returns the y below it.
func (p *picture) axis(y int, timed bool) int {
	if !timed {
		p.text(dataX, y+lineY, "", "order of the calls; no times were taken")
		return y + 2*lineY
	}
	const ticks = 5
	for i := range ticks + 1 {
		t := p.end * time.Duration(i) / ticks
		x := p.x(t)
		p.add(`<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#888"/>`, x, y, x, y+4)
		p.add(`<text x="%.1f" y="%d" text-anchor="middle" fill="#555">%s</text>`, x, y+lineY, t.Round(rounding(p.end)))
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

// legend draws the legend below the data and returns the height of the picture.
func (p *picture) legend(y int) int {
	const column = 150
	entry := func(i int, look, text string) {
		x, at := dataX+i%6*column, y+i/6*lineY
		p.add(`<rect x="%d" y="%d" width="16" height="10" %s/>`, x, at, look)
		p.text(x+22, at+10, "", text)
	}
	for i, name := range p.names {
		entry(i, p.look(span{name: name, state: flight.StateDone, timed: true}), name)
	}
	y += (len(p.names)+5)/6*lineY + 6
	p.color["state"] = "#555"
	for i, s := range []struct {
		span
		text string
	}{
		{span{state: flight.StateDone, timed: true}, "done"},
		{span{state: flight.StateBegun, timed: true, unfinished: true}, "not ended"},
		{span{state: flight.StateFailed, timed: true}, "failed or rejected"},
		{span{state: flight.StateDone}, "pale: its time was not taken, placed by its number between calls of its rank that have times"},
	} {
		s.name = "state"
		entry(i, p.look(s.span), s.text)
	}
	return y + 2*lineY
}
