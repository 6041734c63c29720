package chart

import (
	"errors"
	"os"
	"time"

	"github.com/goccl/goccl/cmd/goccl/internal/measure"
	"github.com/goccl/goccl/cmd/goccl/internal/svg"
)

// Save draws all results of a document into a file.
func Save(path string, d *measure.Document) error {
	picture, err := SVG(d)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(picture), 0o666)
}

// SVG draws all results of a document.
func SVG(d *measure.Document) (string, error) {
	var all []drawnRow
	for _, r := range rows(d) {
		all = append(all, r.draw())
	}
	for _, s := range workloads(d) {
		all = append(all, s.draw())
	}
	return draw(d, all)
}

// Across draws what SVG draws of several sections together: panels over the ranks and over the
// topologies.
func Across(d *measure.Document) (string, error) {
	var all []drawnRow
	for _, r := range across(d) {
		all = append(all, r.draw())
	}
	return draw(d, all)
}

// Lengths of a picture, in pixels.
const (
	panelWidth  = 420
	panelHeight = 260 // at least; a longer legend makes it higher
	axisX       = 60  // of the numbers and the label beside a panel
	axisY       = 50  // of those below it
	gap         = 24
	margin      = 16
	lineHeight  = 18
	letter      = 7 // width of a letter, at most
)

// drawnRow is a row that is ready to be drawn: a heading, panels and the legend beside them.
type drawnRow struct {
	heading string
	panels  []*panel
	legend  []legendEntry
}

// legendEntry is a line of the legend, whose sample is drawn at its left.
type legendEntry struct {
	name   string
	sample func(p *svg.Picture, x, y float64)
}

// draw draws the head, and the rows below each other.
func draw(d *measure.Document, rows []drawnRow) (string, error) {
	if len(rows) == 0 {
		return "", errors.New("nothing to draw: no result has a length")
	}
	var p svg.Picture
	y := float64(margin)
	for _, line := range head(d) {
		y += lineHeight
		p.Text(margin, y, `font-size="11" fill="#787878"`, line)
	}

	longest := 0
	for _, r := range rows {
		y += gap + lineHeight
		p.Text(margin, y, `font-size="15"`, r.heading)
		y += gap / 2
		height := max(panelHeight, float64(len(r.legend)*lineHeight))
		x := float64(margin)
		for _, of := range r.panels {
			x += axisX
			of.draw(&p, x, y, height)
			x += panelWidth + gap
		}

		for i, entry := range r.legend {
			at := y + lineHeight*(float64(i)+0.5)
			entry.sample(&p, x, at)
			p.Text(x+40, at+4, "", entry.name)
			longest = max(longest, len(entry.name))
		}
		y += height + axisY
	}
	return p.Document(margin+2*(axisX+panelWidth+gap)+40+float64(longest*letter)+margin, y+margin), nil
}

// head describes the machine, the configuration and the day, and how to read the panels.
func head(d *measure.Document) []string {
	from := "configuration " + d.Config.File + " (" + d.Config.FoundBy + "), " + d.Date.UTC().Format(time.DateTime) + " UTC"
	if d.Machine.Revision != "" {
		from += ", revision " + d.Machine.Revision
	}
	how := "lines: medians; bands: up to the 99th percentile; grey: yardsticks, cut where the scale of the algorithms ends"
	if len(workloads(d)) > 0 {
		how = "bars: medians; backward alone, and what communication adds to it"
	}
	return []string{d.Machine.String(), from, how}
}
