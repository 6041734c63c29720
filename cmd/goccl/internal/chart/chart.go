package chart

import (
	"bytes"
	"errors"
	"image/color"
	"os"
	"path/filepath"
	"time"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/goccl/goccl/cmd/goccl/internal/measure"
)

// Save draws all results of a document into a file, as SVG or PNG by its name.
func Save(path string, d *measure.Document) error {
	picture, err := SVG(d)
	if filepath.Ext(path) == ".png" {
		picture, err = PNG(d)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(path, picture, 0o666)
}

// SVG draws all results of a document as an SVG document.
func SVG(d *measure.Document) ([]byte, error) { return svg(d, everything(d)) }

// drawer is a row of panels.
type drawer interface{ draw() (*drawnRow, error) }

// everything returns all rows of a document.
func everything(d *measure.Document) []drawer {
	return append(drawers(rows(d)), drawers(workloads(d))...)
}

func drawers[D drawer](rows []D) (all []drawer) {
	for _, r := range rows {
		all = append(all, r)
	}
	return all
}

// Across draws as an SVG document what SVG draws of several sections together: panels over the
// ranks and over the topologies.
func Across(d *measure.Document) ([]byte, error) { return svg(d, drawers(across(d))) }

func svg(d *measure.Document, rows []drawer) ([]byte, error) {
	var b bytes.Buffer
	err := drawTo(d, rows, func(width, height vg.Length) vg.CanvasWriterTo { return vgsvg.New(width, height) }, &b)
	// Fallbacks if the font is not installed.
	picture := bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"))
	return picture, err
}

// PNG draws all results of a document as a PNG image, at 144 dots per inch.
func PNG(d *measure.Document) ([]byte, error) {
	var b bytes.Buffer
	err := drawTo(d, everything(d), func(width, height vg.Length) vg.CanvasWriterTo {
		return vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(144))}
	}, &b)
	return b.Bytes(), err
}

// The lengths of a picture.
const (
	panelWidth  = 12 * vg.Centimeter
	panelHeight = 8 * vg.Centimeter // at least; a longer legend makes it higher
	gap         = 7 * vg.Millimeter // between the parts of a row, and between rows
	margin      = 4 * vg.Millimeter
	headingSize = 12
	smallSize   = 9
)

// drawTo draws the head, and the rows below each other: a heading, both panels, and the legend
// beside them.
func drawTo(d *measure.Document, rows []drawer, newCanvas func(width, height vg.Length) vg.CanvasWriterTo, b *bytes.Buffer) error {
	if len(rows) == 0 {
		return errors.New("nothing to draw: no result has a length")
	}
	head, small, heading := head(d), style(smallSize), style(headingSize)
	small.Color = grey
	var drawn []*drawnRow
	var legends vg.Length // the widest
	heights := 2*margin + vg.Length(len(head))*lineHeight(small)
	for _, r := range rows {
		of, err := r.draw()
		if err != nil {
			return err
		}
		drawn = append(drawn, of)
		legends = max(legends, of.legendSize.X)
		heights += gap + lineHeight(heading) + of.height()
	}

	c := newCanvas(2*margin+2*panelWidth+2*gap+legends, heights)
	page := draw.Crop(draw.New(c), margin, -margin, margin, -margin)
	page.SetColor(color.White)
	page.Fill(draw.Crop(page, -margin, margin, -margin, margin).Path())
	write := func(line string, s text.Style) {
		page.FillText(s, vg.Point{X: page.Min.X, Y: page.Max.Y - s.Font.Size}, line)
		page.Max.Y -= lineHeight(s)
	}
	for _, line := range head {
		write(line, small)
	}

	for _, r := range drawn {
		page.Max.Y -= gap
		write(r.heading, heading)
		at := page
		at.Min.Y = at.Max.Y - r.height()
		for _, panel := range r.panels {
			at.Max.X = at.Min.X + panelWidth
			panel.Draw(at)
			at.Min.X = at.Max.X + gap
		}

		at.Min.X, at.Max.X = page.Max.X-legends, page.Max.X
		r.legend.Draw(at)
		page.Max.Y = at.Min.Y
	}
	_, err := c.WriteTo(b)
	return err
}

// head describes the machine, the configuration and the day, and how to read the panels.
func head(d *measure.Document) (lines []string) {
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

// style returns a style of text, with the reference point at its lower left.
func style(points float64) text.Style {
	s := text.Style{Handler: text.Plain{Fonts: font.DefaultCache}}
	setFont(&s.Font, points)
	return s
}

func setFont(f *font.Font, points float64) {
	f.Typeface, f.Variant, f.Size = "Liberation", "Sans", vg.Points(points)
}

func lineHeight(s text.Style) vg.Length { return s.Font.Size * 1.5 }
