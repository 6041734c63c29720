package ccltest

import (
	"fmt"
	"html"
	"strings"

	"github.com/goccl/goccl/ccl/internal/verbs"
)

// A picture has at most mostColumns steps and mostLines ranks, the first ones.
const (
	mostColumns = 64
	mostLines   = 64
)

// The distances of a picture.
const (
	leftMargin  = 70
	topMargin   = 64
	columnWidth = 120
	rowHeight   = 54
	titleWidth  = 8 // of a character
)

// The colours of a picture.
const (
	lineColour    = "#bbb"
	messageColour = "#2b6cb0"
	oddColour     = "#c53030"
)

// draw returns the chart as an SVG: a line for each rank, from left to right the steps, and an
// arrow for each message. A message that is not received or not sent, or whose length is not the
// expected one, is red; one that is not sent is dashed.
func (c *chart) draw(title string) string {
	steps, ranks := max(1, min(c.steps(), mostColumns)), min(len(c.ranks), mostLines)
	width := max(leftMargin+(steps+1)*columnWidth, 20+len(title)*titleWidth)
	height := topMargin + ranks*rowHeight
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="12">
<defs>
<marker id="message" markerUnits="userSpaceOnUse" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="%[3]s"/></marker>
<marker id="odd" markerUnits="userSpaceOnUse" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="%[4]s"/></marker>
</defs>
<rect width="%[1]d" height="%[2]d" fill="white"/>
<text x="10" y="20" font-weight="bold">%[5]s</text>
`, width, height, messageColour, oddColour, html.EscapeString(title))

	for step := range steps {
		fmt.Fprintf(&b, `<text x="%d" y="50" text-anchor="middle" fill="#555">step %d</text>`+"\n", column(step)+columnWidth/2, step+1)
	}
	for r := range ranks {
		fmt.Fprintf(&b, `<text x="10" y="%d">rank %d</text>`+"\n", line(r)+4, r)
		fmt.Fprintf(&b, `<path d="M%d,%d H%d" stroke="%s"/>`+"\n", leftMargin, line(r), width-10, lineColour)
	}

	for r := range ranks {
		at := 0
		for i := range c.ranks[r] {
			x := &c.ranks[r][i]
			if x.starved() && at < mostColumns && x.From >= 0 && x.From < ranks {
				b.WriteString(arrow{x.From, r, at + 1, fmt.Sprintf("%v, not sent", x.Received), "received: " + x.Received.String(), missed}.draw())
			}
			if x.To != verbs.None && x.sentAt <= mostColumns && x.To < ranks {
				b.WriteString(x.arrow(r).draw())
			}

			at = max(at, x.sentAt, x.gotAt)
		}
	}
	if len(c.ranks) > ranks || c.steps() > steps {
		fmt.Fprintf(&b, `<text x="10" y="36" fill="#555">%d of %d ranks, %d of %d steps</text>`+"\n",
			ranks, len(c.ranks), steps, c.steps())
	}
	return b.String() + "</svg>\n"
}

func column(step int) int { return leftMargin + columnWidth/2 + step*columnWidth }
func line(rank int) int   { return topMargin + 16 + rank*rowHeight }

// arrow is a message in a picture.
type arrow struct {
	from, to, step int
	label, about   string
	fate           fate
}

// fate is what becomes of a message.
type fate uint8

const (
	received fate = iota
	stray         // no rank receives it, or not at this length
	missed        // no rank sends it
)

// arrow returns the message that x, a transfer of rank r, sends.
func (x *exchange) arrow(r int) arrow {
	a := arrow{from: r, to: x.To, step: x.sentAt, label: x.Sent.String(), about: "sent: " + x.Sent.String()}
	switch {
	case x.lost():
		a.fate, a.label = stray, a.label+", not received"
	case x.target.uneven():
		a.fate, a.label = stray, fmt.Sprintf("%s, for %v", a.label, x.target.Received)
	default:
		a.about += ", received: " + x.target.Received.String()
	}
	return a
}

// draw draws the arrow, and its label near the rank that sends, or that waits for a message.
func (a arrow) draw() string {
	x1, y1, x2, y2 := column(a.step-1), line(a.from), column(a.step), line(a.to)
	style, end, at := fmt.Sprintf(`stroke="%s"`, messageColour), "message", 16
	switch a.fate {
	case stray:
		style, end = fmt.Sprintf(`stroke="%s" stroke-width="2"`, oddColour), "odd"
	case missed:
		style, end, at = fmt.Sprintf(`stroke="%s" stroke-width="2" stroke-dasharray="5,4"`, oddColour), "odd", 70
	}
	text := fmt.Sprintf(`<path d="M%d,%d L%d,%d" %s fill="none" marker-end="url(#%s)"><title>step %d, rank %d to rank %d, %s</title></path>`+"\n",
		x1, y1, x2, y2, style, end, a.step, a.from, a.to, html.EscapeString(a.about))

	colour := "#333"
	if a.fate != received {
		colour = oddColour
	}
	return text + fmt.Sprintf(`<text x="%d" y="%d" font-size="10" fill="%s" stroke="white" stroke-width="3" paint-order="stroke">%s</text>`+"\n",
		x1+(x2-x1)*at/100+3, y1+(y2-y1)*at/100+3, colour, html.EscapeString(a.label))
}
