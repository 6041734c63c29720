package timeline

import (
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/goccl/goccl/cmd/goccl/internal/inspect"
	"github.com/goccl/goccl/cmd/goccl/internal/svg"
)

// Measures of the picture of a step, in pixels.
const (
	marginX    = 16
	labelX     = 80 // width of the ranks' names
	dataX      = marginX + labelX
	dataWidth  = 1000
	hiddenX    = 96 // width of the shares beside the data
	titleY     = 24
	topY       = 40
	lineY      = 18 // of a line of text
	laneHeight = 20
	barHeight  = 14
	letter     = 6 // width of a letter in a bar
)

// look is how a part is drawn.
type look struct{ fill, text string }

// looks of the parts that package ddp marks. Those of a program get otherLooks in the order of
// their labels.
var (
	looks = map[string]look{
		"compute":  {"#c6dbef", "#123"},
		"backward": {"#2171b5", "white"},
		waitPart:   {"#fdd49e", "#420"},
		idlePart:   {"#eeeeee", "#555"},
		"failed":   {"#cc0000", "white"},
	}
	otherLooks = []look{{"#807dba", "white"}, {"#dadaeb", "#123"}, {"#8c6d31", "white"}, {"#e7cb94", "#123"}, {"#ce6dbd", "#123"}, {"#9edae5", "#123"}}
)

// Looks of calls.
const (
	transferFill = "#1b7837"
	hatch        = "url(#waits)"
	hatched      = `<defs><pattern id="waits" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
		`<rect width="6" height="6" fill="#e5f5e0"/><rect width="2" height="6" fill="#74c476"/></pattern></defs>`
)

// StepSVG draws one step of all ranks: what each rank's program does, and below it the calls beside
// that.
func StepSVG(w io.Writer, j *inspect.Records) error {
	s, err := findStep(j)
	if err != nil {
		return err
	}

	p := picture{end: max(s.length, 1), looks: s.looks()}
	p.Text(marginX, titleY, `font-size="15" font-weight="bold"`, fmt.Sprintf("step %d of job %s, %d ranks", s.number, j.Name, s.group.Size))
	p.Add(hatched)
	p.Text(marginX, titleY+lineY, `fill="#555"`, s.summary())
	y := topY + lineY + 4
	for _, r := range s.ranks {
		y = p.rank(r, y) + 8
	}
	y = p.axis(y - 4)
	y = p.legend(s, y+4)
	_, err = io.WriteString(w, p.Document(dataX+dataWidth+hiddenX, float64(y)))
	return err
}

// summary says how long the step took, and how much of its communication was hidden.
func (s *step) summary() string {
	sum, n := 0.0, 0
	for _, r := range s.ranks {
		if r.talks {
			sum += r.hidden
			n++
		}
	}
	took := s.length.Round(rounding(s.length)).String()
	if n == 0 {
		return took + "; no communication"
	}

	return fmt.Sprintf("%s; %.0f %% of the communication, waiting for slower ranks included, is hidden: it ran beside the program's work",
		took, 100*sum/float64(n))
}

// labels returns those of all parts, in the order in which ranks come to them.
func (s *step) labels() (all []string) {
	for _, r := range s.ranks {
		for _, p := range r.parts {
			if !slices.Contains(all, p.label) {
				all = append(all, p.label)
			}
		}
	}
	return all
}

func (s *step) looks() map[string]look {
	all, n := map[string]look{}, 0
	for _, label := range s.labels() {
		known, ok := looks[label]
		if !ok {
			known = otherLooks[n%len(otherLooks)]
			n++
		}
		all[label] = known
	}
	return all
}

// picture is a picture of a step over the time axis.
type picture struct {
	svg.Picture
	end   time.Duration
	looks map[string]look
}

// x returns the position of a time.
func (p *picture) x(t time.Duration) float64 {
	return dataX + dataWidth*float64(t)/float64(p.end)
}

// rank draws the lanes of a rank and returns the y below them.
func (p *picture) rank(r rankStep, y int) int {
	p.Text(marginX, float64(y+barHeight-2), `font-weight="bold"`, fmt.Sprintf("rank %d", r.rank))
	if !r.found {
		p.Add(`<text x="%d" y="%d" fill="#555">%s</text>`, dataX, y+barHeight-2, "its records of this step are gone")
		return y + laneHeight
	}
	from, to := p.x(r.from), p.x(r.to)
	p.Add(`<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="#f4f4f4"/>`, from, y-2, to-from, laneHeight*(1+len(r.lanes)))
	if r.talks {
		p.Add(`<text x="%d" y="%d" fill="#555">%.0f %% hidden</text>`, dataX+dataWidth+8, y+laneHeight+barHeight-2, 100*r.hidden)
	}

	for _, part := range r.parts {
		l := p.looks[part.label]
		p.box(part.from, part.to, y, fmt.Sprintf(`fill="%s"`, l.fill),
			fmt.Sprintf("%s, %v", part.label, (part.to-part.from).Round(rounding(part.to-part.from))))
		p.inside(part.from, part.to, y, fmt.Sprintf(`fill="%s"`, l.text), part.label)
	}

	for _, l := range r.lanes {
		y += laneHeight
		p.Add(`<text x="%d" y="%d" font-size="10" fill="#555">%s</text>`, marginX, y+barHeight-3, html.EscapeString(shortened(l.title, labelX/5)))
		for _, c := range l.calls {
			p.call(c, y)
		}
	}
	return y + laneHeight
}

// call draws a call: hatched until all ranks have come to it, then filled.
func (p *picture) call(c transfer, y int) {
	edge := ""
	switch {
	case c.failed:
		edge = ` stroke="#c00" stroke-width="2"`
	case c.opened:
		edge = ` stroke="#000" stroke-dasharray="3 2"`
	}
	p.box(c.from, c.all, y, fmt.Sprintf(`fill="%s"%s`, hatch, edge), c.text)
	p.box(c.all, c.to, y, fmt.Sprintf(`fill="%s"%s`, transferFill, edge), c.text)
	words := strings.Fields(c.name)
	for _, name := range []string{c.name, words[len(words)-1]} { // the last word is the number of a bucket
		if p.inside(c.all, c.to, y, `fill="white"`, name) ||
			p.inside(c.from, c.all, y, `fill="#123" stroke="#e5f5e0" stroke-width="4" paint-order="stroke"`, name) {
			return
		}
	}
}

// box draws a part of the axis, if it is not empty.
func (p *picture) box(from, to time.Duration, y int, look, title string) {
	if to <= from {
		return
	}
	x, end := p.x(from), p.x(to)
	p.Add(`<rect x="%.1f" y="%d" width="%.1f" height="%d" %s><title>%s</title></rect>`,
		x, y, max(end-x-0.5, 0.8), barHeight+2, look, html.EscapeString(title))
}

// inside writes a text in a part of the axis, and reports whether that has room for it.
func (p *picture) inside(from, to time.Duration, y int, look, text string) bool {
	x, end := p.x(from), p.x(to)
	if float64(letter*len([]rune(text))+6) > end-x {
		return false
	}
	p.Add(`<text x="%.1f" y="%d" font-size="10" text-anchor="middle" %s pointer-events="none">%s</text>`,
		(x+end)/2, y+barHeight-3, look, html.EscapeString(text))
	return true
}

func shortened(text string, letters int) string {
	if r := []rune(text); len(r) > letters {
		return string(r[:letters-1]) + "…"
	}
	return text
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

// legend draws the legend below the data and returns the height of the picture.
func (p *picture) legend(s *step, y int) int {
	const start = dataX + 8
	x := start
	entry := func(look, text string) {
		p.Add(`<rect x="%d" y="%d" width="16" height="10" %s/>`, x, y, look)
		p.Text(float64(x+22), float64(y+10), "", text)
		x += 22 + 7*len(text) + 24
	}
	p.Add(`<text x="%d" y="%d" font-size="10" fill="#555">program</text>`, marginX, y+9)
	for _, label := range s.labels() {
		entry(fmt.Sprintf(`fill="%s"`, p.looks[label].fill), label)
	}

	y, x = y+lineY, start
	p.Add(`<text x="%d" y="%d" font-size="10" fill="#555">communication</text>`, marginX, y+9)
	entry(fmt.Sprintf(`fill="%s"`, hatch), "waits for the last rank to come")
	entry(fmt.Sprintf(`fill="%s"`, transferFill), "all ranks have come")
	opened, failed := false, false
	for _, r := range s.ranks {
		for _, l := range r.lanes {
			for _, c := range l.calls {
				opened, failed = opened || c.opened, failed || c.failed
			}
		}
	}

	if opened {
		entry(`fill="white" stroke="#000" stroke-dasharray="3 2"`, "has not ended")
	}
	if failed {
		entry(`fill="white" stroke="#c00" stroke-width="2"`, "has failed")
	}
	return y + 2*lineY
}
